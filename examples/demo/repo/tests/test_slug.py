import unicodedata
import unittest

from tillbook.slug import slugify, unique_slug


class SlugTest(unittest.TestCase):
    def test_punctuation_becomes_one_hyphen(self):
        self.assertEqual(slugify("Tea -- Earl Grey, 100 g!"), "tea-earl-grey-100-g")

    def test_a_cut_slug_does_not_end_in_a_hyphen(self):
        self.assertEqual(slugify("a" * 59 + " b"), "a" * 59)

    def test_accents_are_taken_off_their_letters(self):
        self.assertEqual(slugify("Crème brûlée"), "creme-brulee")
        self.assertEqual(slugify("Jalapeño"), "jalapeno")

    def test_both_forms_of_a_letter_give_one_slug(self):
        composed = unicodedata.normalize("NFC", "Käse")
        decomposed = unicodedata.normalize("NFD", "Käse")
        self.assertEqual(slugify(composed), "kase")
        self.assertEqual(slugify(decomposed), "kase")

    def test_sharp_s_becomes_two_letters(self):
        self.assertEqual(slugify("Weißbrot"), "weissbrot")

    def test_taken_slugs_are_numbered(self):
        self.assertEqual(unique_slug("Tea", {"tea", "tea-2"}), "tea-3")

    def test_a_name_without_letters(self):
        self.assertEqual(unique_slug("!!!", set()), "item")


if __name__ == "__main__":
    unittest.main()
