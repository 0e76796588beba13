"""Tests of lines and columns in real files: they do not depend on the encoding or on preceding characters.

Columns count code points. So a file has the same records as in plain UTF-8 if it is in UTF-16, has a byte order mark,
or has an astral character for each `e` in comments and strings. CR before LF only moves positions at the end of a line.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from codebatch.model.record import Diagnostic, Edge, Metric, Record, Symbol
from codebatch_workers.api.protocols import BatchedFileTask
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import iter_sources
from tests.support import corpora
from tests.support.source_files import complete, created, source

FILES_MAX = 25
BYTES_MAX = 60_000
CORPORA: list[tuple[str, Callable[[], Path]]] = [
    ("python", lambda: corpora.sdist("Flask", "3.0.3")),
    ("javascript", lambda: corpora.npm("express", "4.19.2")),
    ("typescript", lambda: corpora.npm("zod", "3.23.8")),
    ("c", lambda: corpora.sdist("psutil", "6.0.0")),
    ("cpp", lambda: corpora.sdist("leveldb", "0.201")),
    ("rust", lambda: corpora.sdist("tokenizers", "0.13.3")),
    ("java", lambda: corpora.sdist("JPype1", "1.5.0")),
    ("bash", lambda: corpora.npm("bats", "1.11.0")),
]
ENCODINGS = {
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
# CPython reads no source in the other encodings and reports an error for such a file.
UNDERSTOOD = {"python": ("utf-8-sig",)}


def corpus_files(language: str, root: Path) -> list[SourceFile]:
    """Return the first files of a corpus in plain UTF-8.

    A shebang in UTF-16 is not recognised, so the name must determine the language.
    """
    every = iter_sources(root, [language], {})
    named = (file for file in every if b"." in file.path.rsplit(b"/")[-1] and file.encoding == "utf-8")
    return [file for file in named if 200 < len(file.utf8) < BYTES_MAX][:FILES_MAX]


def comparable_records(files: Sequence[SourceFile], scratch: Path) -> list[list[Record]]:
    """Return the records of every task for each file, without those that depend on the bytes of the file."""
    results: list[list[Record]] = [[] for _ in files]
    for name in ("parse", "analyze", "symbols", "lint"):
        task = created(name, scratch)
        records_by_file = [task.run_file(file) for file in files]
        if isinstance(task, BatchedFileTask):
            records_by_file = complete(task, files, records_by_file)
        for mine, records in zip(results, records_by_file, strict=True):
            mine += [record for record in records if isinstance(record, Symbol | Edge | Diagnostic)]
            mine += [record for record in records if isinstance(record, Metric) and record.metric != "bytes"]
    return results


def with_text(file: SourceFile, text: str, encoding: str = "utf-8") -> SourceFile:
    content = ENCODINGS.get(encoding, b"") + text.encode(encoding.removesuffix("-sig"))
    return source(file.path, content)


def astral(file: SourceFile) -> str:
    """Return the text with an astral letter for each `e` in comments and plain strings.

    It has equal code points and more bytes.
    """
    assert file.tree is not None
    changed = list(file.text)
    cursor, is_done = file.tree.walk(), False
    while not is_done:
        node = cursor.node
        assert node is not None
        # Bytes literals of Python cannot contain such a letter.
        is_prose = "comment" in node.type or (
            node.type in ("string_content", "string_fragment") and file.language != "python"
        )
        if is_prose and b"codebatch:" not in (node.text or b"") and b"noqa" not in (node.text or b""):
            start = len(file.utf8[: node.start_byte].decode())
            end = len(file.utf8[: node.end_byte].decode())
            changed[start:end] = ["𐐀" if letter == "e" else letter for letter in changed[start:end]]
        if not (not is_prose and cursor.goto_first_child()):
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    is_done = True
                    break
    return "".join(changed)


def without_text(record: Record) -> Record:
    """Return a record without words of the text."""
    if isinstance(record, Diagnostic):
        return msgspec.structs.replace(record, message="")
    if isinstance(record, Symbol):
        return msgspec.structs.replace(record, name="", qualified="", scope="", parameters=(), decorators=())
    if isinstance(record, Edge):
        return msgspec.structs.replace(record, source="", target="")
    return msgspec.structs.replace(record, symbol="") if isinstance(record, Metric) else record


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize(("language", "root"), CORPORA, ids=[language for language, _ in CORPORA])
def test_positions_count_code_points(language: str, root: Callable[[], Path], tmp_path: Path) -> None:
    files = corpus_files(language, root())
    plain = comparable_records(files, tmp_path)
    assert sum(map(len, plain)) > 10 * len(files) > 0
    for file, records in zip(files, plain, strict=True):
        lines = file.text.split("\n")
        for record in (record for record in records if isinstance(record, Symbol)):
            rest_of_line = lines[record.line - 1][record.column - 1 :].lstrip("\"'*&")
            assert rest_of_line.startswith((record.name, "default", "module.exports", "exports", "operator")), (
                file.path,
                record,
            )
    for encoding in UNDERSTOOD.get(language, ENCODINGS):
        assert comparable_records([with_text(file, file.text, encoding) for file in files], tmp_path) == plain, encoding
    far = [with_text(file, astral(file)) for file in files]
    assert any("𐐀" in file.text for file in far)
    for file, records, astral_records in zip(files, plain, comparable_records(far, tmp_path), strict=True):
        assert [without_text(record) for record in astral_records] == [without_text(record) for record in records], (
            file.path
        )


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize(("language", "root"), CORPORA[:-1], ids=[language for language, _ in CORPORA[:-1]])
def test_carriage_returns_do_not_shift_positions(language: str, root: Callable[[], Path], tmp_path: Path) -> None:
    """Ends are not compared: a block may end before or after the CR. In shells, a CR is part of a word."""

    def start(record: Record) -> Record:
        fixed = without_text(record)
        return (
            msgspec.structs.replace(fixed, end_line=0, end_column=0)
            if isinstance(fixed, Symbol | Diagnostic)
            else fixed
        )

    files = [file for file in corpus_files(language, root()) if "\r" not in file.text]
    windows = [with_text(file, file.text.replace("\n", "\r\n")) for file in files]
    for file, records, windows_records in zip(
        files, comparable_records(files, tmp_path), comparable_records(windows, tmp_path), strict=True
    ):
        assert [start(record) for record in windows_records] == [start(record) for record in records], file.path


def test_latin_1_python_has_the_columns_of_its_text(tmp_path: Path) -> None:
    text = "# coding: latin-1\nx = 'ÿé'; y = undefined_é; import os\nclass Ã:\n\tdef é(self): return 'ü', undefined\n"
    latin = source("a.py", text.encode("latin-1"))
    assert latin.encoding == "iso-8859-1"
    assert comparable_records([latin], tmp_path) == comparable_records(
        [source("a.py", text.replace("latin-1", "utf-8"))], tmp_path
    )
    (records,) = comparable_records([latin], tmp_path)
    places = [(record.code, record.line, record.column) for record in records if isinstance(record, Diagnostic)]
    assert ("F821", 2, 15) in places
    assert ("F821", 4, 27) in places
