"""The files on which an answer without results rests, and the files in which the name may occur nevertheless.

A file counts as parsed only if it was parsed without problems. All other files of the snapshot, and the files of the
present tree that the snapshot does not contain, are searched for the bytes of the name.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from codebatch.errors import CodebatchError
from codebatch.model.entry import PathMembers, path_row
from codebatch.model.text.quantities import count_text
from codebatch.model.text.words import WordFinder
from codebatch.query.sources.parsed_files import ParsedFile
from codebatch.query.sources.records import BatchRecords
from codebatch.query.sources.word_search import WordMatches, find_files_with_word
from codebatch.snapshotting.left_out import LeftOutFiles, search_left_out_files
from codebatch.snapshotting.roots import resolve_sources
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.staleness import read_source_rules

_PLAIN_NAME = re.compile(r"[\w$]+")

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
- `outside`: the batch is restricted to other paths.
- `text`: it was parsed, but the name has characters other than letters, digits, `_` and `$`, so it may be more than one
  token.
- `missing`: its content is missing from the store.
- `ignored`: a rule excludes it from the snapshot.
- `unlisted`: it is not in the snapshot. It is new, or excluded by a setting of git outside of the tree.
"""


class DoubtfulFile(PathMembers, frozen=True, kw_only=True):
    """A file in which a name occurs, but not necessarily as code, and that was not analysed completely.

    `detail` is the language of a file without a grammar, or the rule that excludes the file. Otherwise it is empty.
    """

    reason: DoubtReason
    detail: str = ""


class SearchCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The files that were searched for a name that has no result.

    - `words`: the searched words. For a question about a file, they are its names in imports.
    - `files`: the number of files of the snapshot that the question is about.
    - `parsed`: how many of these files were parsed without problems.
    - `unparsed`: the number of the other files, by reason.
    - `text_only`: the number of parsed files in which the name occurs only in comments, strings or data. It is null if
      these files were not searched.
    - `left_out`: the number of searched files of the present tree that are not in the snapshot. It is null if the tree
      was not searched, because the question is about an older batch or the tree does not exist.
    - `unsearched`: the number of such files that were not searched. If `is_cut` is set, there may be more.
    - `doubtful`: the files that were not analysed completely and contain the name, by path.
    - `unresolved`: the number of calls of the last part of a qualified name, with other parts before it. Without types,
      it is unknown whether they call the qualified name.
    """

    words: tuple[str, ...]
    files: int
    parsed: int
    unparsed: dict[DoubtReason, int]
    text_only: int | None
    left_out: int | None
    unsearched: int
    is_cut: bool
    doubtful: tuple[DoubtfulFile, ...]
    unresolved: int = 0

    @property
    def doubt(self) -> str:
        """A text that describes where the name may occur, or an empty text if it occurs nowhere in code."""
        unreadable = sum(file.reason == "missing" for file in self.doubtful)
        containing = len(self.doubtful) - unreadable
        parts = []
        if self.unresolved:
            verb = "refers" if self.unresolved == 1 else "refer"
            calls = count_text(self.unresolved, f"call of {self.words[-1]}", f"calls of {self.words[-1]}")
            parts.append(f"{calls} possibly {verb} to it")
        if containing:
            subject = "1 file that was" if containing == 1 else f"{containing:,} files that were"
            verb = "contains" if containing == 1 else "contain"
            parts.append(f"{subject} not analysed completely {verb} {' or '.join(self.words)}")
        if unreadable:
            parts.append(f"the content of {count_text(unreadable, 'file')} is missing from the store")
        if self.unsearched:
            verb = "was" if self.unsearched == 1 else "were"
            least = "at least " if self.is_cut else ""
            parts.append(f"{least}{count_text(self.unsearched, 'ignored file')} {verb} not searched")
        return f"none, but {', and '.join(parts)}" if parts else ""


def read_coverage(
    records: BatchRecords,
    words: Sequence[str],
    *,
    is_current: bool,
    is_wanted: Callable[[bytes], bool] = lambda _: True,
    matches: WordMatches | None = None,
    with_results: Collection[bytes] = (),
) -> SearchCoverage:
    """Return the coverage of a search for some words that has no result. Raises StoreCorrupt.

    - `is_current`: the question is about the present tree, so its ignored files are searched too.
    - `is_wanted`: a predicate that restricts the files by path.
    - `matches`: the files of the batch in which a word occurs, if they are known.
    - `with_results`: the files with results that the question excludes, for example by their role.
    """
    finder = WordFinder(words)
    files = {file.path_bytes: file for file in records.files}
    items = [entry for entry in records.items if is_wanted(entry.path)]
    reasons = {entry.path: reason for entry in items if (reason := _doubt_reason(files.get(entry.path)))}
    item_paths = {entry.path for entry in items}
    outside = [
        entry
        for entry in (records.snapshot.entries if records.batch.about.paths else ())
        if entry.kind == "file" and entry.path not in item_paths and is_wanted(entry.path)
    ]
    reasons.update((entry.path, ("outside", "")) for entry in outside)
    unread = [*(entry for entry in items if entry.path in reasons), *outside]
    read = find_files_with_word(records, finder, unread)
    known = matches or WordMatches([], [])
    containing = {*read.containing, *known.containing}
    text_only = containing - reasons.keys() - {*with_results}
    unparsed = Counter(reason for reason, _ in reasons.values())
    if not all(map(_PLAIN_NAME.fullmatch, words)):
        reasons.update(dict.fromkeys(text_only, ("text", "")))
        text_only = set()
    doubtful = [_doubtful_file(path, *reasons[path]) for path in sorted(containing & reasons.keys())]
    doubtful += [_doubtful_file(path, "missing", "") for path in sorted({*read.missing, *known.missing})]
    left_out = _search_tree(records, finder, is_wanted) if is_current else None
    doubtful += [
        _doubtful_file(file.path, "ignored" if file.rule else "unlisted", file.rule)
        for file in (left_out.matches if left_out else ())
    ]
    return SearchCoverage(
        words=tuple(words),
        files=len(items) + len(outside),
        parsed=len(items) + len(outside) - unparsed.total(),
        unparsed=dict(unparsed.most_common()),
        text_only=None if matches is None else len(text_only),
        left_out=None if left_out is None else left_out.searched,
        unsearched=left_out.unsearched if left_out else 0,
        is_cut=left_out is not None and left_out.is_cut,
        doubtful=tuple(doubtful),
    )


def _doubt_reason(file: ParsedFile | None) -> tuple[DoubtReason, str] | None:
    """Return the reason why a file was not parsed completely, with a detail. Return None if it was."""
    match file:
        case None:
            return "unknown", ""
        case ParsedFile(class_="binary" | "huge" | "minified" as class_):
            return class_, ""
        case ParsedFile(parse="ok"):
            return ("markup", "") if file.lang == "html" and file.class_ != "empty" else None
        case ParsedFile(parse="partial" | "errors" | "skipped" as state):
            return state, ""
        case _:
            return "unsupported", file.lang


def _doubtful_file(path: bytes, reason: DoubtReason, detail: str) -> DoubtfulFile:
    return DoubtfulFile(**path_row(path), reason=reason, detail=detail)


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
