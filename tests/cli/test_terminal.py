"""What cannot be seen, or would steer a terminal, is written out for people."""

from __future__ import annotations

import re
import sys
import unicodedata

from codebatch.cli.terminal import printable


def test_every_control_format_and_separator_character_is_shown_as_an_escape() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    # Only what was assigned in the Unicode version of this Python is asked for.
    hidden = [char for char in every if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")]
    assert [char for char in hidden if not re.fullmatch(r"\\(n|r|t|x..|u.{4}|U.{8})", printable(char))] == []


def test_what_can_be_seen_is_left_as_it_is() -> None:
    text = "Grüße, Мир, 世界, עברית, देवनागरी, é, 🙂, a b"
    assert printable(text) == text


def test_a_name_with_a_space_of_no_width_is_told_from_the_one_without() -> None:
    assert printable("ad\u200bmin.py") == "ad\\u200bmin.py"
