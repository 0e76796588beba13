"""Language, class and parse state of the files of a batch, from the `file` records of the task `parse`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

import msgspec

from codebatch.model.record import NON_PRODUCTION_CLASSES
from codebatch.plugins.worker_services import fact_services
from codebatch.query.filters.decoding import RecordPath, decode_lines
from codebatch.query.secondary_files import SecondaryCategory

PARTIAL_PARSE_STATES = ("errors", "partial")
"""The parse states of partially parsed files and of files with syntax errors."""

_TEST_CLASSES = frozenset(("documentation", "fixture", "test", "example"))
_UNPARSED_CLASSES = ("binary", "huge", "minified")


class ParsedFile(RecordPath, frozen=True, kw_only=True, gc=False):
    """The needed members of a `file` record.

    Records of other kinds are decoded as this type too; their class is empty.
    """

    lang: str = ""
    class_: str = msgspec.field(name="class", default="")
    parse: str = ""


@cache
def _file_decoder() -> msgspec.json.Decoder[ParsedFile]:
    return msgspec.json.Decoder(ParsedFile)


def decode_files(blocks: Iterable[bytes]) -> list[ParsedFile]:
    """Return the files that record lines of the task `parse` describe. Raises StoreCorrupt."""
    return [file for block in blocks for file in decode_lines(_file_decoder(), block) if file.class_]


def secondary_categories(files: Iterable[ParsedFile]) -> dict[bytes, SecondaryCategory]:
    """Return the category of each non-production file. Raises StoreCorrupt."""
    secondary = (file for file in files if file.class_ in NON_PRODUCTION_CLASSES)
    return {file.path_bytes: "test" if file.class_ in _TEST_CLASSES else "foreign" for file in secondary}


class FileStates(msgspec.Struct, frozen=True):
    """The number of files in each parse state.

    - `partial`: partially parsed files.
    - `broken`: files with syntax errors.
    - `plain`: files of class `text` in languages of code, parsed without problems.
    - `unparsed`: files that were not parsed, because they have no grammar or exceed a limit. Binary, huge and minified
      files are counted by class, all others by language.
    """

    partial: int
    broken: int
    plain: int
    unparsed: Counter[str]


def file_states(files: Iterable[ParsedFile]) -> FileStates:
    """Count files by parse state."""
    by_state = Counter((file.parse, file.class_, file.lang) for file in files)
    parsed: Counter[str] = Counter()
    unparsed: Counter[str] = Counter()
    for (parse, class_, language), number in by_state.items():
        parsed[parse] += number
        if parse in ("skipped", "unsupported"):
            unparsed[class_ if class_ in _UNPARSED_CLASSES else language] += number
    facts_of = fact_services().language_facts
    plain = sum(
        number
        for (parse, class_, language), number in by_state.items()
        if (parse, class_) == ("ok", "text") and facts_of(language).mentions != "none"
    )
    return FileStates(parsed["partial"], parsed["errors"], plain, unparsed)
