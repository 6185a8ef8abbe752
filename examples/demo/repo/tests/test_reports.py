import unittest

from tillbook.reports import Sale, bestsellers, ranks, totals


class ReportTest(unittest.TestCase):
    def test_sales_of_one_item_are_added_up(self):
        rows = totals([Sale("tea", 1, 400), Sale("bread", 2, 640), Sale("tea", 2, 800)])
        self.assertEqual([(row.item, row.pieces, row.cents) for row in rows][0], ("tea", 3, 1200))

    def test_highest_takings_first(self):
        rows = bestsellers([Sale("tea", 1, 400), Sale("wine", 1, 900)])
        self.assertEqual([row.item for row in rows], ["wine", "tea"])

    def test_equal_takings_stay_in_the_order_of_first_sale(self):
        sales = [Sale(item, 1, 500) for item in ("oats", "milk", "salt")]
        self.assertEqual([row.item for row in bestsellers(sales)], ["oats", "milk", "salt"])

    def test_a_tie_at_the_limit_is_cut_in_that_order(self):
        sales = [Sale("oats", 1, 500), Sale("wine", 1, 900), Sale("milk", 1, 500)]
        self.assertEqual([row.item for row in bestsellers(sales, 2)], ["wine", "oats"])

    def test_ties_share_a_rank(self):
        rows = bestsellers([Sale("a", 1, 9), Sale("b", 1, 5), Sale("c", 1, 5), Sale("d", 1, 1)])
        self.assertEqual(ranks(rows), [1, 2, 2, 4])


if __name__ == "__main__":
    unittest.main()
