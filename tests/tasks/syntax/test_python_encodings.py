"""Tests of the encoding of Python files: `parse` accepts the same bytes as `compile`."""

from __future__ import annotations

import encodings.aliases
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from codebatch.model.record import Diagnostic, File
from codebatch_workers.api.protocols import BatchedFileTask
from codebatch_workers.syntax.source import SourceFile
from tests.support.source_files import complete, created, source

LONG = b"a" * 9000
CASES = [
    b"",
    b"x = '\xc3\xa9'\n",
    b"x = '\xe9'\n",
    b"x = '\xed\xa0\x80'\n",
    b"x = '" + LONG + b"\0'\n",
    b"# " + LONG + b"\0\n",
    # Byte order marks.
    b"\xff\xfex\0",
    b"\xff\xfe",
    b"\xfe\xff\0x",
    "x = 1\n".encode("utf-32"),
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbfx = 1\n",
    b"\xef\xbb\xbf\xef\xbb\xbfx = 1\n",
    b"\xef\xbb\xbfx = '\xe9'\n",
    b"\xef\xbb\xbf# coding: utf-8\nx = 1\n",
    b"\xef\xbb\xbf# coding: utf_8\nx = 1\n",
    b"\xef\xbb\xbf# coding: utf8\nx = 1\n",
    b"\xef\xbb\xbf# coding: latin-1\nx = 1\n",
    # Declarations.
    b"# coding: utf-8\nx = '\xe9'\n",
    b"# coding: UTF8\nx = '\xc3\xa9'\n",
    b"# -*- coding: utf-8-unix -*-\nx = 1\n",
    b"# -*- coding: latin-1-unix -*-\nx = '\xe9'\n",
    b"# coding: iso-latin-1-dos\nx = '\xe9'\n",
    b"# coding: utf-8-sig\nx = 1\n",
    b"# coding: ascii\nx = 1\n",
    b"# coding: ascii\nx = '\xc3\xa9'\n",
    b"# coding: cp1252\nx = '\x80'\n",
    b"# coding: cp1252\nx = '\x81'\n",
    b"# coding: cp949\nx = '\xb0\xa1'\n",
    b"# coding: cp949\nx = '\xff'\n",
    b"# coding: utf-7\nx = '+AGE-'\n",
    b"# coding: nope\nx = 1\n",
    b"# coding: rot13\nx = 1\n",
    b"# coding: undefined\nx = 1\n",
    b"# coding: punycode\nx = 1\n",
    # Lines in which a declaration counts.
    b"\n# coding: nope\n",
    b"#\n\n# coding: nope\n",
    b"\x0c# coding: nope\n",
    b"#\r# coding: nope\r",
    b"x = 1  # coding: nope\n",
    b"'''\n# coding: nope'''\n",
    b"\\\n# coding: nope\n",
    b"# coding : nope\n",
    b"# xcoding=   nope\n",
]  # fmt: skip
CODECS = sorted(set(encodings.aliases.aliases.values()) - {"mbcs", "oem"})


def verdict(content: bytes) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(content, "a.py", "exec")
    except (SyntaxError, ValueError):
        return "errors"
    return "ok"


def parse(files: list[SourceFile], scratch: Path) -> list[tuple[str, list[str]]]:
    """Return the parse state of each file, and the codes of its diagnostics."""
    task = created("parse", scratch)
    assert isinstance(task, BatchedFileTask)
    results: list[tuple[str, list[str]]] = []
    for record, *errors in complete(task, files, [task.run_file(file) for file in files]):
        assert isinstance(record, File)
        results.append((record.parse, [diagnostic.code for diagnostic in errors if isinstance(diagnostic, Diagnostic)]))
    return results


def test_encoding_verdict_matches_the_python_compiler(tmp_path: Path) -> None:
    contents = [*CASES, *(f"# coding: {name}\nx = 'abc'\n".encode() for name in CODECS)]
    files = [source(f"f{number}.py", content) for number, content in enumerate(contents)]
    for content, (state, codes) in zip(contents, parse(files, tmp_path), strict=True):
        assert (content[:60], state) == (content[:60], verdict(content))
        assert ("syntax-error" in codes) == (state == "errors")


def test_invalid_bytes_in_a_comment_are_an_error(tmp_path: Path) -> None:
    """Some versions of `compile` accept this file."""
    (tmp_path / "a.py").write_bytes(b"# \xe9\n")
    ended = subprocess.run([sys.executable, "-I", tmp_path / "a.py"], capture_output=True, check=False)
    assert b"SyntaxError" in ended.stderr
    assert parse([source("a.py", b"# \xe9\n")], tmp_path) == [("errors", ["syntax-error"])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x = '\xe9'\n", "not valid UTF-8: byte 5 is 0xe9"),
        (b"\xff\xfex\0", "Python does not support source files in UTF-16LE"),
        (b"x = '" + LONG + b"\0'\n", "Python does not accept NUL characters"),
        (b"# coding: nope\nx = = 1\n", "unknown encoding `nope`, read as UTF-8|Expected an expression"),
    ],
)
def test_unreadable_python_encoding_is_explained(content: bytes, message: str, tmp_path: Path) -> None:
    task = created("parse", tmp_path)
    assert isinstance(task, BatchedFileTask)
    file = source("a.py", content)
    ((_, *errors),) = complete(task, [file], [task.run_file(file)])
    assert "|".join(diagnostic.message for diagnostic in errors if isinstance(diagnostic, Diagnostic)) == message


def test_other_languages_are_read_in_any_encoding(tmp_path: Path) -> None:
    assert parse([source("a.js", b"\xff\xfe;\0"), source("b.js", b"x = '\xe9'\n")], tmp_path) == [
        ("ok", []),
        ("ok", []),
    ]
