"""What `parse` tells of the files of a batch: of what language and class each is, and how far it was parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

import msgspec

from codebatch.model.record import CLASSES_APART
from codebatch.query.filters.decoding import RecordOfFile, decode_lines
from codebatch.query.secondary_files import Apart

IN_PART = ("errors", "partial")
"""The states of files that were parsed in part."""

_TESTS = frozenset(("documentation", "fixture", "test", "example"))
_PASSED_OVER = ("binary", "huge", "minified")
_NO_CODE = ("gitattributes", "gitignore", "markdown")
"""Languages in which nothing is written that is compiled or run."""


class ParsedFile(RecordOfFile, frozen=True, kw_only=True, gc=False):
    """A file as its `file` record has it. Records of other kinds, which are decoded with these, have no class."""

    lang: str = ""
    class_: str = msgspec.field(name="class", default="")
    parse: str = ""


@cache
def _decoder() -> msgspec.json.Decoder[ParsedFile]:
    return msgspec.json.Decoder(ParsedFile)


def decode_files(blocks: Iterable[bytes]) -> list[ParsedFile]:
    """The files of which some record lines of `parse` tell. Raises StoreCorrupt."""
    return [file for block in blocks for file in decode_lines(_decoder(), block) if file.class_]


def files_apart(files: Iterable[ParsedFile]) -> dict[bytes, Apart]:
    """How those files stand apart that do. Raises StoreCorrupt."""
    apart = (file for file in files if file.class_ in CLASSES_APART)
    return {file.path_bytes: "test" if file.class_ in _TESTS else "foreign" for file in apart}


class FileStates(msgspec.Struct, frozen=True):
    """How many files were parsed in part, how many have syntax errors, and how many are code and nothing else.

    `unparsed` counts those that were not parsed at all: binary, huge and minified ones as such, others by language, as
    there is no grammar for it, or they are too much for that.
    """

    partial: int
    broken: int
    plain: int
    unparsed: Counter[str]


def file_states(files: Iterable[ParsedFile]) -> FileStates:
    """How far some files were parsed."""
    by_state = Counter((file.parse, file.class_, file.lang) for file in files)
    parsed: Counter[str] = Counter()
    unparsed: Counter[str] = Counter()
    for (parse, class_, language), number in by_state.items():
        parsed[parse] += number
        if parse in ("skipped", "unsupported"):
            unparsed[class_ if class_ in _PASSED_OVER else language] += number
    plain = sum(
        number
        for (parse, class_, language), number in by_state.items()
        if (parse, class_) == ("ok", "text") and language not in _NO_CODE
    )
    return FileStates(parsed["partial"], parsed["errors"], plain, unparsed)
