import unittest

from tillbook.money import Money
from tillbook.receipt import columns, print_receipt


class ReceiptTest(unittest.TestCase):
    def test_a_line_is_as_wide_as_the_paper(self):
        self.assertEqual(columns("Tea", "4.00", 12), "Tea     4.00")
        self.assertEqual(columns("Darjeeling First Flush", "4.00", 12), "Darjeel 4.00")

    def test_a_receipt(self):
        text = print_receipt([("Tea", Money.of("4.00")), ("Bread", Money.of("3.20"))], "Bye!", 16)
        self.assertEqual(text.splitlines()[3], "TOTAL   7.20 EUR")
        self.assertTrue(all(len(line) <= 16 for line in text.splitlines()))


if __name__ == "__main__":
    unittest.main()
