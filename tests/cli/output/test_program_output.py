"""Output of programs reaches a terminal as text and colors, without other control characters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.cli.output.program_output import LINE_CHARACTERS_MAX, ProgramOutput, shorten_line

RED, OFF = "\x1b[31m", "\x1b[0m"


@pytest.mark.parametrize(
    ("line", "colored", "plain"),
    [
        ("a b", "a b", "a b"),
        (f"{RED}a{OFF} b", f"{RED}a{OFF} b", "a b"),
        ("\x1b[38;2;1:2mx\x1b[m", "\x1b[38;2;1:2mx\x1b[m", "x"),
        ("\x1b]0;title\x07\x1b[2J", "\\x1b]0;title\\x07\\x1b[2J", "\\x1b]0;title\\x07\\x1b[2J"),
        ("\x1b[>4m \x1b[?1m \x9b31m", "\\x1b[>4m \\x1b[?1m \\x9b31m", "\\x1b[>4m \\x1b[?1m \\x9b31m"),
        ("50 %\r100 %\r", "50 %\\r100 %", "50 %\\r100 %"),
        (f"a\t{RED}b\tc{OFF}", f"a       {RED}b       c{OFF}", "a       b       c"),
    ],
)
def test_color_sequences_pass_and_other_control_characters_are_escaped(line: str, colored: str, plain: str) -> None:
    assert ProgramOutput(is_colored=True).printable_line(line) == colored
    assert ProgramOutput(is_colored=False).printable_line(line) == plain


def test_open_color_is_reset_between_lines() -> None:
    output = ProgramOutput(is_colored=True)
    assert output.printable_line(f"\x1b[1ma{RED}") == f"\x1b[1ma{RED}{OFF}"
    assert output.printable_line("b") == f"\x1b[1m{RED}b{OFF}"
    assert output.printable_line("c\x1b[0;32md") == f"\x1b[1m{RED}c\x1b[0;32md{OFF}"
    assert output.printable_line("\x1b[me") == "\x1b[0;32m\x1b[me"
    assert output.printable_line("f") == "f"


@given(st.lists(st.text(st.sampled_from("\x1b[]?>0123;:mJh\x07\x9b\x00\t\rab\u202e"), max_size=30), max_size=4))
def test_only_color_sequences_remain_in_arbitrary_output(lines: list[str]) -> None:
    output = ProgramOutput(is_colored=True)
    shown = "".join(map(output.printable_line, lines))
    assert re.sub(r"\x1b\[[0-9;:]*m", "", shown).isprintable()
    assert "\x1b" not in re.sub(r".*\x1b\[[0;]*m", "", shown), "the last color sequence must reset all colors"


def test_long_line_is_cut_but_not_inside_an_escape_sequence() -> None:
    text = "a" * (LINE_CHARACTERS_MAX - 2) + RED + "b" * 60_000
    assert shorten_line(text) == "a" * (LINE_CHARACTERS_MAX - 2) + "… (60,003 more characters)"
    assert shorten_line(text[:LINE_CHARACTERS_MAX]) == text[:LINE_CHARACTERS_MAX]
