"""Tests of JSON pointers, with the examples of RFC 6901."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from codebatch.model.text.json_pointers import POINTER_PATTERN, pointer_steps, resolve_steps

DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
    "~1": 9,
    "null": None,
}
VALUES: dict[str, object] = {
    "": DOCUMENT,
    "/foo": ["bar", "baz"],
    "/foo/0": "bar",
    "/foo/1": "baz",
    "/": 0,
    "/a~1b": 1,
    "/c%d": 2,
    "/e^f": 3,
    "/g|h": 4,
    "/i\\j": 5,
    '/k"l': 6,
    "/ ": 7,
    "/m~0n": 8,
    "/~01": 9,
    "/null": None,
    "/foo/2": UNSET,
    "/foo/-": UNSET,
    "/foo/x": UNSET,
    "/foo/²": UNSET,
    "/foo/" + "0" * 5000: UNSET,
    "/null/x": UNSET,
    "/x": UNSET,
}


@pytest.mark.parametrize("pointer", VALUES, ids=lambda pointer: repr(pointer[:9]))
def test_pointer_resolves_to_the_value(pointer: str) -> None:
    assert POINTER_PATTERN.fullmatch(pointer)
    assert resolve_steps(DOCUMENT, pointer_steps(pointer)) == VALUES[pointer]


@pytest.mark.parametrize("text", ["a", "a/b", "/~", "/~2", "/a~"])
def test_text_that_is_not_a_pointer(text: str) -> None:
    assert not POINTER_PATTERN.fullmatch(text)
