import unittest
from decimal import Decimal

from tillbook.money import CurrencyMismatch, Money


class MoneyTest(unittest.TestCase):
    def test_amounts_survive_the_round_trip(self):
        self.assertEqual(Money.of("12.34").minor, 1234)
        self.assertEqual(str(Money.of("12.30")), "12.30 EUR")

    def test_yen_have_no_minor_unit(self):
        self.assertEqual(str(Money.of("1200", "JPY")), "1200 JPY")

    def test_currencies_do_not_mix(self):
        with self.assertRaises(CurrencyMismatch):
            Money.of(1) + Money.of(1, "CHF")

    def test_half_a_cent_is_rounded_away_from_zero(self):
        self.assertEqual(Money.of("2.125").minor, 213)
        self.assertEqual(Money.of("2.135").minor, 214)
        self.assertEqual(Money.of("-2.125").minor, -213)

    def test_vat_on_a_bun(self):
        self.assertEqual(Money.of("0.50").vat(Decimal(7)), Money.of("0.04"))
        self.assertEqual(Money.of("3.50").vat(Decimal(19)), Money.of("0.67"))


if __name__ == "__main__":
    unittest.main()
