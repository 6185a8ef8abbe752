import unittest
from datetime import datetime

from tillbook.schedule import next_run, runs_between
from tillbook.zones import SHOP_ZONE


def at(month, day, hour=22, minute=0):
    return datetime(2026, month, day, hour, minute, tzinfo=SHOP_ZONE)


def clock(moment):
    return f"{moment:%d.%m. %H:%M}"


class ScheduleTest(unittest.TestCase):
    def test_an_ordinary_evening(self):
        self.assertEqual(clock(next_run(at(5, 4))), "05.05. 22:00")

    def test_a_run_needs_a_zone(self):
        with self.assertRaises(ValueError):
            next_run(datetime(2026, 5, 4, 22))

    def test_the_evening_after_the_clocks_go_forward(self):
        self.assertEqual(clock(next_run(at(3, 28))), "29.03. 22:00")

    def test_the_evening_after_the_clocks_go_back(self):
        self.assertEqual(clock(next_run(at(10, 24))), "25.10. 22:00")

    def test_a_year_of_runs_keeps_the_hour(self):
        runs = runs_between(at(1, 1), at(12, 31))
        self.assertEqual({run.hour for run in runs}, {22})


if __name__ == "__main__":
    unittest.main()
