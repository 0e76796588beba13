"""Baselines: files of the findings that a team lives with, for CI without a store (compare/baselines.py)."""

from __future__ import annotations

import codecs
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from codebatch.compare.absence.file_selection import FileSelection
from codebatch.compare.absence.reasons import BatchContext, is_looked_at_in_part
from codebatch.compare.baselines import (
    BaselineEntry,
    BaselineEntryPair,
    BaselineError,
    baseline_entry,
    decode_baseline,
    encode_baseline,
    hash_of,
    match_baseline,
)
from codebatch.compare.matching.findings import MatchableFinding
from codebatch.compare.matching.scopes import NO_SCOPES, have_scopes, read_scopes
from codebatch.compare.matching.texts import Texts
from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.entry import display_path
from codebatch.model.record import Diagnostic
from codebatch.operations.api.batch import Batch
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.tools import Tellers
from codebatch.system.files.files import RealFiles

BASELINE_BYTES_MAX = 256 << 20


class HeldFindings(NamedTuple):
    """The findings of a batch, in the order of their paths and lines, and what a baseline says of each."""

    findings: Sequence[Diagnostic]
    kept: Sequence[BaselineEntry]


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """The update of a baseline: the number of its findings, and of those removed, moved and added; `excluded` are new
    ones that were not accepted. `not_comparable` ones stay, because they were checked differently.
    """

    findings: int
    removed: int
    moved: int
    added: int
    excluded: int
    not_comparable: int


def all_findings(batch: Batch) -> Answer[HeldFindings]:
    """All findings of a batch, as a baseline has them. Raises StoreCorrupt, also where what is in a file is lost, and
    BatchIncomplete where they are not all, unless it was opened with `partial`.
    """
    answer = batch.diagnostics()
    records = batch.question.records
    of_paths: dict[bytes, list[Diagnostic]] = defaultdict(list)
    for each in answer:
        of_paths[each.path_bytes].append(each)
    scopes = read_scopes(records, of_paths) if have_scopes(records) else {}
    found: list[Diagnostic] = []
    told: list[tuple[bytes, MatchableFinding]] = []
    for path, diagnostics in of_paths.items():
        entry = records.snapshot.entry(path)
        if entry is None:
            raise StoreCorrupt(f"a record refers to {display_path(path)}, which is not in the snapshot")
        texts, around = Texts(records.read_object(entry).split(b"\n")), scopes.get(path, NO_SCOPES)
        diagnostics.sort(key=lambda each: (each.line, each.column))
        found += diagnostics
        told += ((path, texts.finding(each, around.at(each.line))) for each in diagnostics)
    held = HeldFindings(found, baseline_entry(told))
    return Answer(question=answer.question, found=held, whole=answer.whole)


def read_baseline(path: Path) -> list[BaselineEntry]:
    """What a baseline says. Raises InvalidInput where it is not there, or none: the text says in which line."""
    shown = display_path(os.fsencode(path))
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(f"{shown} is not a regular file")
            data = file.read(BASELINE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        hint = "create one with: codebatch baseline create FILE"
        raise InvalidInput(f"cannot read {shown}: {told}", hint=hint) from error
    if len(data) > BASELINE_BYTES_MAX:
        raise InvalidInput(f"{shown} has more than {BASELINE_BYTES_MAX:,} bytes, the limit for baselines")
    try:
        return decode_baseline(data.removeprefix(codecs.BOM_UTF8))
    except BaselineError as error:
        hint = "create it again with: codebatch baseline create FILE"
        if "conflict" in str(error):
            name = display_path(os.fsencode(path.name))
            hint = (
                f"keep the lines of both sides of the conflict; to have git do this, add this line to .gitattributes: "
                f"{name} merge=union"
            )
        raise InvalidInput(f"line {error.line} of {shown} {error}", hint=hint) from error


def _open_at_once(path: str, flags: int) -> int:
    """A fifo that nobody writes to is waited for otherwise."""
    return os.open(path, flags | os.O_NONBLOCK)


def ignore_baseline_file(batch: Batch, path: Path) -> None:
    """Have a baseline that lies in the tree make no answer of a batch stale: it is what is known, and no source."""
    directory, name = os.path.split(os.path.abspath(os.fsencode(path)))
    batch.question.beside = (os.path.join(os.path.realpath(directory), name),)


def create_baseline(batch: Batch, path: Path) -> Answer[int]:
    """Write a baseline of all findings of a batch; returns how many lines. On return it is on disk.

    Raises InvalidInput where the file is there, BatchIncomplete where the batch has not all findings, be it opened with
    `partial` or not (a baseline of a part would call the rest new), StoreCorrupt or StoreUnwritable.
    """
    ignore_baseline_file(batch, path)
    if os.path.lexists(path):
        hint = "update it with: codebatch baseline update FILE"
        raise InvalidInput(f"{display_path(os.fsencode(path))} already exists", hint=hint)
    _check_place(batch, path)
    answer = _whole(all_findings(batch))
    RealFiles().write_atomic(path, encode_baseline(answer.found.kept))
    return Answer(question=answer.question, found=len({*answer.found.kept}), whole=answer.whole)


def update_baseline(batch: Batch, path: Path, *, accept_new: bool = False) -> Answer[Update]:
    """Bring a baseline up to date: what is gone goes, what moved is told where it is; what is new only if accepted.

    On return it is on disk. Raises as `create_baseline` does, and where the file is no baseline.
    """
    before = read_baseline(path)
    ignore_baseline_file(batch, path)
    _check_place(batch, path)
    answer = _whole(all_findings(batch))
    held = answer.found.kept
    pairs = match_baseline(before, held)
    known = {pair.found for pair in pairs}
    new = [each for place, each in enumerate(held) if place not in known]
    unknown = _not_comparable(batch, before, pairs)
    kept = {*(held[place] for place in known), *unknown, *(new if accept_new else ())}
    data = encode_baseline(kept)
    if data != encode_baseline(before):
        RealFiles().write_atomic(path, data)
    update = Update(
        findings=len(kept),
        removed=len(before) - len(pairs) - len(unknown),
        moved=sum(pair.by != "all" for pair in pairs),
        added=len(new) if accept_new else 0,
        excluded=0 if accept_new else len(new),
        not_comparable=len(unknown),
    )
    return Answer(question=answer.question, found=update, whole=answer.whole)


def counted_by_rule(kept: Sequence[BaselineEntry]) -> list[tuple[str, str, int, int]]:
    """Of each tool and code how many findings a baseline has, and in how many files; the most first."""
    of_rules: dict[tuple[str, str], list[BaselineEntry]] = defaultdict(list)
    for each in kept:
        of_rules[each.tool, each.code].append(each)
    rows = [(*rule, len(found), len({each.path for each in found})) for rule, found in of_rules.items()]
    return sorted(rows, key=lambda row: (-row[2], row[:2]))


class BaselineDiff(NamedTuple):
    """The findings of a batch that a baseline has not; how many that it has are gone, and how many may be there."""

    new: Sequence[Diagnostic]
    gone: int
    not_comparable: int


def diff_baseline(batch: Batch, kept: Sequence[BaselineEntry]) -> tuple[Answer[HeldFindings], BaselineDiff]:
    """The findings of a batch, and what became of those of a baseline. Raises StoreCorrupt."""
    answer = all_findings(batch)
    pairs = match_baseline(kept, answer.found.kept)
    known = {pair.found for pair in pairs}
    found = [each for place, each in enumerate(answer.found.findings) if place not in known]
    unknown = len(_not_comparable(batch, kept, pairs))
    return answer, BaselineDiff(found, len(kept) - len(pairs) - unknown, unknown)


def _not_comparable(
    batch: Batch, lines: Sequence[BaselineEntry], pairs: Sequence[BaselineEntryPair]
) -> list[BaselineEntry]:
    """The lines of a baseline that are no finding's, and might be were all looked at as it was. Raises StoreCorrupt."""
    paired = {pair.line for pair in pairs}
    left: dict[bytes, list[BaselineEntry]] = defaultdict(list)
    for place, each in enumerate(lines):
        if place not in paired:
            left[each.path].append(each)
    if not left:
        return []
    reach = _Reach(batch.question, left)
    return [each for path, of_path in left.items() for each in reach.not_comparable(path, of_path)]


class _Reach:
    """What a batch has looked at, of some paths."""

    def __init__(self, question: BatchQuery, paths: Iterable[bytes]) -> None:
        self._records = question.records
        self._stand = BatchContext(self._records, paths)
        self._tellers = Tellers(question)
        self._choice = FileSelection.of(self._records)
        self._of_tools: dict[str, list[str]] = {}

    def not_comparable(self, path: bytes, lines: Sequence[BaselineEntry]) -> Iterable[BaselineEntry]:
        """The lines of a path that the batch need not have, though nothing was mended. Raises StoreCorrupt.

        The path is none of it, or left out; no task tells of the tool, or it has not come to an end there, or has the
        rule off; or the file is not looked at as a whole, and the line is in it.
        """
        entry = self._records.snapshot.entry(path)
        if not self._stand.looks_at(path) or (entry is None and self._choice.leaves_out(path)):
            return lines
        if entry is None:
            return ()
        hashes: set[str] = set()
        file = self._stand.file(path)
        if file is not None and is_looked_at_in_part(file):
            content = self._records.read_object(entry)
            hashes = {hash_of(b"".join(line.split())) for line in content.split(b"\n")}
        return [each for each in lines if each.hash in hashes or not self._is_looked_for(each)]

    def _is_looked_for(self, each: BaselineEntry) -> bool:
        """Whether all was done that could tell a finding."""
        if each.tool not in self._of_tools:
            self._of_tools[each.tool] = self._tellers.of(each.tool)
        tasks = self._of_tools[each.tool]
        return bool(tasks) and not any(
            self._stand.has_off(task, (each.tool, each.code), each.path) or not self._stand.has_result(task, each.path)
            for task in tasks
        )


def _whole(answer: Answer[HeldFindings]) -> Answer[HeldFindings]:
    if answer.shortfall is not None:
        raise answer.shortfall
    return answer


def _check_place(batch: Batch, path: Path) -> None:
    store = os.path.realpath(batch.question.store.root)
    if Path(os.path.realpath(path)).is_relative_to(store):
        raise InvalidInput(f"{display_path(os.fsencode(path))} is in the store", hint="choose a file outside the store")
    if not path.parent.is_dir():
        raise InvalidInput(f"no such directory: {display_path(os.fsencode(path.parent))}")
