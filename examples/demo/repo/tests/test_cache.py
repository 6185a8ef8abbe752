import unittest

from tillbook.cache import LruCache


class LruCacheTest(unittest.TestCase):
    def test_a_second_look_does_not_load(self):
        cache = LruCache(2)
        self.assertEqual(cache.get("tea", str.upper), "TEA")
        self.assertEqual(cache.get("tea", lambda key: "never"), "TEA")
        self.assertEqual((cache.hits, cache.misses), (1, 1))

    def test_it_never_holds_more_than_its_capacity(self):
        cache = LruCache(2)
        for key in "abcde":
            cache.put(key, key)
        self.assertEqual(len(cache), 2)

    def test_a_hit_keeps_an_entry_alive(self):
        cache = LruCache(2)
        cache.get("bread", str.upper)
        cache.get("cheese", str.upper)
        cache.get("bread", str.upper)
        cache.get("wine", str.upper)
        self.assertIn("bread", cache)
        self.assertNotIn("cheese", cache)

    def test_writing_an_entry_again_keeps_it_alive(self):
        cache = LruCache(2)
        cache.put("bread", 1)
        cache.put("cheese", 2)
        cache.put("bread", 3)
        cache.put("wine", 4)
        self.assertIn("bread", cache)
        self.assertNotIn("cheese", cache)


if __name__ == "__main__":
    unittest.main()
