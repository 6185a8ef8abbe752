import unittest

from tillbook.template import MissingValue, names, render

REMINDER = "Dear {{ name }}, invoice {{ number }} of {{ date }} is still open, {{name}}."


class TemplateTest(unittest.TestCase):
    def test_one_placeholder(self):
        self.assertEqual(render("Dear {{ name }},", {"name": "Ida"}), "Dear Ida,")

    def test_a_missing_value_is_named(self):
        with self.assertRaises(MissingValue) as caught:
            render("{{ total }}", {})
        self.assertEqual(caught.exception.name, "total")

    def test_several_placeholders_on_one_line(self):
        values = {"name": "Ida", "number": "R-17", "date": "2 May"}
        self.assertEqual(
            render(REMINDER, values),
            "Dear Ida, invoice R-17 of 2 May is still open, Ida.",
        )

    def test_the_names_of_a_template(self):
        self.assertEqual(names(REMINDER), ["name", "number", "date"])

    def test_a_value_with_braces_is_left_alone(self):
        self.assertEqual(render("{{ a }}", {"a": "{{ b }}"}), "{{ b }}")


if __name__ == "__main__":
    unittest.main()
