"""The tools that read statements and documents."""

import sys
import unittest
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from check_document import dates_in, holds, numbers_in  # noqa: E402
from statement import Unclear, infer_dates, infer_decimal, parse_amount  # noqa: E402


class AmountTest(unittest.TestCase):
    def test_every_way_to_write_a_minus(self):
        for text in ("-42,10", "42,10-", "\u221242,10", "(42,10)", "€(42,10)"):
            self.assertEqual(parse_amount(text, ","), Decimal("-42.10"), text)

    def test_thousands(self):
        for text in ("1.234,50", "1'234,50", "1 234,50", "1\u00a0234,50", "1234,50"):
            self.assertEqual(parse_amount(text, ","), Decimal("1234.50"), text)

    def test_what_does_not_fit_is_refused(self):
        for text in ("1.23,45", "12,3", "1.234.56", "abc", "1,234.56"):
            with self.assertRaises(Unclear, msg=text):
                parse_amount(text, ",")

    def test_the_column_decides(self):
        self.assertEqual(infer_decimal(["1.234", "5,10"]), ",")
        self.assertEqual(infer_dates(["03/04/26", "13/04/26"]), "D/M/Y")

    def test_a_column_that_fits_twice_is_not_guessed(self):
        with self.assertRaises(Unclear):
            infer_decimal(["1200", "12"])
        with self.assertRaises(Unclear):
            infer_dates(["03/04/26", "05/04/26"])


class DocumentTest(unittest.TestCase):
    def test_numbers_are_whole(self):
        self.assertEqual(
            numbers_in("48  9,80  1.470,40 €", ","), {48, Decimal("9.8"), Decimal("1470.4")}
        )
        self.assertFalse(holds("2026-0418", 418, "integer", ","))

    def test_a_part_of_a_word_is_not_the_value(self):
        self.assertTrue(holds("Rechnung Nr. 2026-0418", "2026-0418", "text", ","))
        self.assertFalse(holds("Rechnung Nr. 2026-0418", "2026-04", "text", ","))

    def test_dates_in_both_languages(self):
        text = "vom 27. April 2026 bis 31. März 2027, delivered 1 July 2026, 05.06.2026"
        self.assertEqual(dates_in(text), {"2026-04-27", "2027-03-31", "2026-07-01", "2026-06-05"})


if __name__ == "__main__":
    unittest.main()
