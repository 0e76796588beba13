"""The files on which an answer without results rests, and the evidence that there may be results nevertheless.

All files of the snapshot that were not parsed completely, and the files of the present tree that the snapshot does not
contain, are searched for the bytes of the name.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from codebatch.errors import CodebatchError
from codebatch.model.text.quantities import count_text
from codebatch.model.text.words import WordFinder
from codebatch.query.answers.unparsed_files import (
    DoubtfulFile,
    DoubtReason,
    WordMatches,
    doubt_reason,
    doubtful_file,
    search_unparsed_files,
)
from codebatch.query.sources.records import BatchRecords
from codebatch.snapshotting.left_out import LeftOutFiles, search_left_out_files
from codebatch.snapshotting.roots import resolve_sources
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.staleness import read_source_rules

_PLAIN_NAME = re.compile(r"[\w$]+")
_WORDS_SHOWN = 20

EvidenceKind = Literal[
    "call",
    "reference",
    "import",
    "string",
    "implicit",
    "test",
    "uncertain",
    "unresolved",
    "unfollowed",
    "unsearched",
]
"""The kind of uses that an answer does not list.

- `call`, `reference`, `import`: occurrences of the name in other roles than the requested ones.
- `string`: string literals that consist of the name, or of the path or module name of a file.
- `test`: source files that use what was asked for, and have tests in them.
- `uncertain`: uses that `--exact` leaves out.
- `implicit`: the language calls such functions without their names: operators, constructors, `main`.
- `unresolved`: uses of the last part of a qualified name after other names, imports of a module that may be a file, or
  calls of methods of values from outside of the project.
- `unfollowed`: uses of code that uses the name, of which only the name is known.
- `unsearched`: files or names beyond a limit of the search, and files whose content is missing.
"""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Uses that an answer does not list, although they can be uses of what was asked for.

    `text` describes them, with their number `count`. `command` prints them, or is empty if `places` has all of them.
    """

    kind: EvidenceKind
    count: int
    text: str
    command: str = ""
    places: tuple[str, ...] = ()


def unsearched_evidence(count: int, subject: str, subjects: str) -> tuple[Evidence, ...]:
    """Return the evidence that a limit ended a search: `count` files or names were left out. None if it is 0."""
    if not count:
        return ()
    verb = "was" if count == 1 else "were"
    return (
        Evidence(kind="unsearched", count=count, text=f"{count_text(count, subject, subjects)} {verb} not searched"),
    )


class SearchCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The files that were searched for a name that has no result.

    - `words`: the searched words. For a question about a file, they are its names in imports.
    - `files`: the number of files of the snapshot that the question is about.
    - `parsed`: how many of these files were parsed without problems.
    - `unparsed`: the number of the other files, by reason.
    - `text_only`: the number of parsed files in which the name occurs only in comments, longer strings or data. It is
      null if these files were not searched.
    - `documents`: the number of files of prose with the name.
    - `left_out`: the number of searched files of the present tree that are not in the snapshot. It is null if the tree
      was not searched, because the question is about an older batch or the tree does not exist.
    - `unsearched`: the number of such files that were not searched. If `is_cut` is set, there may be more.
    - `doubtful`: the files that were not analysed completely and contain the name, by path.
    - `evidence`: uses that the answer does not list, by kind.
    """

    words: tuple[str, ...]
    files: int
    parsed: int
    unparsed: dict[DoubtReason, int]
    text_only: int | None
    documents: int
    left_out: int | None
    unsearched: int
    is_cut: bool
    doubtful: tuple[DoubtfulFile, ...]
    evidence: tuple[Evidence, ...] = ()

    @property
    def doubt(self) -> str:
        """A text that describes where the name may be used, or an empty text if nothing shows that it is."""
        parts = [*(evidence.text for evidence in self.evidence), *self._file_texts()]
        *first, last = parts or [""]
        joined = f"{', '.join(first)}{', and ' if len(first) > 1 else ' and '}{last}" if first else last
        return f"none, but {joined}" if parts else ""

    @property
    def words_text(self) -> str:
        """The searched words as text. Of many words, only the first are named."""
        more = len(self.words) - _WORDS_SHOWN
        return " or ".join((*self.words[:_WORDS_SHOWN], *[f"{more:,} more names"] * (more > 0)))

    def _file_texts(self) -> Iterator[str]:
        unreadable = sum(file.reason == "missing" for file in self.doubtful)
        containing = len(self.doubtful) - unreadable
        if containing:
            subject = "1 file that was" if containing == 1 else f"{containing:,} files that were"
            verb = "contains" if containing == 1 else "contain"
            yield f"{subject} not analysed completely {verb} {self.words_text}"
        if unreadable:
            yield f"the content of {count_text(unreadable, 'file')} is missing from the store"
        if self.unsearched:
            verb = "was" if self.unsearched == 1 else "were"
            least = "at least " if self.is_cut else ""
            yield f"{least}{count_text(self.unsearched, 'ignored file')} {verb} not searched"


class SearchScope(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a search for words is about.

    - `is_current`: the question is about the present tree, so its ignored files are searched too.
    - `is_wanted`: a predicate that restricts the files by path.
    - `covered`: the number of occurrences in a file that its tree shows, by path. In files without problems, the tree
      shows all of them.
    - `matches`: the parsed files in which a word occurs, if they are known, and files whose content is missing.
    """

    is_current: bool
    is_wanted: Callable[[bytes], bool]
    covered: Mapping[bytes, int]
    matches: WordMatches | None = None


def read_coverage(records: BatchRecords, words: Sequence[str], scope: SearchScope) -> SearchCoverage:
    """Return the coverage of a search for some words that has no result. Raises StoreCorrupt."""
    finder = WordFinder(words)
    files = {file.path_bytes: file for file in records.files}
    items = [entry for entry in records.items if scope.is_wanted(entry.path)]
    reasons = ((entry, doubt_reason(entry.path, files.get(entry.path))) for entry in items)
    unparsed = [(entry, *reason) for entry, reason in reasons if reason is not None]
    item_paths = {entry.path for entry in items}
    unparsed += [
        (entry, "outside", "")
        for entry in (records.snapshot.entries if records.batch.about.paths else ())
        if entry.kind == "file" and entry.path not in item_paths and scope.is_wanted(entry.path)
    ]
    counts = Counter(reason for _, reason, _ in unparsed)
    found = search_unparsed_files(records, finder, unparsed, scope.covered)
    known = scope.matches or WordMatches([], [])
    text_only = {*known.containing} - {entry.path for entry, _, _ in unparsed} - scope.covered.keys()
    doubtful = found.doubtful + [doubtful_file(path, "missing", "") for path in known.missing]
    if not all(map(_PLAIN_NAME.fullmatch, words)):
        doubtful += [doubtful_file(path, "text", "") for path in text_only]
        text_only = set()
    doubtful.sort(key=lambda file: file.path_bytes)
    left_out = _search_tree(records, finder, scope.is_wanted) if scope.is_current else None
    doubtful += [
        doubtful_file(file.path, "ignored" if file.rule else "unlisted", file.rule)
        for file in (left_out.matches if left_out else ())
    ]
    total = len(items) + counts["outside"]
    return SearchCoverage(
        words=tuple(words),
        files=total,
        parsed=total - counts.total(),
        unparsed=dict(counts.most_common()),
        text_only=None if scope.matches is None else len(text_only),
        documents=len(found.documents),
        left_out=None if left_out is None else left_out.searched,
        unsearched=left_out.unsearched if left_out else 0,
        is_cut=left_out is not None and left_out.is_cut,
        doubtful=tuple(doubtful),
    )


def _search_tree(records: BatchRecords, finder: WordFinder, is_wanted: Callable[[bytes], bool]) -> LeftOutFiles | None:
    """Return the files of the present tree that the snapshot does not contain. Return None if the tree is not there."""
    about, store = records.batch.about, records.store
    if not about.stat_cache:
        return None
    try:
        sources = resolve_sources([Path(os.fsdecode(source)) for source in about.sources], store.root)
        rules = read_source_rules(store.files, store.root, about.stat_cache) or SourceRules()
        known = {entry.path for entry in records.snapshot.entries}
        return search_left_out_files(sources, store.root, known, finder, rules, is_wanted)
    except (CodebatchError, OSError):
        return None
