import unittest

from tillbook.retry import retry


class Terminal:
    """Fails a given number of times, then answers."""

    def __init__(self, failures):
        self.failures = failures
        self.calls = 0
        self.pauses = []

    def __call__(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionResetError(f"call {self.calls}")
        return "paid"

    def run(self, attempts):
        return retry(self, attempts=attempts, delay_s=1, sleep=self.pauses.append)


class RetryTest(unittest.TestCase):
    def test_success_needs_one_call(self):
        terminal = Terminal(failures=0)
        self.assertEqual(terminal.run(3), "paid")
        self.assertEqual((terminal.calls, terminal.pauses), (1, []))

    def test_the_last_attempt_counts(self):
        terminal = Terminal(failures=2)
        self.assertEqual(terminal.run(3), "paid")
        self.assertEqual(terminal.pauses, [1, 2])

    def test_the_last_error_is_raised(self):
        terminal = Terminal(failures=9)
        with self.assertRaisesRegex(ConnectionResetError, "call 3"):
            terminal.run(3)

    def test_nobody_waits_after_the_last_attempt(self):
        terminal = Terminal(failures=9)
        with self.assertRaises(ConnectionResetError):
            terminal.run(3)
        self.assertEqual(terminal.pauses, [1, 2])

    def test_one_attempt_is_one_call(self):
        self.assertEqual(Terminal(failures=0).run(1), "paid")

    def test_other_errors_are_not_retried(self):
        with self.assertRaises(ZeroDivisionError):
            retry(lambda: 1 / 0)


if __name__ == "__main__":
    unittest.main()
