import unittest
from datetime import date

from tillbook.dates import add_months, due_date, quarter


class DateTest(unittest.TestCase):
    def test_a_month_after_the_31st_is_a_months_end(self):
        self.assertEqual(add_months(date(2026, 1, 31), 1), date(2026, 2, 28))
        self.assertEqual(add_months(date(2023, 12, 31), 2), date(2024, 2, 29))

    def test_months_run_over_the_year(self):
        self.assertEqual(add_months(date(2026, 11, 15), 3), date(2027, 2, 15))

    def test_a_weekend_moves_the_due_date_to_monday(self):
        self.assertEqual(due_date(date(2026, 5, 2)), date(2026, 5, 18))
        self.assertEqual(due_date(date(2026, 5, 4)), date(2026, 5, 18))

    def test_quarters(self):
        self.assertEqual(quarter(date(2026, 5, 20)), (date(2026, 4, 1), date(2026, 6, 30)))


if __name__ == "__main__":
    unittest.main()
