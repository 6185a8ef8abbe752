import tempfile
import unittest
from pathlib import Path

from tillbook.attachments import BadName, attachment_path, save

STORE = Path("/srv/tillbook/attachments")


class AttachmentTest(unittest.TestCase):
    def test_a_plain_name(self):
        path = attachment_path(STORE, "R-17", "photo.jpg")
        self.assertEqual(path, STORE / "R-17" / "photo.jpg")

    def test_dots_inside_a_name_are_fine(self):
        path = attachment_path(STORE, "R-17", "scan..final.pdf")
        self.assertEqual(path.name, "scan..final.pdf")

    def test_it_is_saved_below_the_orders_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            path = save(Path(folder), "R-17", "a.txt", b"hello")
            self.assertEqual(path.read_bytes(), b"hello")

    def test_names_that_lead_out_of_the_folder_are_refused(self):
        for name in ("../R-18/photo.jpg", "/etc/passwd", "a/../../b", "..", "", "."):
            with self.subTest(name=name), self.assertRaises(BadName):
                attachment_path(STORE, "R-17", name)

    def test_a_neighbour_with_a_longer_name_is_outside_too(self):
        with self.assertRaises(BadName):
            attachment_path(STORE, "R-1", "../R-17/photo.jpg")


if __name__ == "__main__":
    unittest.main()
