import unittest

from tillbook.inventory import Inventory, Movement, OutOfStock


class InventoryTest(unittest.TestCase):
    def test_stock_is_the_sum_of_its_movements(self):
        shelf = Inventory([Movement("tea", 5, "delivery")])
        shelf.take("tea", 2)
        self.assertEqual(shelf.pieces("tea"), 3)

    def test_what_is_not_there_cannot_be_taken(self):
        with self.assertRaises(OutOfStock):
            Inventory([Movement("tea", 1)]).take("tea", 2)

    def test_two_shops_do_not_share_their_stock(self):
        north, south = Inventory(), Inventory()
        north.receive("tea", 5)
        self.assertEqual(south.pieces("tea"), 0)

    def test_the_list_that_was_given_stays_as_it_was(self):
        history = [Movement("tea", 5, "delivery")]
        Inventory(history).take("tea", 1)
        self.assertEqual(len(history), 1)

    def test_items_to_order_again(self):
        shelf = Inventory([Movement("tea", 2), Movement("salt", 9), Movement("oats", 1)])
        self.assertEqual(shelf.below(5), ["oats", "tea"])


if __name__ == "__main__":
    unittest.main()
