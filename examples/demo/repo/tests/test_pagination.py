import unittest

from tillbook.pagination import page_count, paginate


class PaginationTest(unittest.TestCase):
    def test_a_rest_gets_a_page_of_its_own(self):
        self.assertEqual(page_count(51, 25), 3)
        self.assertEqual(paginate(range(51), 3).items, range(50, 51))

    def test_an_empty_list_has_one_page(self):
        page = paginate([], 1)
        self.assertEqual((page.items, page.pages, page.has_next), ([], 1, False))

    def test_full_pages_leave_no_empty_one_behind(self):
        self.assertEqual(page_count(50, 25), 2)
        self.assertFalse(paginate(range(50), 2).has_next)
        with self.assertRaises(LookupError):
            paginate(range(50), 3)

    def test_page_zero_does_not_exist(self):
        with self.assertRaises(LookupError):
            paginate([1, 2, 3], 0)


if __name__ == "__main__":
    unittest.main()
