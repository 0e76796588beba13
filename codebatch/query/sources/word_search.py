"""Search for words in the files of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry
from codebatch.model.text.words import WordFinder
from codebatch.query.sources.records import BatchRecords

CONTENT_BYTES_MAX = 256 << 20
"""Maximum size of a file of the snapshot that is searched. A larger file counts as one that contains the word."""


class WordMatches(msgspec.Struct, frozen=True):
    """The paths of files in which a word occurs, and of files whose content is missing."""

    containing: list[bytes]
    missing: list[bytes]


def find_files_with_word(records: BatchRecords, finder: WordFinder, entries: Iterable[Entry]) -> WordMatches:
    """Return in which files of the snapshot a word occurs. Raises StoreCorrupt."""
    matches = WordMatches([], [])
    for entry in entries:
        try:
            if entry.size > CONTENT_BYTES_MAX or finder.is_in(records.read_object(entry)):
                matches.containing.append(entry.path)
        except ObjectMissing:
            matches.missing.append(entry.path)
    return matches
