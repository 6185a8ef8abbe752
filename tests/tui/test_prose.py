from tui.prose import LONGEST, reflowed


def test_the_lines_of_a_paragraph_become_one():
    assert (
        reflowed("Splitting an invoice\nloses a cent.\n\nMake it\nadd up.\n") == "Splitting an invoice loses a cent.\n\nMake it add up.\n"
    )


def test_lists_code_and_fences_keep_their_lines():
    kept = "# Title\n- one\n- two\n1. first\n2) second\n    code\n`name`\n| a | b |\n```\nx = 1\ny = 2\n```"
    assert reflowed(kept) == kept


def test_prose_after_a_list_is_prose_again():
    assert reflowed("Do:\n- one\nThen\nthis.") == "Do:\n- one\nThen this."


def test_a_paragraph_never_grows_beyond_what_a_line_shows():
    assert max(map(len, reflowed("word word\n" * 1_000).split("\n"))) <= LONGEST
