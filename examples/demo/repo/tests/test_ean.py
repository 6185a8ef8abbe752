import unittest

from tillbook.ean import check_digit, is_valid


class EanTest(unittest.TestCase):
    def test_a_known_code(self):
        self.assertTrue(is_valid("4 006381 333931"))
        self.assertFalse(is_valid("4 006381 333932"))

    def test_a_sum_that_ends_in_zero_gives_zero(self):
        self.assertEqual(check_digit("000000000000"), 0)
        self.assertEqual(check_digit("400000000014"), 3)

    def test_letters_are_no_digits(self):
        self.assertFalse(is_valid("40063813339x1"))
        with self.assertRaises(ValueError):
            check_digit("12345")


if __name__ == "__main__":
    unittest.main()
