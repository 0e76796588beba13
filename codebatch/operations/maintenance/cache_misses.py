"""Why results of a batch were executed and not taken over from older ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidInput, StoreError, UnknownId
from codebatch.model.analysis.cache_misses import (
    Differences,
    FieldDifference,
    item_differences,
    nearest,
    project_differences,
    resting_on,
    task_differences,
    without_values_of_files,
)
from codebatch.model.analysis.result_key import Items, result_key, same_items
from codebatch.model.entry import path_row
from codebatch.model.outcome import HolderId, Outcome
from codebatch.model.plan import PlannedTask, contexts_seen
from codebatch.model.shard import ProjectWork, Shard
from codebatch.operations import Note
from codebatch.operations.queries.batch_query import find_item
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.completeness import Completeness, completeness
from codebatch.query.sources.records import BatchRecords
from codebatch.scheduling.analysis.chains import Link
from codebatch.scheduling.analysis.ledger import Ledger
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.bases import ReuseBase, open_base
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import Outcomes
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.untrusted import untrusted_keys

_PATHS_SHOWN_MAX = 3


class MissReason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason why `count` results were executed instead of reused. `paths` lists the first files with such results.

    `base` is the older batch that was compared, or empty if there is none. `differences` are the inputs that differ.
    Values of inputs that differ per file are given only if a single FILE was requested.
    """

    base: str
    differences: Differences
    count: int
    paths: tuple[dict[str, str], ...] = ()


class TaskMisses(msgspec.Struct, frozen=True, kw_only=True):
    """The cache use of a task: how many results were reused and executed, and the reasons, the most frequent first."""

    task: str
    reused: int
    executed: int
    reasons: tuple[MissReason, ...]


class MissesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch explain-miss`.

    `bases` are the older batches from which results could be reused. `complete` is set if all results of the tasks have
    ended. Otherwise, `percent` is the percentage of results that have ended.
    """

    batch_id: str
    complete: bool
    percent: float
    bases: tuple[str, ...]
    tasks: tuple[TaskMisses, ...]


def explain_misses(
    store: StoreDir,
    batch: BatchDir,
    catalogue: TaskCatalogue,
    *,
    path: str | None = None,
    task: str | None = None,
    note: Note,
) -> tuple[MissesAnswer, Completeness]:
    """Hold the plan and entries of a batch against those of its bases, as they are now; and how far its tasks are.

    Of all its files or of one, of all its tasks or of one. Raises InvalidInput or StoreCorrupt.
    """
    records = BatchRecords(store, batch)
    chosen = records.choose_tasks(task)
    item: int | None = None
    if path is not None:
        _, item = find_item(records, path, note)
        of_files = tuple(name for name in chosen if name not in records.plan.project_tasks)
        if not of_files:
            raise InvalidInput(
                f"{', '.join(chosen)} runs once per project, not per file", hint="run the command without FILE"
            )
        chosen = of_files
    asked = _Asked(records, catalogue)
    found = []
    for planned in records.plan.tasks:
        if planned.name in chosen:
            of = asked.of_project(planned) if planned.scope == "project" else asked.of_files(planned, item)
            found.append(of)
    whole = completeness(records, chosen, tells_failures=True)
    answer = MissesAnswer(
        batch_id=batch.id,
        complete=whole.is_complete,
        percent=whole.percent,
        bases=batch.about.bases,
        tasks=tuple(found),
    )
    return answer, whole


class _Old:
    """A base as it can be compared: whole, or by what is wrong with it."""

    def __init__(self, batch_id: str, base: ReuseBase) -> None:
        """Raises StoreError."""
        self.id = batch_id
        self.base = base
        self.tasks = {task.name: task for task in base.plan.tasks}
        self.items = base.items()

    @cached_property
    def places(self) -> dict[bytes, int]:
        return {entry.path: place for place, entry in enumerate(self.items.entries)}


class _Miss(NamedTuple):
    """`item` is None of a project task, or where it is not known which item it was."""

    base: str
    differences: Differences
    item: int | None


_REUSE = (FieldDifference(field="reuse", new="false"),)
_NO_BASES = (FieldDifference(field="bases"),)
_ROUND = (FieldDifference(field="round"),)
_NOT_TAKEN = (FieldDifference(field="not_taken"),)
_UNKNOWN = (FieldDifference(field="unknown"),)
_DAMAGED = (FieldDifference(field="base", old="damaged"),)
_LOST = (FieldDifference(field="base", old="gone"),)


_Compared = Sequence[tuple[str, Differences]]
"""How work compares with each base, by its id. Without a difference the base has its result."""


def _is_served_by(compared: _Compared) -> bool:
    """Whether a base has it."""
    return any(not differences for _, differences in compared)


class _Asked:
    """A batch that is asked."""

    def __init__(self, records: BatchRecords, catalogue: TaskCatalogue) -> None:
        self._records = records
        self._plan = records.plan
        self._items = Items(records.items, records.plan.contexts)
        self._not_reused = {name for name, place in catalogue.own_places.items() if not place.reuse}
        self._untrusted = untrusted_keys(records.store)
        self._seen = contexts_seen(self._plan.tasks)
        batch = records.batch
        self._ledger: Ledger = load_ledger(self._plan, Outcomes(batch.files, batch.root))
        self._outputs = current_outputs(batch)
        self._old: list[_Old] = []
        self._unsound: list[tuple[str, Differences]] = []
        for batch_id in batch.about.bases:
            try:
                self._old.append(_Old(batch_id, open_base(records.store, batch_id)))
            except UnknownId:
                self._unsound.append((batch_id, _LOST))
            except StoreError:
                self._unsound.append((batch_id, _DAMAGED))

    def of_files(self, task: PlannedTask, item: int | None) -> TaskMisses:
        """Of all files, or of one."""
        comparison = _PlanComparison(self._items, self._seen[task.name], task, self._old)
        done = 0
        misses: list[_Miss] = []
        for shard in self._plan.shards:
            for link in self._links(shard, task.name):
                first, last = shard.start + link.start, shard.start + link.end
                if link.type == "cancelled" or not (item is None or first <= item < last):
                    continue
                done += last - first
                misses += self._of_link(task, first, link, comparison)
        if item is None:
            return self._told(task.name, done - len(misses), misses)
        found = [miss for miss in misses if miss.item == item] or [miss for miss in misses if miss.item is None][:1]
        told = self._told(task.name, int(done > 0) - len(found), found, is_of_one=True)
        return told if found and found[0].item == item else replace(told, executed=0)

    def of_project(self, task: PlannedTask) -> TaskMisses:
        """Of the project."""
        work = ProjectWork(task.name)
        links = () if self._ledger.open_units(work.id) else self._links(work, task.name)
        link = next((link for link in links if link.type != "cancelled"), None)
        if link is None:
            return TaskMisses(task=task.name, reused=0, executed=0, reasons=())
        if link.outcome.reused or any(part.file for part in link.outcome.parts):
            return TaskMisses(task=task.name, reused=1, executed=0, reasons=())
        base, differences = self._chosen(task, link, [(old.id, self._of_project(task, old)) for old in self._old])
        return self._told(task.name, 0, [_Miss(base, differences, None)], is_of_one=True)

    def _links(self, work: Shard | ProjectWork, task: str) -> list[Link]:
        """The outcomes by now. Where a batch is settled and has none left, what its outputs say of all in one."""
        links = list(self._ledger.walk(work.id, task))
        output = self._outputs.manifest.task(task) if self._outputs is not None else None
        if not links and output is not None:
            of_work = [shard for shard in output.shards if isinstance(work, ProjectWork) or shard.shard == work.id]
            served = sum(shard.reused for shard in of_work)
            outcome = Outcome(shard=work.id, task=task, start=0, end=work.items, type="result", reused=served)
            links = [Link(0, work.items, "result", 1, HolderId(""), outcome)]
        return links

    def _of_link(self, task: PlannedTask, first: int, link: Link, comparison: _PlanComparison) -> list[_Miss]:
        """Those of an outcome's items that were executed; `first` is its first item in the plan."""
        served = link.outcome.reused
        every = range(first, first + link.end - link.start)
        if served == len(every):
            return []
        found = [comparison.of(item) for item in every]
        if sum(map(_is_served_by, found)) != served:
            found = [comparison.read(item, each) for item, each in zip(every, found, strict=True)]
            if served and sum(map(_is_served_by, found)) != served:
                return [_Miss("", _UNKNOWN, None)] * (len(every) - served)
        return [
            _Miss(*self._chosen(task, link, each), item)
            for item, each in zip(every, found, strict=True)
            if not served or not _is_served_by(each)
        ]

    def _chosen(self, task: PlannedTask, link: Link, found: _Compared) -> tuple[str, Differences]:
        """Why a result was executed, which so compares with what bases have."""
        if not self._records.batch.about.bases:
            return "", _NO_BASES
        if task.name in self._not_reused:
            return "", _REUSE
        if link.round > 1:
            return "", _ROUND
        base, differences = nearest([*found, *self._unsound])
        return base, differences or self._of_untrusted(task) or _NOT_TAKEN

    def _of_untrusted(self, task: PlannedTask) -> Differences:
        needed = self._plan.needed_for(task.name) if task.scope == "project" else {task.name}
        keys = {each.name: result_key(each) for each in self._plan.tasks if each.name in needed}
        found = sorted(name for name, key in keys.items() if key in self._untrusted)
        return tuple(FieldDifference(field="untrusted", name=name, old=keys[name]) for name in found)

    def _of_project(self, task: PlannedTask, old: _Old) -> Differences:
        if task.name not in old.tasks:
            return (FieldDifference(field="task"),)
        found = project_differences(self._plan, old.base.plan, task.name)
        if found:
            return found
        try:
            needed = sorted(self._plan.needed_for(task.name))
            lacking = [FieldDifference(field="result", name=name) for name in needed if not old.base.has_all(name)]
            marks = {name: each.unkeyed for name in needed for each in old.base.held(name) if each.unkeyed}
        except StoreError:
            return _DAMAGED
        return (*lacking, *(resting_on(mark, name) for name, mark in marks.items()))

    def _told(self, task: str, served: int, misses: Sequence[_Miss], *, is_of_one: bool = False) -> TaskMisses:
        grouped: dict[tuple[str, Differences], list[int | None]] = {}
        for miss in misses:
            differences = miss.differences if is_of_one else without_values_of_files(miss.differences)
            grouped.setdefault((miss.base, differences), []).append(miss.item)
        reasons = [
            MissReason(
                base=base,
                differences=differences,
                count=len(items),
                paths=tuple(
                    path_row(self._items.entries[item].path) for item in items[:_PATHS_SHOWN_MAX] if item is not None
                ),
            )
            for (base, differences), items in grouped.items()
        ]
        most = tuple(sorted(reasons, key=lambda reason: -reason.count))
        return TaskMisses(task=task, reused=served, executed=len(misses), reasons=most)


class _PlanComparison:
    """The items of a plan, as one task sees them, against those of the bases."""

    def __init__(self, items: Items, contexts: frozenset[str], task: PlannedTask, bases: Sequence[_Old]) -> None:
        self._items = items
        self._contexts = contexts
        self._task = task
        self._bases = bases
        self._of_task = [
            task_differences(task, old.tasks[task.name]) if task.name in old.tasks else (FieldDifference(field="task"),)
            for old in bases
        ]
        self._same = [same_items(items, old.items, contexts) for old in bases]

    def of(self, item: int) -> _Compared:
        """How an item compares with each base."""
        return [
            (old.id, self._against(old, of_task, same[item], item))
            for old, of_task, same in zip(self._bases, self._of_task, self._same, strict=True)
        ]

    def read(self, item: int, compared: _Compared) -> _Compared:
        """The same, where a base has nothing that cannot be read."""
        return [
            (base, differences or self._reading(old, same[item]))
            for (base, differences), old, same in zip(compared, self._bases, self._same, strict=True)
        ]

    def _against(self, old: _Old, of_task: Differences, same: int, item: int) -> Differences:
        if same < 0:
            place = old.places.get(self._items.entries[item].path)
            if place is None:
                return (*of_task, FieldDifference(field="path"))
            return (*of_task, *item_differences(self._items, item, old.items, place, self._contexts))
        if of_task:
            return of_task
        try:
            state, unkeyed = old.base.state(self._task.name, same), old.base.unkeyed(self._task.name, same)
        except StoreError:
            return _DAMAGED
        if unkeyed:
            return (resting_on(unkeyed),)
        return () if state == "result" else (FieldDifference(field="result", old=state),)

    def _reading(self, old: _Old, place: int) -> Differences:
        try:
            old.base.lines(self._task.name, place, place + 1)
        except StoreError:
            return _DAMAGED
        return ()
