import unittest

from tillbook.config import UnknownSetting, load


class ConfigTest(unittest.TestCase):
    def test_later_layers_win(self):
        settings = load('currency = "CHF"', "[receipt]\nwidth = 32")
        self.assertEqual(settings["currency"], "CHF")
        self.assertEqual(settings["receipt"]["width"], 32)

    def test_unknown_keys_are_named_with_their_table(self):
        with self.assertRaisesRegex(UnknownSetting, "receipt.widht"):
            load("[receipt]\nwidht = 32")

    def test_one_till_does_not_change_the_next(self):
        load('currency = "GBP"')
        self.assertEqual(load()["currency"], "EUR")

    def test_nor_does_it_in_a_nested_table(self):
        load("[receipt]\nlogo = false")
        self.assertTrue(load()["receipt"]["logo"])

    def test_what_a_caller_does_to_its_settings_stays_with_it(self):
        load()["receipt"]["footer"].append("Closed on Mondays")
        self.assertEqual(load()["receipt"]["footer"], ["Thank you!"])


if __name__ == "__main__":
    unittest.main()
