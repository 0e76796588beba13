"""Printed paths that users enter again resolve to the original paths."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.cli.output.terminal import printable_line
from codebatch.model.entry import display_path
from codebatch.model.text.displayed_paths import paths_displayed_as


@given(st.binary(min_size=1, max_size=12).filter(lambda path: b"\0" not in path and b"\\" not in path))
def test_displayed_path_resolves_to_the_original(path: bytes) -> None:
    shown = printable_line(display_path(path))
    is_mixed = b"\xc2" in path or b"\xe2" in path  # A character is escaped beside undecodable bytes.
    assert is_mixed or path in map(os.fsencode, (shown, *paths_displayed_as(shown)))


@pytest.mark.parametrize("name", ["a\u200b.py", "a\x85.py", "a\xad\U000e0041.py", "a\x1b[31m\x7f\t.py"])
def test_invisible_characters_in_a_displayed_name_resolve(name: str) -> None:
    assert name in paths_displayed_as(printable_line(name))


@pytest.mark.parametrize("shown", ["a.py", r"a\x00", r"a\u002fb", r"a\ud800", r"a\q", r"a\x2f"])
def test_impossible_displayed_path_resolves_to_nothing(shown: str) -> None:
    assert paths_displayed_as(shown) == ()
