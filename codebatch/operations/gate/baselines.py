"""Baselines: files with the accepted findings of a project, for CI without a store (compare/baselines.py)."""

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
from codebatch.compare.absence.reasons import BatchContext, is_partially_checked
from codebatch.compare.baselines import (
    BaselineEntry,
    BaselineEntryPair,
    BaselineError,
    baseline_entry,
    decode_baseline,
    encode_baseline,
    line_hash,
    match_baseline,
)
from codebatch.compare.matching.findings import MatchableFinding
from codebatch.compare.matching.scopes import NO_SCOPES, have_scopes, read_scopes
from codebatch.compare.matching.texts import FileTexts
from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.entry import display_path
from codebatch.model.record import Diagnostic
from codebatch.operations.api.batch import Batch
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.tools import ToolTasks
from codebatch.system.files.files import RealFiles

BASELINE_BYTES_MAX = 256 << 20


class BaselineFindings(NamedTuple):
    """The findings of a batch, sorted by path and line, and the baseline entry of each finding."""

    findings: Sequence[Diagnostic]
    entries: Sequence[BaselineEntry]


class BaselineUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The update of a baseline: the number of its findings, and of those removed, moved and added; `excluded` are new
    ones that were not accepted. `not_comparable` ones stay, because they were checked differently.
    """

    findings: int
    removed: int
    moved: int
    added: int
    excluded: int
    not_comparable: int


def all_findings(batch: Batch) -> Answer[BaselineFindings]:
    """Return all findings of a batch with their baseline entries.

    Raises StoreCorrupt for damaged data, and if the content of a file is missing. Raises BatchIncomplete if findings
    are missing, unless the batch was opened with `partial`.
    """
    answer = batch.diagnostics()
    records = batch.question.records
    by_path: dict[bytes, list[Diagnostic]] = defaultdict(list)
    for finding in answer:
        by_path[finding.path_bytes].append(finding)
    scopes = read_scopes(records, by_path) if have_scopes(records) else {}
    findings: list[Diagnostic] = []
    matchable: list[tuple[bytes, MatchableFinding]] = []
    for path, diagnostics in by_path.items():
        entry = records.snapshot.entry(path)
        if entry is None:
            raise StoreCorrupt(
                f"a record refers to file {display_path(path)}, which is not in the snapshot of the batch"
            )
        texts, scopes_of_file = FileTexts(records.read_object(entry).split(b"\n")), scopes.get(path, NO_SCOPES)
        diagnostics.sort(key=lambda finding: (finding.line, finding.column))
        findings += diagnostics
        matchable += (
            (path, texts.make_matchable(finding, scopes_of_file.scope_at(finding.line))) for finding in diagnostics
        )
    batch_findings = BaselineFindings(findings, baseline_entry(matchable))
    return Answer(question=answer.question, result=batch_findings, completeness=answer.completeness)


def read_baseline(path: Path) -> list[BaselineEntry]:
    """Return the entries of a baseline file.

    Raises InvalidInput if the file is missing or invalid. For an invalid file, the message has the line number.
    """
    displayed_path = display_path(os.fsencode(path))
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(f"{displayed_path} is not a regular file")
            data = file.read(BASELINE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        hint = "create one with: codebatch baseline create FILE"
        raise InvalidInput(f"cannot read {displayed_path}: {reason}", hint=hint) from error
    if len(data) > BASELINE_BYTES_MAX:
        raise InvalidInput(f"{displayed_path} has more than {BASELINE_BYTES_MAX:,} bytes, the limit for baselines")
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
        raise InvalidInput(f"line {error.line} of {displayed_path} {error}", hint=hint) from error


def _open_nonblocking(path: str, flags: int) -> int:
    """Open a file without blocking. Opening a FIFO would otherwise wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def ignore_baseline_file(batch: Batch, path: Path) -> None:
    """Exclude a baseline file from the files whose changes make a batch stale. It is not source code."""
    directory, name = os.path.split(os.path.abspath(os.fsencode(path)))
    batch.question.ignored_paths = (os.path.join(os.path.realpath(directory), name),)


def create_baseline(batch: Batch, path: Path) -> Answer[int]:
    """Write a new baseline with all findings of a batch. Return the number of entries. On return the file is durable.

    Raises InvalidInput if the file exists, BatchIncomplete if findings are missing, StoreCorrupt or StoreUnwritable.
    BatchIncomplete is raised even with `partial`: with an incomplete baseline, accepted findings would appear new.
    """
    ignore_baseline_file(batch, path)
    if os.path.lexists(path):
        hint = "update it with: codebatch baseline update FILE"
        raise InvalidInput(f"{display_path(os.fsencode(path))} already exists", hint=hint)
    _check_baseline_path(batch, path)
    answer = _require_complete(all_findings(batch))
    RealFiles().write_atomic(path, encode_baseline(answer.result.entries))
    return Answer(question=answer.question, result=len({*answer.result.entries}), completeness=answer.completeness)


def update_baseline(batch: Batch, path: Path, *, accept_new: bool = False) -> Answer[BaselineUpdate]:
    """Update a baseline: remove fixed findings, update moved ones, and add new ones only if `accept_new` is set.

    On return the file is durable. Raises the errors of `create_baseline`, and InvalidInput if the file is not a
    baseline.
    """
    before = read_baseline(path)
    ignore_baseline_file(batch, path)
    _check_baseline_path(batch, path)
    answer = _require_complete(all_findings(batch))
    entries = answer.result.entries
    pairs = match_baseline(before, entries)
    known = {pair.finding_index for pair in pairs}
    new_entries = [entry for index, entry in enumerate(entries) if index not in known]
    not_comparable = _list_not_comparable(batch, before, pairs)
    updated = {*(entries[index] for index in known), *not_comparable, *(new_entries if accept_new else ())}
    data = encode_baseline(updated)
    if data != encode_baseline(before):
        RealFiles().write_atomic(path, data)
    update = BaselineUpdate(
        findings=len(updated),
        removed=len(before) - len(pairs) - len(not_comparable),
        moved=sum(pair.by != "all" for pair in pairs),
        added=len(new_entries) if accept_new else 0,
        excluded=0 if accept_new else len(new_entries),
        not_comparable=len(not_comparable),
    )
    return Answer(question=answer.question, result=update, completeness=answer.completeness)


def count_by_rule(entries: Sequence[BaselineEntry]) -> list[tuple[str, str, int, int]]:
    """Return (tool, code, number of findings, number of files) for each rule of a baseline, most findings first."""
    by_rule: dict[tuple[str, str], list[BaselineEntry]] = defaultdict(list)
    for entry in entries:
        by_rule[entry.tool, entry.code].append(entry)
    rows = [(*rule, len(entries), len({entry.path for entry in entries})) for rule, entries in by_rule.items()]
    return sorted(rows, key=lambda row: (-row[2], row[:2]))


class BaselineDiff(NamedTuple):
    """The differences of a batch from a baseline.

    They are the new findings, the number of fixed entries, and the number of entries that are not comparable.
    """

    new: Sequence[Diagnostic]
    gone: int
    not_comparable: int


def diff_baseline(batch: Batch, entries: Sequence[BaselineEntry]) -> tuple[Answer[BaselineFindings], BaselineDiff]:
    """Return the findings of a batch, and their differences from a baseline. Raises StoreCorrupt."""
    answer = all_findings(batch)
    pairs = match_baseline(entries, answer.result.entries)
    known = {pair.finding_index for pair in pairs}
    new_findings = [finding for index, finding in enumerate(answer.result.findings) if index not in known]
    not_comparable = len(_list_not_comparable(batch, entries, pairs))
    return answer, BaselineDiff(new_findings, len(entries) - len(pairs) - not_comparable, not_comparable)


def _list_not_comparable(
    batch: Batch, lines: Sequence[BaselineEntry], pairs: Sequence[BaselineEntryPair]
) -> list[BaselineEntry]:
    """Return the entries without a matching finding whose absence does not mean that they were fixed.

    They are entries for which the batch did not perform the same check. Raises StoreCorrupt.
    """
    matched = {pair.line for pair in pairs}
    unmatched: dict[bytes, list[BaselineEntry]] = defaultdict(list)
    for index, entry in enumerate(lines):
        if index not in matched:
            unmatched[entry.path].append(entry)
    if not unmatched:
        return []
    reach = _CheckedScope(batch.question, unmatched)
    return [entry for path, entries in unmatched.items() for entry in reach.not_comparable(path, entries)]


class _CheckedScope:
    """The tools and rules with which a batch checked some files."""

    def __init__(self, question: BatchQuery, paths: Iterable[bytes]) -> None:
        self._records = question.records
        self._context = BatchContext(self._records, paths)
        self._tasks_by_tool = ToolTasks(question)
        self._selection = FileSelection.from_records(self._records)
        self._tasks_of_tools: dict[str, list[str]] = {}

    def not_comparable(self, path: bytes, lines: Sequence[BaselineEntry]) -> Iterable[BaselineEntry]:
        """Return the entries of a path that may be missing in the batch although they were not fixed.

        Raises StoreCorrupt. Possible reasons:

        - The batch does not cover the path, or excludes it.
        - No task reports findings of the tool.
        - A task that reports findings of the tool has no result for the file, or its rule is disabled.
        - The file was checked only in part, and it still contains the line of the entry.
        """
        entry = self._records.snapshot.entry(path)
        if not self._context.covers(path) or (entry is None and self._selection.leaves_out(path)):
            return lines
        if entry is None:
            return ()
        hashes: set[str] = set()
        file = self._context.file(path)
        if file is not None and is_partially_checked(file):
            content = self._records.read_object(entry)
            hashes = {line_hash(b"".join(line.split())) for line in content.split(b"\n")}
        return [entry for entry in lines if entry.hash in hashes or not self._is_checked(entry)]

    def _is_checked(self, entry: BaselineEntry) -> bool:
        """Return whether the finding of an entry would be known if it still existed.

        This is true if every task that could report the finding has checked the file with the rule enabled.
        """
        if entry.tool not in self._tasks_of_tools:
            self._tasks_of_tools[entry.tool] = self._tasks_by_tool.reporting_tasks(entry.tool)
        tasks = self._tasks_of_tools[entry.tool]
        return bool(tasks) and not any(
            self._context.is_rule_off(task, (entry.tool, entry.code), entry.path)
            or not self._context.has_result(task, entry.path)
            for task in tasks
        )


def _require_complete(answer: Answer[BaselineFindings]) -> Answer[BaselineFindings]:
    if answer.shortfall is not None:
        raise answer.shortfall
    return answer


def _check_baseline_path(batch: Batch, path: Path) -> None:
    store = os.path.realpath(batch.question.store.root)
    if Path(os.path.realpath(path)).is_relative_to(store):
        raise InvalidInput(f"{display_path(os.fsencode(path))} is in the store", hint="choose a file outside the store")
    if not path.parent.is_dir():
        raise InvalidInput(f"no such directory: {display_path(os.fsencode(path.parent))}")
