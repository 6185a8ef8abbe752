import unittest

from tillbook.markup import Line, line_html, receipt_html
from tillbook.money import Money


class MarkupTest(unittest.TestCase):
    def test_a_plain_line(self):
        self.assertEqual(
            line_html(Line("Rye bread", 2, Money.of("6.40"))),
            "<tr><td>Rye bread</td><td>2</td><td>6.40 EUR</td></tr>",
        )

    def test_the_photos_name_is_quoted_for_an_address(self):
        html = line_html(Line("Tea", 1, Money.of(4), photo="green tea.jpg"))
        self.assertIn('src="/photos/green%20tea.jpg"', html)

    def test_names_are_text_not_markup(self):
        html = line_html(Line("Salt & <b>Pepper</b>", 1, Money.of(3)))
        self.assertIn("<td>Salt &amp; &lt;b&gt;Pepper&lt;/b&gt;</td>", html)

    def test_a_quote_does_not_end_the_attribute(self):
        html = line_html(Line('Shelf 12" wide', 1, Money.of(30), photo="shelf.jpg"))
        self.assertIn('alt="Shelf 12&quot; wide"', html)

    def test_the_title_is_text_too(self):
        html = receipt_html("Smith & Sons", [], Money(0))
        self.assertIn("<h1>Smith &amp; Sons</h1>", html)


if __name__ == "__main__":
    unittest.main()
