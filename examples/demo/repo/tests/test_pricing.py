import unittest

from tillbook.money import Money
from tillbook.pricing import line_total, quantity_discount, split, total


class DiscountTest(unittest.TestCase):
    def test_a_step_begins_at_its_threshold(self):
        self.assertEqual([quantity_discount(n) for n in (9, 10, 50, 100)], [0, 3, 8, 12])

    def test_line_total_takes_the_discount_off(self):
        self.assertEqual(line_total(Money.of("2.00"), 10), Money.of("19.40"))

    def test_no_lines_cost_nothing(self):
        self.assertEqual(total([]), Money(0))


class SplitTest(unittest.TestCase):
    def test_an_even_bill(self):
        self.assertEqual(split(Money.of("30.00"), 3), [Money.of("10.00")] * 3)

    def test_no_cent_is_lost(self):
        shares = split(Money.of("100.00"), 3)
        self.assertEqual(total(shares), Money.of("100.00"))
        self.assertEqual([share.minor for share in shares], [3334, 3333, 3333])

    def test_a_credit_note_is_shared_like_a_bill(self):
        shares = split(Money.of("-10.00"), 3)
        self.assertEqual([share.minor for share in shares], [-334, -333, -333])

    def test_nobody_cannot_pay(self):
        with self.assertRaises(ValueError):
            split(Money.of("1.00"), 0)


if __name__ == "__main__":
    unittest.main()
