"""Tests of `SourceFile.change`: encodings, executable bits, and the numbers of changed lines."""

from __future__ import annotations

import codecs
import difflib
from io import BytesIO

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from codebatch.model.digest import digest_bytes
from codebatch_workers.api import SourceFile
from codebatch_workers.syntax.edited_files import COMPARED_LINES_MAX, count_changed_lines
from codebatch_workers.syntax.language.encodings import decode_content

MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16le": codecs.BOM_UTF16_LE,
    "utf-16be": codecs.BOM_UTF16_BE,
    "utf-32le": codecs.BOM_UTF32_LE,
}
COOKIES = {"latin-1": "iso-8859-1", "cp1252": "windows-1252", "iso-2022-jp": "iso-2022-jp", "koi8-r": "koi8-r"}
NEWLINES = st.sampled_from(["\n", "\r\n", "\r", ""])
NOTEBOOK = (
    b'{"cells": [{"cell_type": "code", "source": ["x = 1"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
)


def source(content: bytes, path: bytes = b"a.py", *, executable: bool = False) -> SourceFile:
    return SourceFile(path, content, executable=executable, contexts={})


def encodable(codec: str) -> st.SearchStrategy[str]:
    """Return a strategy of texts with all kinds of line ends that a codec can encode."""

    def is_encodable(text: str) -> bool:
        try:
            return text.encode(codec).decode(codec) == text
        except UnicodeError:
            return False

    lines = st.lists(st.tuples(st.text(max_size=8), NEWLINES).map("".join), max_size=6).map("".join)
    return lines.map(lambda text: text.replace("coding", "").replace("\0", "")).filter(is_encodable)


@st.composite
def encoded_texts(draw: st.DrawFn) -> tuple[str, str, bytes]:
    """A text, its encoding, and the bytes of a file that has the text with a mark or a declaration of the encoding."""
    if draw(st.booleans()):
        codec = draw(st.sampled_from(sorted(MARKS)))
        text = draw(encodable(codec))
        return text, codec, MARKS[codec] + text.encode(codec)
    cookie = draw(st.sampled_from(sorted({*COOKIES, "utf-8"})))
    text = f"# -*- coding: {cookie} -*-\n" + draw(encodable(cookie))
    return text, cookie, text.encode(cookie)


@given(encoded_texts(), st.data())
def test_text_is_written_in_the_encoding_of_the_file(encoded: tuple[str, str, bytes], data: st.DataObject) -> None:
    text, codec, content = encoded
    file = source(content)
    assume(not file.is_binary)
    assert file.text == text
    unchanged = file.change(file.text)
    assert (unchanged.content, unchanged.is_change) == (content, False)
    place = data.draw(st.integers(text.find("\n") + 1, len(text)))
    inserted = data.draw(encodable(codec))
    edited = file.change(text[:place] + inserted + text[place:])
    mark = MARKS.get(codec, b"") if content.startswith(MARKS.get(codec, b"-")) else b""
    assert edited.content == mark + (text[:place] + inserted + text[place:]).encode(codec)


@given(st.binary(max_size=60) | st.text(max_size=30).map(str.encode), st.sampled_from([b"a.py", b"a.txt", b"a.ipynb"]))
@example(NOTEBOOK, b"a.ipynb")
@example(b"\xff\xfea\x00\x00\xd8b\x00", b"a.txt")
@example(b"# coding: utf-7\n+ADw-", b"a.py")
def test_text_of_any_file_is_its_exact_content_or_refused(content: bytes, path: bytes) -> None:
    file = source(content, path)
    is_text = file.notebook is None and not file.is_binary
    if is_text and not file.encoding_problem and file.encoding != "utf-7":
        edited = file.change(file.text)
        assert (edited.content, edited.is_change) == (content, False)
        return
    try:
        edited = file.change(file.text)
    except ValueError:
        return
    assert (edited.content, edited.is_change) == (content, False)


@given(st.sampled_from(["", "# coding: latin-1\n", "\ufeff", "x\n"]), st.text(max_size=20))
def test_changed_text_is_read_again_as_it_was_given(start: str, text: str) -> None:
    """A text cannot change the encoding in which its own bytes are read."""
    file = source(b"x = 1\n")
    try:
        edited = file.change(start + text)
    except ValueError:
        return
    assert edited.content is not None
    assert decode_content(edited.content, lambda: True).utf8.decode() == start + text


@pytest.mark.parametrize(
    ("content", "path", "text", "problem"),
    [
        (b"caf\xe9\n", b"a.txt", "x", "not its exact content"),
        (b"\x00\x01", b"a.bin", "x", "not its exact content"),
        (NOTEBOOK, b"a.ipynb", "x", "only the code of its cells"),
        (
            b"# coding: latin-1\n",
            b"a.py",
            "# coding: latin-1\n\u20ac",
            r"iso-8859-1, has no character '\\u20ac'",
        ),
        (b"x\n", b"a.txt", "\ud800", r"utf-8, has no character '\\ud800'"),
        (b"x\n", b"a.py", "# coding: latin-1\n\xe9", "declares another encoding"),
        (b"x\n", b"a.txt", "\ufeffx", "declares another encoding"),
    ],
)
def test_text_that_cannot_be_exact_is_refused(content: bytes, path: bytes, text: str, problem: str) -> None:
    file = source(content, path)
    with pytest.raises(ValueError, match=problem):
        file.change(text)
    assert file.change(b"new").content == b"new"


def test_content_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes, str or None, not list"):
        source(b"").change([])  # type: ignore[arg-type]  # The mistake that is tested.


def test_change_has_contents_bits_and_lines() -> None:
    file = source(b"a\nb\n", executable=True)
    edited = file.change(b"a\nc\nd\n")
    assert (edited.path, edited.before) == (b"a.py", digest_bytes(b"a\nb\n"))
    assert (edited.content, edited.executable, edited.added, edited.removed) == (b"a\nc\nd\n", True, 2, 1)
    assert file.change(b"a\nb\n", executable=False).is_change
    assert not file.change(b"a\nb\n", executable=True).is_change
    deleted = file.change(None)
    assert (deleted.content, deleted.executable, deleted.added, deleted.removed) == (None, False, 0, 2)
    empty = source(b"")
    assert empty.change(None).is_change
    assert (empty.change(b"x").added, empty.change(b"x").removed) == (1, 0)


LINES = st.lists(st.sampled_from([b"\n", b"a\n", b"b\n", b"c\r\n", b"d\re\n"]), max_size=12).map(b"".join)


def _common_length(old: list[bytes], new: list[bytes]) -> int:
    """Return the length of the longest common subsequence, by its definition."""
    row = [0] * (len(new) + 1)
    for line in old:
        diagonal = 0
        for place, other in enumerate(new, 1):
            diagonal, row[place] = row[place], diagonal + 1 if line == other else max(row[place], row[place - 1])
    return row[-1]


@given(LINES, LINES, st.sampled_from([b"", b"end"]))
@example(b"a\nb\n", b"b\na\n", b"")
@example(b"a\n", b"", b"a")
def test_numbers_of_lines_are_minimal(before: bytes, after: bytes, end: bytes) -> None:
    old, new = BytesIO(before).readlines(), BytesIO(after + end).readlines()
    kept = _common_length(old, new)
    assert count_changed_lines(before, after + end) == (len(new) - kept, len(old) - kept)
    matched = sum(block.size for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    assert kept >= matched


def test_lines_of_long_files_are_not_compared() -> None:
    before = b"x\n" * COMPARED_LINES_MAX
    assert count_changed_lines(before, before[2:] + b"y\n") == (1, 1)
    assert count_changed_lines(before, b"z\n" + before) == (COMPARED_LINES_MAX + 1, COMPARED_LINES_MAX)
    assert count_changed_lines(before + b"z\n", before) == (COMPARED_LINES_MAX, COMPARED_LINES_MAX + 1)
