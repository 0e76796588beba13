"""Words are found in every encoding, between bounds, and also across chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.text.words import WordFinder

ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("name", True), ("x.name y", True), ("(name)", True), ("é name", True), ("na me", False), ("", False),
        (" xname ", False), (" name1 ", False), (" _name ", False), (" xname name", True), ("énameé", True),
    ],
)  # fmt: skip
def test_words_are_found_between_bounds(encoding: str, text: str, is_found: bool) -> None:
    assert WordFinder(["name"]).is_in(text.encode(encoding)) is is_found


def test_punctuation_is_not_bounded() -> None:
    assert WordFinder(["operator+"]).is_in(b"operator+1")
    assert not WordFinder(["operator+"]).is_in(b"xoperator+")
    assert WordFinder(["()-1"]).is_in(b"f()-1")
    assert not WordFinder(["()-1"]).is_in(b"f()-10")


def test_any_of_several_words_is_found_and_empty_words_never() -> None:
    finder = WordFinder(["a", "é", ""])
    assert finder.is_in(b"x a y")
    assert finder.is_in("x é y".encode())
    assert not finder.is_in(b"x y")
    assert not WordFinder([""]).is_in(b"x y")


@given(st.lists(st.sampled_from(["name", "na", "me", "n", " ", "x", "\0", "_"]), max_size=12), st.integers(1, 7))
def test_chunks_give_the_same_result_as_the_whole_content(parts: list[str], size: int) -> None:
    content = "".join(parts).encode()
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    finder = WordFinder(["name"])
    assert finder.is_in_any(chunks) is finder.is_in(content)
