"""Explanation of cache misses: why codebatch executed tasks although older batches exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidInput, StoreError, UnknownId
from codebatch.model.analysis.cache_misses import (
    FieldDifference,
    FieldDifferences,
    fewest_differences,
    item_differences,
    program_difference,
    project_differences,
    task_differences,
    uncovered_input_difference,
    without_item_values,
)
from codebatch.model.analysis.result_key import PlanItems, result_key, same_items
from codebatch.model.digest import Digest
from codebatch.model.entry import path_row
from codebatch.model.outcome import HolderId, TaskOutcome
from codebatch.model.plan import PlannedTask, visible_contexts
from codebatch.model.shard import ProjectWork, Shard
from codebatch.operations import NoteCallback
from codebatch.operations.queries.batch_query import find_item
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.completeness import Completeness, tasks_completeness
from codebatch.query.sources.records import BatchRecords
from codebatch.scheduling.analysis.chains import ChainLink
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.bases import ReuseBase, open_base
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.untrusted import untrusted_keys

_PATHS_SHOWN_MAX = 3


class MissReason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason why `count` results were executed instead of reused.

    - `paths`: the first files with such results.
    - `base`: the older batch that was compared, or empty if there is none.
    - `differences`: the inputs that differ. The values of inputs that differ per file are given only if a single FILE
      was requested.
    """

    base: str
    differences: FieldDifferences
    count: int
    paths: tuple[dict[str, str], ...] = ()


class TaskMisses(msgspec.Struct, frozen=True, kw_only=True):
    """The cache use of a task: how many results were reused, how many were executed, and why. The most frequent reasons
    come first.
    """

    task: str
    reused: int
    executed: int
    reasons: tuple[MissReason, ...]


class MissesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch explain-miss`.

    - `bases`: the older batches from which results could be reused.
    - `complete`: whether all results of the tasks have ended.
    - `percent`: the percentage of results that have ended.
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
    note: NoteCallback,
) -> tuple[MissesAnswer, Completeness]:
    """Explain why results of a batch were executed. Return the answer and its completeness.

    The plan and files of the batch are compared with its bases, as they are now. `path` restricts the answer to one
    file, `task` to one task. Raises InvalidInput or StoreCorrupt.
    """
    records = BatchRecords(store, batch)
    chosen_tasks = records.choose_tasks(task)
    item: int | None = None
    if path is not None:
        _, item = find_item(records, path, note)
        file_tasks = tuple(name for name in chosen_tasks if name not in records.plan.project_tasks)
        if not file_tasks:
            raise InvalidInput(
                f"tasks that run once per project have no results of a file: {', '.join(chosen_tasks)}",
                hint="run the command without FILE",
            )
        chosen_tasks = file_tasks
    explainer = _MissExplainer(records, catalogue)
    misses_by_task = []
    for planned in records.plan.tasks:
        if planned.name in chosen_tasks:
            task_misses = (
                explainer.explain_project(planned)
                if planned.scope == "project"
                else explainer.explain_files(planned, item)
            )
            misses_by_task.append(task_misses)
    batch_completeness = tasks_completeness(records, chosen_tasks, reports_failures=True)
    answer = MissesAnswer(
        batch_id=batch.id,
        complete=batch_completeness.is_complete,
        percent=batch_completeness.percent,
        bases=batch.about.bases,
        tasks=tuple(misses_by_task),
    )
    return answer, batch_completeness


class _ComparedBase:
    """A base of the batch that could be opened, with its plan and items."""

    def __init__(self, batch_id: str, base: ReuseBase) -> None:
        """Read the plan and items of a base. Raises StoreError."""
        self.id = batch_id
        self.base = base
        self.tasks = {task.name: task for task in base.plan.tasks}
        self.items = base.items()

    def task_differences(self, task: PlannedTask, programs: Mapping[str, Digest]) -> FieldDifferences:
        """Return the inputs of a task that differ from those of the base. `programs` are those of the new batch."""
        if task.name not in self.tasks:
            return (FieldDifference(field="task"),)
        return (
            *task_differences(task, self.tasks[task.name]),
            *program_difference(task.name, programs, self.base.programs),
        )

    @cached_property
    def item_places(self) -> dict[bytes, int]:
        return {entry.path: place for place, entry in enumerate(self.items.entries)}


class _Miss(NamedTuple):
    """A result that was executed. `item` is None for a project task, or if the item is unknown."""

    base: str
    differences: FieldDifferences
    item: int | None


_REUSE_IS_OFF = (FieldDifference(field="reuse", new="false"),)
_NO_BASES = (FieldDifference(field="bases"),)
_NEW_ROUND = (FieldDifference(field="round"),)
_RESULT_NOT_TAKEN = (FieldDifference(field="not_taken"),)
_UNKNOWN_REASON = (FieldDifference(field="unknown"),)
_BASE_DAMAGED = (FieldDifference(field="base", old="damaged"),)
_BASE_MISSING = (FieldDifference(field="base", old="gone"),)


_BaseDifferences = Sequence[tuple[str, FieldDifferences]]
"""Pairs of a base ID and the inputs in which an item or project differs from this base.

If no inputs differ for a base, that base has the result.
"""


def _has_result(compared: _BaseDifferences) -> bool:
    """Return whether at least one base has the result of the compared item or project."""
    return any(not differences for _, differences in compared)


class _MissExplainer:
    """The state that explains the misses of one batch."""

    def __init__(self, records: BatchRecords, catalogue: TaskCatalogue) -> None:
        self._records = records
        self._plan = records.plan
        self._items = PlanItems(records.items, records.plan.contexts)
        self._never_reused = {name for name in catalogue.locations if catalogue.unkeyed_input(name)}
        self._untrusted = untrusted_keys(records.store)
        self._contexts = visible_contexts(self._plan.tasks)
        batch = records.batch
        self._ledger: OutcomeLedger = load_ledger(self._plan, OutcomeRegisters(batch.files, batch.root))
        self._outputs = current_outputs(batch)
        self._bases: list[_ComparedBase] = []
        self._unusable_bases: list[tuple[str, FieldDifferences]] = []
        for batch_id in batch.about.bases:
            try:
                self._bases.append(_ComparedBase(batch_id, open_base(records.store, batch_id)))
            except UnknownId:
                self._unusable_bases.append((batch_id, _BASE_MISSING))
            except StoreError:
                self._unusable_bases.append((batch_id, _BASE_DAMAGED))

    def explain_files(self, task: PlannedTask, item: int | None) -> TaskMisses:
        """Return the misses of a file task, for all files or one."""
        programs = self._records.batch.about.programs
        comparison = _PlanComparison(self._items, self._contexts[task.name], task, self._bases, programs)
        done = 0
        misses: list[_Miss] = []
        for shard in self._plan.shards:
            for link in self._outcome_links(shard, task.name):
                first, last = shard.start + link.start, shard.start + link.end
                if link.type == "cancelled" or not (item is None or first <= item < last):
                    continue
                done += last - first
                misses += self._outcome_misses(task, first, link, comparison)
        if item is None:
            return self._make_task_misses(task.name, done - len(misses), misses)
        item_misses = [miss for miss in misses if miss.item == item] or [miss for miss in misses if miss.item is None][
            :1
        ]
        task_misses = self._make_task_misses(
            task.name, int(done > 0) - len(item_misses), item_misses, is_single_result=True
        )
        return task_misses if item_misses and item_misses[0].item == item else replace(task_misses, executed=0)

    def explain_project(self, task: PlannedTask) -> TaskMisses:
        """Return the miss of a project task, if it was executed."""
        work = ProjectWork(task.name)
        links = () if self._ledger.open_units(work.id) else self._outcome_links(work, task.name)
        link = next((link for link in links if link.type != "cancelled"), None)
        if link is None:
            return TaskMisses(task=task.name, reused=0, executed=0, reasons=())
        if link.outcome.reused or any(part.file for part in link.outcome.parts):
            return TaskMisses(task=task.name, reused=1, executed=0, reasons=())
        base, differences = self._choose_reason(
            task, link, [(old.id, self._base_differences(task, old)) for old in self._bases]
        )
        return self._make_task_misses(task.name, 0, [_Miss(base, differences, None)], is_single_result=True)

    def _outcome_links(self, work: Shard | ProjectWork, task: str) -> list[ChainLink]:
        """Return the existing outcomes of a task for a shard or the project.

        A settled batch keeps only merged outputs, no outcomes. For such a batch, one outcome is made from the counts of
        its outputs.
        """
        links = list(self._ledger.iter_links(work.id, task))
        output = self._outputs.manifest.task_output(task) if self._outputs is not None else None
        if not links and output is not None:
            shards = [shard for shard in output.shards if isinstance(work, ProjectWork) or shard.shard == work.id]
            reused = sum(shard.reused for shard in shards)
            outcome = TaskOutcome(shard=work.id, task=task, start=0, end=work.items, type="result", reused=reused)
            links = [ChainLink(0, work.items, "result", 1, HolderId(""), outcome)]
        return links

    def _outcome_misses(
        self, task: PlannedTask, first: int, link: ChainLink, comparison: _PlanComparison
    ) -> list[_Miss]:
        """Return the items whose results in an outcome were executed, not reused.

        `first` is the index in the plan of the first item of the outcome.
        """
        reused = link.outcome.reused
        items = range(first, first + link.end - link.start)
        if reused == len(items):
            return []
        comparisons = [comparison.compare_item(item) for item in items]
        if sum(map(_has_result, comparisons)) != reused:
            comparisons = [comparison.read(item, compared) for item, compared in zip(items, comparisons, strict=True)]
            if reused and sum(map(_has_result, comparisons)) != reused:
                return [_Miss("", _UNKNOWN_REASON, None)] * (len(items) - reused)
        return [
            _Miss(*self._choose_reason(task, link, compared), item)
            for item, compared in zip(items, comparisons, strict=True)
            if not reused or not _has_result(compared)
        ]

    def _choose_reason(
        self, task: PlannedTask, link: ChainLink, compared: _BaseDifferences
    ) -> tuple[str, FieldDifferences]:
        """Return the base and the differing inputs that best explain why a result was executed."""
        if not self._records.batch.about.bases:
            return "", _NO_BASES
        if task.name in self._never_reused:
            return "", _REUSE_IS_OFF
        if link.round > 1:
            return "", _NEW_ROUND
        base, differences = fewest_differences([*compared, *self._unusable_bases])
        return base, differences or self._untrusted_differences(task) or _RESULT_NOT_TAKEN

    def _untrusted_differences(self, task: PlannedTask) -> FieldDifferences:
        needed = self._plan.needed_for(task.name) if task.scope == "project" else {task.name}
        keys = {planned.name: result_key(planned) for planned in self._plan.tasks if planned.name in needed}
        untrusted = sorted(name for name, key in keys.items() if key in self._untrusted)
        return tuple(FieldDifference(field="untrusted", name=name, old=keys[name]) for name in untrusted)

    def _base_differences(self, task: PlannedTask, old: _ComparedBase) -> FieldDifferences:
        if task.name not in old.tasks:
            return (FieldDifference(field="task"),)
        differences = (
            *project_differences(self._plan, old.base.plan, task.name),
            *program_difference(task.name, self._records.batch.about.programs, old.base.programs),
        )
        if differences:
            return differences
        try:
            needed = sorted(self._plan.needed_for(task.name))
            missing = [
                FieldDifference(field="result", name=name) for name in needed if not old.base.has_all_results(name)
            ]
            marks = {
                name: part.uncovered_inputs
                for name in needed
                for part in old.base.task_results(name)
                if part.uncovered_inputs
            }
        except StoreError:
            return _BASE_DAMAGED
        return (*missing, *(uncovered_input_difference(mark, name) for name, mark in marks.items()))

    def _make_task_misses(
        self, task: str, reused: int, misses: Sequence[_Miss], *, is_single_result: bool = False
    ) -> TaskMisses:
        grouped: dict[tuple[str, FieldDifferences], list[int | None]] = {}
        for miss in misses:
            differences = miss.differences if is_single_result else without_item_values(miss.differences)
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
        return TaskMisses(task=task, reused=reused, executed=len(misses), reasons=most)


class _PlanComparison:
    """A comparison of the items of a plan with the items of each base, for one task."""

    def __init__(
        self,
        items: PlanItems,
        contexts: frozenset[str],
        task: PlannedTask,
        bases: Sequence[_ComparedBase],
        programs: Mapping[str, Digest],
    ) -> None:
        self._items = items
        self._contexts = contexts
        self._task = task
        self._bases = bases
        self._task_differences = [old.task_differences(task, programs) for old in bases]
        self._same_items = [same_items(items, old.items, contexts) for old in bases]

    def compare_item(self, item: int) -> _BaseDifferences:
        """Compare an item with each base, by cache key and by the state that the base recorded for the item.

        No results are read.
        """
        return [
            (old.id, self._compare_item(old, plan_differences, same[item], item))
            for old, plan_differences, same in zip(self._bases, self._task_differences, self._same_items, strict=True)
        ]

    def read(self, item: int, compared: _BaseDifferences) -> _BaseDifferences:
        """Read the result of an item from each base without differences.

        If the result cannot be read, add the damage as a difference. Return the completed comparison.
        """
        return [
            (base, differences or self._read_damage(old, same[item]))
            for (base, differences), old, same in zip(compared, self._bases, self._same_items, strict=True)
        ]

    def _compare_item(
        self, old: _ComparedBase, plan_differences: FieldDifferences, same: int, item: int
    ) -> FieldDifferences:
        if same < 0:
            place = old.item_places.get(self._items.entries[item].path)
            if place is None:
                return (*plan_differences, FieldDifference(field="path"))
            return (*plan_differences, *item_differences(self._items, item, old.items, place, self._contexts))
        if plan_differences:
            return plan_differences
        try:
            state, uncovered = (
                old.base.item_state(self._task.name, same),
                old.base.uncovered_inputs(self._task.name, same),
            )
        except StoreError:
            return _BASE_DAMAGED
        if uncovered:
            return (uncovered_input_difference(uncovered),)
        return () if state == "result" else (FieldDifference(field="result", old=state),)

    def _read_damage(self, old: _ComparedBase, place: int) -> FieldDifferences:
        try:
            old.base.read_lines(self._task.name, place, place + 1)
        except StoreError:
            return _BASE_DAMAGED
        return ()
