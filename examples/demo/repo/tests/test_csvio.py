import unittest

from tillbook.csvio import format_rows, parse_rows


def there_and_back(text):
    return parse_rows(format_rows(["item", "note"], [[text, "x"]]))[0]["item"]


class CsvTest(unittest.TestCase):
    def test_plain_fields_stay_bare(self):
        self.assertEqual(format_rows(["a", "b"], [[1, None]]), "a;b\r\n1;\r\n")

    def test_semicolons_and_line_breaks_come_back(self):
        for text in ("salt; pepper", "two\nlines", "two\r\nlines"):
            self.assertEqual(there_and_back(text), text)

    def test_quotes_come_back(self):
        for text in ('shelf 3" wide', '"fresh"', 'say "hi"; leave'):
            self.assertEqual(there_and_back(text), text)


if __name__ == "__main__":
    unittest.main()
