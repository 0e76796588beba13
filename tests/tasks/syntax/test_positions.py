"""Lines and columns of real files are the same in whatever encoding, and with whatever characters before them.

Columns count code points: a file in UTF-16, with a mark, or with an astral character for each `e` in its comments and
strings must have the records that it has in plain UTF-8. CR before LF moves nothing but what ends at the end of a line.
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
from tests.support.source_files import created, source

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
# CPython reads no source in the others, and to it such a file is wrong.
UNDERSTOOD = {"python": ("utf-8-sig",)}


def files_of(language: str, root: Path) -> list[SourceFile]:
    """The first files of a corpus, in plain UTF-8; a shebang is none in UTF-16, so the name must tell the language."""
    every = iter_sources(root, [language], {})
    named = (file for file in every if b"." in file.path.rsplit(b"/")[-1] and file.encoding == "utf-8")
    return [file for file in named if 200 < len(file.utf8) < BYTES_MAX][:FILES_MAX]


def records_of(files: Sequence[SourceFile], scratch: Path) -> list[list[Record]]:
    """What every task says of each file, without what depends on its bytes."""
    found: list[list[Record]] = [[] for _ in files]
    for name in ("parse", "analyze", "symbols", "lint"):
        task = created(name, scratch)
        said = [task.run_file(file) for file in files]
        if isinstance(task, BatchedFileTask):
            said = task.complete(files, said)
        for mine, records in zip(found, said, strict=True):
            mine += [each for each in records if isinstance(each, Symbol | Edge | Diagnostic)]
            mine += [each for each in records if isinstance(each, Metric) and each.metric != "bytes"]
    return found


def with_text(file: SourceFile, text: str, encoding: str = "utf-8") -> SourceFile:
    content = ENCODINGS.get(encoding, b"") + text.encode(encoding.removesuffix("-sig"))
    return source(file.path, content)


def astral(file: SourceFile) -> str:
    """The text with an astral letter for each `e` in comments and plain strings: as many code points, more bytes."""
    assert file.tree is not None
    changed = list(file.text)
    cursor, is_done = file.tree.walk(), False
    while not is_done:
        node = cursor.node
        assert node is not None
        # Bytes of Python hold no such letter.
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
    """A record without words of the text."""
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
    files = files_of(language, root())
    plain = records_of(files, tmp_path)
    assert sum(map(len, plain)) > 10 * len(files) > 0
    for file, records in zip(files, plain, strict=True):
        lines = file.text.split("\n")
        for record in (each for each in records if isinstance(each, Symbol)):
            there = lines[record.line - 1][record.column - 1 :].lstrip("\"'*&")
            assert there.startswith((record.name, "default", "module.exports", "exports", "operator")), (
                file.path,
                record,
            )
    for encoding in UNDERSTOOD.get(language, ENCODINGS):
        assert records_of([with_text(file, file.text, encoding) for file in files], tmp_path) == plain, encoding
    far = [with_text(file, astral(file)) for file in files]
    assert any("𐐀" in file.text for file in far)
    for file, records, others in zip(files, plain, records_of(far, tmp_path), strict=True):
        assert [without_text(each) for each in others] == [without_text(each) for each in records], file.path


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize(("language", "root"), CORPORA[:-1], ids=[language for language, _ in CORPORA[:-1]])
def test_carriage_returns_do_not_shift_positions(language: str, root: Callable[[], Path], tmp_path: Path) -> None:
    """Ends are left out: that of a block may be behind the CR or before. To shells, a CR is part of a word."""

    def start(record: Record) -> Record:
        fixed = without_text(record)
        return (
            msgspec.structs.replace(fixed, end_line=0, end_column=0)
            if isinstance(fixed, Symbol | Diagnostic)
            else fixed
        )

    files = [file for file in files_of(language, root()) if "\r" not in file.text]
    windows = [with_text(file, file.text.replace("\n", "\r\n")) for file in files]
    for file, records, others in zip(files, records_of(files, tmp_path), records_of(windows, tmp_path), strict=True):
        assert [start(each) for each in others] == [start(each) for each in records], file.path


def test_latin_1_python_has_the_columns_of_its_text(tmp_path: Path) -> None:
    text = "# coding: latin-1\nx = 'ÿé'; y = undefined_é; import os\nclass Ã:\n\tdef é(self): return 'ü', undefined\n"
    latin = source("a.py", text.encode("latin-1"))
    assert latin.encoding == "iso-8859-1"
    assert records_of([latin], tmp_path) == records_of([source("a.py", text.replace("latin-1", "utf-8"))], tmp_path)
    (records,) = records_of([latin], tmp_path)
    found = [(each.code, each.line, each.column) for each in records if isinstance(each, Diagnostic)]
    assert ("F821", 2, 15) in found
    assert ("F821", 4, 27) in found
