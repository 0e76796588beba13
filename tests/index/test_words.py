"""Tests of words: a text that contains a name has the words by which the name is looked up."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.index.words import (
    BINARY_WORD,
    NON_ASCII_WORD,
    add_content_words,
    content_key,
    name_words,
    without_numbers,
    word_alternatives,
)
from codebatch.model.digest import digest_bytes
from codebatch.model.entry import Entry
from codebatch_workers.runtime.name_search import references_in
from codebatch_workers.syntax.language.encodings import decode_content

_CHARACTERS = "aZ_09$-.?é\u200b¡ \n\t\"'\\"
_NAMES = st.text(_CHARACTERS, min_size=1, max_size=6)
_TEXTS = st.text(_CHARACTERS, max_size=30)


def _words(content: bytes, path: bytes = b"a.txt") -> set[bytes]:
    words: set[bytes] = set()
    add_content_words(words, content, path)
    return {*without_numbers(words)}


def _is_found(words: set[bytes], name: str) -> bool:
    return all(any(each in words for each in word_alternatives(word)) for word in name_words(name))


def _contains(text: bytes, name: str) -> bool:
    """Return whether a text contains a name, as `references` searches for it."""
    return re.search(rb"(?<![A-Za-z0-9_])%b(?![A-Za-z0-9_])" % re.escape(name.encode()), text) is not None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", set()),
        (b"a b_c\td.e\nf", {b"a", b"b_c", b"d", b"e", b"f"}),
        (b"$foo #{bar} @baz q?", {b"foo", b"bar", b"baz", b"q"}),
        (b"1 0x1f 12px x1", {b"x1"}),
        ("größe".encode(), {b"gr", b"e", NON_ASCII_WORD}),
        (b"x" * 100, {b"x" * 100}),
        (b"\x7fELF\0 abc abcd _1", {b"abcd", BINARY_WORD, NON_ASCII_WORD}),
        ("foo é".encode("utf-16"), {b"foo", b"f", b"o", NON_ASCII_WORD}),
        (b"# coding: utf-7\n+AGYAbwBv-", {b"coding", b"utf", b"AGYAbwBv", b"foo"}),
        # The second byte of the first character is `\`, that of the second one is `A`.
        ("# coding: sjis\n表ア=foo".encode("shift_jis"), {b"coding", b"sjis", b"A", b"foo", NON_ASCII_WORD}),
    ],
)
def test_words_of_contents(content: bytes, words: set[bytes]) -> None:
    assert _words(content) == words


def test_words_of_a_notebook_are_those_of_its_unescaped_text() -> None:
    content = rb'"x\tfoo\u00e9b\u0041"'
    assert _words(content) == {b"x", b"tfoo", b"u00e9b", b"u0041"}
    assert _words(content, path=b"a.ipynb") == _words(content) | {b"foo", b"bA", NON_ASCII_WORD}


def test_words_without_case_are_added_in_lower_case() -> None:
    assert _words(b"getThing X", path=b"a.php") == {b"getThing", b"getthing", b"X", b"x"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("foo", (b"foo",)),
        ("a-b.a", (b"a", b"b")),
        ("$x", (b"x",)),
        ("3d", ()),
        ("+", ()),
        ("имя", (NON_ASCII_WORD,)),
        ("größe2", (b"gr", b"e2", NON_ASCII_WORD)),
        ("\udcff", (NON_ASCII_WORD,)),
    ],
)
def test_words_of_names(name: str, words: tuple[bytes, ...]) -> None:
    assert name_words(name) == words


@settings(max_examples=200)
@given(before=_TEXTS, name=_NAMES, after=_TEXTS, encoding=st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-32"]))
def test_texts_with_a_name_have_its_words(before: str, name: str, after: str, encoding: str) -> None:
    content = (before + name + after).encode(encoding, "replace")
    text = decode_content(content, lambda: False).utf8
    if _contains(text, name) or _contains(content, name):
        assert _is_found(_words(content), name)


@settings(max_examples=150)
@given(content=st.binary(max_size=60), start=st.integers(0, 60), length=st.integers(1, 9))
def test_any_bytes_have_the_words_of_every_name_in_them(content: bytes, start: int, length: int) -> None:
    name = content[start : start + length].decode("utf-8", "ignore")
    if name and _contains(content, name):
        assert _is_found(_words(content), name)


@settings(max_examples=150)
@given(before=_TEXTS, name=_NAMES, after=_TEXTS, is_ascii=st.booleans())
def test_notebooks_have_the_words_of_names_in_their_strings(before: str, name: str, after: str, is_ascii: bool) -> None:
    content = json.dumps([before + name + after], ensure_ascii=is_ascii).encode()
    if _contains((before + name + after).encode(), name):
        assert _is_found(_words(content, path=b"a.ipynb"), name)


def test_a_name_after_an_escape_is_found_in_a_notebook() -> None:
    """`references` finds it, so the words of the notebook must include it, although `tfoo` is the word in its bytes."""
    cell: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": "if 1:\n\tfoo()\n",
    }
    content = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).encode()
    assert [row["role"] for row in references_in("foo", b"a.ipynb", content, {})] == ["call"]
    assert not _is_found(_words(content), "foo")
    assert _is_found(_words(content, path=b"a.ipynb"), "foo")


def test_words_are_not_cut_where_a_large_text_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b" ".join(b"word%d" % number for number in range(500)) + b" " + b"x" * 300
    words = _words(text)
    assert len(words) == 501
    for size in (1, 2, 7, 100, 4000):
        monkeypatch.setattr("codebatch.index.words._PIECE_BYTES", size)
        assert _words(text) == words


def test_equal_contents_have_one_key_if_their_words_are_the_same() -> None:
    def key(path: bytes, content: bytes) -> bytes:
        return content_key(Entry(path, "file", False, len(content), digest_bytes(content)))

    assert key(b"a.py", b"x") == key(b"b.json", b"x")
    assert len({key(b"a.py", b"x"), key(b"a.py", b"y"), key(b"a.ipynb", b"x"), key(b"a.php", b"x")}) == 4
