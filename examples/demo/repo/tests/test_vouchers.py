import unittest
from datetime import datetime, timedelta, timezone

from tillbook.vouchers import Voucher, utc_now

RECORD = {"code": " gift-7 ", "value": "25", "valid_until": "2026-06-30T23:59:59-05:00"}


class VoucherTest(unittest.TestCase):
    def test_codes_are_tidied(self):
        self.assertEqual(Voucher.from_record(RECORD).code, "GIFT-7")

    def test_the_last_second_is_meant_where_the_voucher_was_sold(self):
        voucher = Voucher.from_record(RECORD)
        self.assertTrue(voucher.is_valid(datetime(2026, 7, 1, 4, 59, tzinfo=timezone.utc)))
        self.assertFalse(voucher.is_valid(datetime(2026, 7, 1, 5, 1, tzinfo=timezone.utc)))

    def test_now_knows_its_zone(self):
        self.assertEqual(utc_now().utcoffset(), timedelta(0))

    def test_a_voucher_of_tomorrow_is_valid_now(self):
        tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
        record = RECORD | {"valid_until": tomorrow.isoformat()}
        self.assertTrue(Voucher.from_record(record).is_valid())

    def test_a_moment_without_an_offset_is_refused(self):
        with self.assertRaisesRegex(ValueError, "offset"):
            Voucher.from_record(RECORD | {"valid_until": "2026-06-30T23:59:59"})


if __name__ == "__main__":
    unittest.main()
