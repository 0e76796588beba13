"""Files in which a word occurs, but that were not parsed completely.

A file counts as parsed only if it was parsed without problems. A word in another file may be code, a comment or text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry, PathMembers, path_row
from codebatch.model.text.quantities import count_text
from codebatch.model.text.words import WordFinder
from codebatch.plugins.worker_services import fact_services
from codebatch.query.sources.parsed_files import ParsedFile, decode_files
from codebatch.query.sources.records import BatchRecords

CONTENT_BYTES_MAX = 256 << 20
"""Maximum size of a file of the snapshot that is searched. A larger file counts as one that contains the word."""
_RECORDS_READ_MAX = 20
"""Maximum number of files whose parse state is read one by one. For more files, those of all files are read."""
_DOCUMENT_LANGUAGES = frozenset({"gettext", "rst", "roff", "tex"})
_DOCUMENT_NAME = re.compile(
    rb"(?:\A|/)(?:authors|change(?:log|s)|contributors|copying|history|licen[cs]e|news|readme|todo)[^/.]*(?:\.txt)?\Z"
    rb"|\.(?:adoc|asciidoc|mediawiki|org|pod|rdoc|textile|wiki)\Z",
    re.IGNORECASE,
)

DoubtReason = Literal[
    "partial",
    "errors",
    "unsupported",
    "binary",
    "huge",
    "minified",
    "skipped",
    "markup",
    "unknown",
    "outside",
    "document",
    "text",
    "missing",
    "ignored",
    "unlisted",
]
"""The reason why a file may contain results that are not in an answer.

- `partial`, `errors`: it was parsed, but not completely, or it has syntax errors.
- `unsupported`: no grammar for its language is installed.
- `binary`, `huge`, `minified`, `skipped`: it was not parsed because of its content, its size or its nesting.
- `markup`: it was parsed, but scripts in HTML are not.
- `unknown`: the task `parse` has no result for it.
- `document`: it is prose, such as reStructuredText. Like Markdown and comments, it does not count as code.
- `outside`: the batch is restricted to other paths.
- `text`: it was parsed, but the name has characters other than letters, digits, `_` and `$`, so it may be more than one
  token.
- `missing`: its content is missing from the store.
- `ignored`: a rule excludes it from the snapshot.
- `unlisted`: it is not in the snapshot. It is new, or excluded by a setting of git outside of the tree.
"""


REASON_TEXTS: Mapping[DoubtReason, str] = {
    "partial": "partially parsed",
    "errors": "with syntax errors",
    "unsupported": "without a grammar",
    "binary": "binary",
    "huge": "too large",
    "minified": "minified",
    "skipped": "not parsed",
    "markup": "in HTML",
    "unknown": "without a result of the task parse",
    "outside": "outside the batch",
    "document": "of prose",
}
"""Texts after the number of files that were not parsed completely, by reason."""


class DoubtfulFile(PathMembers, frozen=True, kw_only=True):
    """A file in which a name occurs, but not necessarily as code, and that was not analysed completely.

    `detail` is the language of a file without a grammar, or the rule that excludes the file. Otherwise it is empty.
    `occurrences` is the number of places with the name that the answer does not cover, or 0 if it is unknown.
    """

    reason: DoubtReason
    detail: str = ""
    occurrences: int = 0


def doubtful_file(path: bytes, reason: DoubtReason, detail: str, occurrences: int = 0) -> DoubtfulFile:
    """Return a DoubtfulFile for a path."""
    return DoubtfulFile(**path_row(path), reason=reason, detail=detail, occurrences=occurrences)


def doubt_reason(path: bytes, file: ParsedFile | None) -> tuple[DoubtReason, str] | None:
    """Return the reason why a file was not parsed completely, with a detail. Return None if it was."""
    match file:
        case None:
            return "unknown", ""
        case ParsedFile(class_="binary" | "huge" | "minified" as class_):
            return class_, ""
        case ParsedFile(parse="ok"):
            is_markup = fact_services().language_facts(file.lang).is_markup and file.class_ != "empty"
            return ("markup", "") if is_markup else None
        case ParsedFile(parse="partial" | "errors" | "skipped" as state):
            return state, ""
        case _ if _is_document(path, file):
            return "document", file.lang
        case _:
            return "unsupported", file.lang


def _is_document(path: bytes, file: ParsedFile) -> bool:
    if file.lang in _DOCUMENT_LANGUAGES:
        return True
    return file.lang == "text" and (file.class_ == "documentation" or _DOCUMENT_NAME.search(path) is not None)


class WordMatches(msgspec.Struct, frozen=True):
    """The paths of files in which a word occurs, and of files whose content is missing."""

    containing: list[bytes]
    missing: list[bytes]


class UnparsedMatches(msgspec.Struct, frozen=True):
    """The files with a word that were not parsed completely, and the documents with it. Each in the searched order."""

    doubtful: list[DoubtfulFile]
    documents: list[bytes]


def search_unparsed_files(
    records: BatchRecords,
    finder: WordFinder,
    files: Iterable[tuple[Entry, DoubtReason, str]],
    covered: Mapping[bytes, int],
) -> UnparsedMatches:
    """Return in which files a word occurs that the answer does not cover. Raises StoreCorrupt.

    Each file has the reason why it was not parsed completely, and a detail. `covered` is the number of occurrences in a
    file that its tree shows.
    """
    matches = UnparsedMatches([], [])
    for entry, reason, detail in files:
        if entry.size > CONTENT_BYTES_MAX:
            matches.doubtful.append(doubtful_file(entry.path, reason, detail))
            continue
        try:
            occurrences = finder.count_in(records.read_object(entry))
        except ObjectMissing:
            matches.doubtful.append(doubtful_file(entry.path, "missing", ""))
            continue
        if occurrences and reason == "document":
            matches.documents.append(entry.path)
        elif occurrences > covered.get(entry.path, 0):
            matches.doubtful.append(doubtful_file(entry.path, reason, detail, occurrences - covered.get(entry.path, 0)))
    return matches


def find_unparsed_files(
    records: BatchRecords, candidates: Iterable[tuple[int, Entry]]
) -> list[tuple[Entry, DoubtReason, str]]:
    """Return the items that were not parsed completely, with the reason and a detail. Raises StoreCorrupt.

    If the batch did not run the task `parse`, return none.
    """
    items = list(candidates)
    if not items or "parse" not in records.task_names:
        return []
    states = _read_states(records, items)
    reasons = ((entry, doubt_reason(entry.path, states.get(entry.path))) for _, entry in items)
    return [(entry, *reason) for entry, reason in reasons if reason is not None]


def unsearched_text(word: str, files: Iterable[DoubtfulFile]) -> str:
    """Return a text that counts the occurrences of a word in files that were not parsed completely, by reason."""
    groups: dict[DoubtReason, list[DoubtfulFile]] = {}
    for file in files:
        groups.setdefault(file.reason, []).append(file)
    return " and ".join(_group_texts(word, groups))


def _group_texts(word: str, groups: Mapping[DoubtReason, list[DoubtfulFile]]) -> Iterator[str]:
    subject = f"more occurrence of {word}", f"more occurrences of {word}"
    for reason, files in groups.items():
        if reason == "missing":
            yield f"the content of {count_text(len(files), 'file')} is missing from the store"
            continue
        languages = Counter(file.detail for file in files if reason == "unsupported")
        named = f" ({', '.join(languages)})" if languages else ""
        number = sum(file.occurrences for file in files)
        yield f"{count_text(number, *subject)} in {count_text(len(files), 'file')} {REASON_TEXTS[reason]}{named}"
        subject = "more", "more"


def _read_states(records: BatchRecords, items: list[tuple[int, Entry]]) -> Mapping[bytes, ParsedFile]:
    """Return the parse states of some items, by path."""
    if len(items) > _RECORDS_READ_MAX:
        return {file.path_bytes: file for file in records.files}
    lines = (records.source.item_lines("parse", item) for item, _ in items)
    return {file.path_bytes: file for file in decode_files(line for line in lines if line)}
