import unittest
from datetime import datetime, timedelta, timezone

from tillbook.zones import SHOP_ZONE


class ZoneTest(unittest.TestCase):
    def test_winter_and_summer(self):
        winter = datetime(2026, 1, 10, 12, tzinfo=SHOP_ZONE)
        summer = datetime(2026, 7, 10, 12, tzinfo=SHOP_ZONE)
        self.assertEqual(winter.utcoffset(), timedelta(hours=1))
        self.assertEqual(summer.utcoffset(), timedelta(hours=2))

    def test_the_hour_that_comes_twice(self):
        for hour, fold in ((0, 0), (1, 1)):
            utc = datetime(2026, 10, 25, hour, 30, tzinfo=timezone.utc)
            local = utc.astimezone(SHOP_ZONE)
            self.assertEqual((local.hour, local.fold), (2, fold))
            self.assertEqual(local.astimezone(timezone.utc), utc)

    def test_the_hour_that_is_left_out(self):
        utc = datetime(2026, 3, 29, 1, tzinfo=timezone.utc)
        self.assertEqual(utc.astimezone(SHOP_ZONE).hour, 3)


if __name__ == "__main__":
    unittest.main()
