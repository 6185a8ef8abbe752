import unittest
from datetime import datetime

from tillbook.reservations import AlreadyTaken, Calendar, Slot


def slot(start, end):
    return Slot(datetime(2026, 5, 4, start), datetime(2026, 5, 4, end))


class SlotTest(unittest.TestCase):
    def test_slots_that_touch_do_not_overlap(self):
        self.assertFalse(slot(9, 11).overlaps(slot(11, 13)))
        self.assertFalse(slot(11, 13).overlaps(slot(9, 11)))

    def test_partial_overlap(self):
        self.assertTrue(slot(9, 12).overlaps(slot(11, 13)))
        self.assertTrue(slot(11, 13).overlaps(slot(9, 12)))

    def test_a_slot_inside_another_overlaps_either_way(self):
        self.assertTrue(slot(10, 11).overlaps(slot(9, 17)))
        self.assertTrue(slot(9, 17).overlaps(slot(10, 11)))

    def test_an_empty_slot_is_refused(self):
        with self.assertRaises(ValueError):
            slot(9, 9)


class CalendarTest(unittest.TestCase):
    def test_a_whole_day_is_refused_when_an_hour_is_taken(self):
        van = Calendar()
        van.reserve(slot(12, 13), "Ida")
        with self.assertRaises(AlreadyTaken) as caught:
            van.reserve(slot(8, 18), "Jonas")
        self.assertEqual(caught.exception.holder, "Ida")


if __name__ == "__main__":
    unittest.main()
