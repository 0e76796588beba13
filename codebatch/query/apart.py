"""Files that are not what a project is for: tests, and what others or machines wrote."""

from __future__ import annotations

import re
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import StoreCorrupt
from codebatch.model.entry import path_from_fields
from codebatch.model.record import CLASSES_APART
from codebatch.query.decoding import decode_lines, line_at
from codebatch.query.filters import RecordFilter
from codebatch.query.records import BatchRecords

Apart = Literal["test", "foreign"]
"""`foreign`: vendored, generated or minified."""

_CLASS = re.compile(b'"class":"(?:%b)"' % "|".join(sorted(CLASSES_APART)).encode())
_TESTS = frozenset(("fixture", "test", "example"))
# What runners of tests look for by default: pytest and unittest, jest, vitest and mocha, go test, RSpec and minitest,
# JUnit and its like, PHPUnit, googletest, Bats, prove.
_TEST_FILE = re.compile(
    rb"(?:test_.*\.(?:py|rb|c|cc|cpp|cxx|lua|sh|php)|tests?\.(?:py|rs)|"
    rb".*(?:_(?:test|spec|unittest)\.[a-z]{1,4}|[.-](?:test|test-d|spec|e2e)\.[cm]?[jt]sx?|"
    rb"(?:Test|Tests|TestCase|IT|Spec)\.(?:java|kt|kts|cs|php|scala|groovy|swift)|\.bats|\.t))\Z",
    re.DOTALL,
)
_IN_TESTS = re.compile(rb"(?:\A|/)(?:tests/[^/]+\.rs|__tests__/[^/]+\.[cm]?[jt]sx?)\Z")


class _File(msgspec.Struct, gc=False):
    class_: str = msgspec.field(name="class")
    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_File)


def is_test_file(path: bytes) -> bool:
    """Whether a runner of tests looks for tests in a file of this name."""
    directory, _, name = path.rpartition(b"/")
    if _TEST_FILE.match(name):
        return True
    return directory.endswith((b"tests", b"__tests__")) and _IN_TESTS.search(path) is not None


class FilesApart:
    """Which files of a batch stand apart."""

    def __init__(self, records: BatchRecords) -> None:
        """What `parse` tells of them so far; nothing where the batch is without it. Raises StoreCorrupt."""
        self._found: dict[bytes, Apart] = {}
        if "parse" not in records.task_names:
            return
        for piece in records.pieces("parse", RecordFilter(kinds=("file",)), ()):
            for block in records.read(piece):
                lines = [line_at(block, match.start()) for match in _CLASS.finditer(block)]
                for file in decode_lines(_decoder, b"\n".join(lines)):
                    self._found[_path(file)] = "test" if file.class_ in _TESTS else "foreign"

    def of(self, path: bytes) -> Apart | None:
        """How a file stands apart; None where it does not."""
        return self._found.get(path)


def _path(file: _File) -> bytes:
    try:
        return path_from_fields(file.path, file.path_b64)
    except ValueError as error:
        raise StoreCorrupt(f"a record has no path: {error}") from error
