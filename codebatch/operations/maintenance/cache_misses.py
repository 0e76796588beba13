"""Explanation of cache misses: why codebatch executed tasks although older batches exist."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidInput, StoreError, UnknownId
from codebatch.model.analysis.result_key import PlanItems, result_key
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path, path_row
from codebatch.model.outcome import HolderId, TaskOutcome
from codebatch.model.plan import Plan, PlannedTask, visible_contexts
from codebatch.model.shard import ProjectWork, Shard
from codebatch.model.task import JsonValue
from codebatch.operations import NoteCallback
from codebatch.operations.queries.batch_query import find_item
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.completeness import Completeness, tasks_completeness
from codebatch.query.sources.records import BatchRecords
from codebatch.scheduling.analysis.chains import ChainLink
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.bases import open_base
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.untrusted import untrusted_keys

_PATHS_SHOWN_MAX = 3
VALUE_CHARACTERS_MAX = 200
"""Maximum length of a displayed value in characters. Longer values are truncated and end with `…`."""

MissCause = Literal[
    "no_older_batch",
    "reuse_off",
    "retry_after_failure",
    "unknown",
    "new_file",
    "new_task",
    "version",
    "setting",
    "tool",
    "program",
    "implementation",
    "needed_task",
    "files",
    "paths",
    "content",
    "file_mode",
    "context",
    "no_result",
    "outside_key",
    "damaged",
    "untrusted",
]
"""Causes of a miss, in the order in which they are looked for: the later the cause, the more similar the base."""

_CAUSES: tuple[MissCause, ...] = get_args(MissCause)

TaskInputs = dict[tuple[MissCause, str], str | None]
"""The values of the inputs of a task as text, by cause and name, in the order of the comparison."""


class MissReason(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why `count` results were executed instead of reused: the first input that differs from the base.

    - `name`: the name of this input, such as the setting `table.key`, a tool, a context or a task, or a description.
    - `old`, `new`: its values as text in the base and in the batch, or null if missing. Values of files are not given.
    - `others`: the number of other inputs with the same cause that differ, such as settings.
    - `base`: the older batch that was compared, or empty if there is none.
    - `paths`: the first files with such results.
    """

    cause: MissCause
    name: str = ""
    old: str | None = None
    new: str | None = None
    others: int = 0
    base: str = ""
    count: int = 0
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
    batch_completeness = tasks_completeness(records, chosen_tasks, reports_failures=True)
    answer = MissesAnswer(
        batch_id=batch.id,
        complete=batch_completeness.is_complete,
        percent=batch_completeness.percent,
        bases=batch.about.bases,
        tasks=tuple(explainer.explain(planned, item) for planned in records.plan.tasks if planned.name in chosen_tasks),
    )
    return answer, batch_completeness


def task_inputs(plan: Plan, programs: Mapping[str, Digest], name: str) -> TaskInputs:
    """Return the inputs of a task that are equal for all files, or no inputs if the plan does not have the task."""
    tasks = {task.name: task for task in plan.tasks}
    if name not in tasks:
        return {}
    task = tasks[name]
    inputs: TaskInputs = {
        ("version", ""): task.version,
        **{("setting", key): value for key, value in _flatten(task.config)},
        **{("tool", tool): version for tool, version in task.tools.items()},
        ("program", ""): programs.get(name),
        ("implementation", ""): task.implementation_digest,
    }
    if task.scope == "project":
        inputs |= {("needed_task", need): tasks[need].key for need in task.needs}
        inputs["files", ""] = plan.snapshot_digest
        inputs["paths", ""] = ", ".join(map(display_path, plan.paths))
    return inputs


def first_difference(old: TaskInputs, new: TaskInputs) -> MissReason | None:
    """Return the first input of a task that differs from an older batch, or None. `old` is empty without this task."""
    if not old:
        return MissReason(cause="new_task")
    differing = [key for key in new | old if old.get(key) != new.get(key)]
    if not differing:
        return None
    cause, name = key = differing[0]
    others = sum(other == cause for other, _ in differing) - 1
    return MissReason(cause=cause, name=name, old=_cut_value(old.get(key)), new=_cut_value(new.get(key)), others=others)


def item_difference(
    new: PlanItems, item: int, old: PlanItems, place: int, contexts: Iterable[str]
) -> MissReason | None:
    """Return the first difference between an item and the item with the same path in an older plan.

    `item` is the index of the item in the new plan, `place` in the old plan. Of the contexts, only `contexts` count.
    """
    new_entry, old_entry = new.entries[item], old.entries[place]
    if new_entry != old_entry:
        return MissReason(cause="file_mode" if new_entry.object == old_entry.object else "content")
    differing = (name for name in sorted(contexts) if _context(new, name, item) != _context(old, name, place))
    name = next(differing, None)
    return None if name is None else MissReason(cause="context", name=name)


class _ComparedBase:
    """A base of the batch that could be opened, with its items, and the difference of each task of the batch."""

    def __init__(self, records: BatchRecords, batch_id: str) -> None:
        """Read the plan and items of a base. Raises UnknownId or StoreError."""
        self.results = base = open_base(records.store, batch_id)
        new, programs = records.plan, records.batch.about.programs
        self.differences = {
            name: first_difference(task_inputs(base.plan, base.programs, name), task_inputs(new, programs, name))
            for name in new.task_names
        }
        self.items = self.results.items()
        self.places = {entry.path: place for place, entry in enumerate(self.items.entries)}

    def find_item_miss(self, task: str, place: int) -> MissReason | None:
        """Return why the result of an item cannot be reused, or None if it can. Raises StoreError."""
        results = self.results.results_at(task, place)
        if results is None:
            return MissReason(cause="no_result", name=self.results.item_state(task, place) or "not run")
        if results.uncovered_inputs:
            return MissReason(cause="outside_key", name=results.uncovered_inputs)
        self.results.read_lines(task, place, place + 1)
        return None

    def find_project_miss(self, needed: Iterable[str]) -> MissReason | None:
        """Return why the results of the needed tasks cannot be reused, or None if they can. Raises StoreError."""
        for name in sorted(needed):
            if not self.results.has_all_results(name):
                return MissReason(cause="no_result", name=name)
            for part in self.results.task_results(name):
                if part.uncovered_inputs:
                    return MissReason(cause="outside_key", name=f"{name}: {part.uncovered_inputs}")
        return None


class _MissExplainer:
    """The state that explains the misses of one batch."""

    def __init__(self, records: BatchRecords, catalogue: TaskCatalogue) -> None:
        self._batch = batch = records.batch
        self._plan = records.plan
        self._items = PlanItems(records.items, records.plan.contexts)
        self._never_reused = {name for name in catalogue.locations if catalogue.unkeyed_input(name)}
        self._untrusted = untrusted_keys(records.store)
        self._contexts = visible_contexts(self._plan.tasks)
        self._ledger: OutcomeLedger = load_ledger(self._plan, OutcomeRegisters(batch.files, batch.root))
        self._outputs = current_outputs(batch)
        self._bases: dict[str, _ComparedBase] = {}
        for batch_id in batch.about.bases:
            with contextlib.suppress(UnknownId, StoreError):
                self._bases[batch_id] = _ComparedBase(records, batch_id)

    def explain(self, task: PlannedTask, wanted: int | None) -> TaskMisses:
        """Return the misses of a task, for one file if `wanted` is its item."""
        done = 0
        misses: list[tuple[MissReason, int | None]] = []
        for work in self._plan.shards if task.scope == "file" else (ProjectWork(task.name),):
            for link in self._outcome_links(work, task.name):
                start = work.start if isinstance(work, Shard) else 0
                items = range(start + link.start, start + link.end)
                if link.type != "cancelled" and (wanted is None or wanted in items):
                    done += len(items)
                    misses += self._link_misses(task, link, items)
        executed = len(misses)
        if wanted is not None:
            misses = [miss for miss in misses if miss[1] in (wanted, None)][:1]
            done, executed = min(done, 1), sum(item == wanted for _, item in misses)
        items_by_reason: dict[MissReason, list[int | None]] = {}
        for reason, item in misses:
            items_by_reason.setdefault(reason, []).append(item)
        reasons = [
            replace(
                reason,
                count=len(items),
                paths=tuple(
                    path_row(self._items.entries[item].path) for item in items[:_PATHS_SHOWN_MAX] if item is not None
                ),
            )
            for reason, items in items_by_reason.items()
        ]
        reasons.sort(key=lambda reason: -reason.count)
        return TaskMisses(task=task.name, reused=done - len(misses), executed=executed, reasons=tuple(reasons))

    def _outcome_links(self, work: Shard | ProjectWork, task: str) -> list[ChainLink]:
        """Return the existing outcomes of a task for a shard or the project.

        A settled batch keeps only merged outputs, no outcomes. For such a batch, one outcome is made from the counts of
        its outputs.
        """
        if isinstance(work, ProjectWork) and self._ledger.open_units(work.id):
            return []
        links = list(self._ledger.iter_links(work.id, task))
        output = self._outputs.manifest.task_output(task) if self._outputs is not None else None
        if not links and output is not None:
            shards = [shard for shard in output.shards if isinstance(work, ProjectWork) or shard.shard == work.id]
            reused = sum(shard.reused for shard in shards)
            outcome = TaskOutcome(shard=work.id, task=task, start=0, end=work.items, type="result", reused=reused)
            links = [ChainLink(0, work.items, "result", 1, HolderId(""), outcome)]
        return links

    def _link_misses(self, task: PlannedTask, link: ChainLink, items: range) -> list[tuple[MissReason, int | None]]:
        """Return the results of an outcome that were executed, with their items. None stands for an unknown item."""
        outcome = link.outcome
        if outcome.reused >= len(items) or any(part.file for part in outcome.parts):
            return []
        compared = [[self._compare(task, item, base) for base in self._bases.values()] for item in items]
        if outcome.reused and sum(None in reasons for reasons in compared) != outcome.reused:
            return [(MissReason(cause="unknown"), None)] * (len(items) - outcome.reused)
        return [
            (self._choose_reason(task, link, reasons), item if task.scope == "file" else None)
            for item, reasons in zip(items, compared, strict=True)
            if not outcome.reused or None not in reasons
        ]

    def _compare(self, task: PlannedTask, item: int, base: _ComparedBase) -> MissReason | None:
        """Return why a base has no result for an item that can be reused, or None if it has one."""
        difference = base.differences[task.name]
        try:
            if task.scope == "project":
                return difference or base.find_project_miss(self._plan.needed_for(task.name))
            place = base.places.get(self._items.entries[item].path)
            if place is None:
                return MissReason(cause="new_file")
            contexts = self._contexts[task.name]
            item_miss = difference or item_difference(self._items, item, base.items, place, contexts)
            return item_miss or base.find_item_miss(task.name, place)
        except StoreError:
            return MissReason(cause="damaged")

    def _choose_reason(self, task: PlannedTask, link: ChainLink, compared: Sequence[MissReason | None]) -> MissReason:
        """Return the reason that best explains why a result was executed. `compared` has a reason for each base."""
        if not self._batch.about.bases:
            return MissReason(cause="no_older_batch")
        if task.name in self._never_reused:
            return MissReason(cause="reuse_off")
        if link.round > 1:
            return MissReason(cause="retry_after_failure")
        if None in compared:
            return self._untrusted_reason(task)
        reasons = [replace(reason, base=base) for base, reason in zip(self._bases, compared, strict=True) if reason]
        return max(reasons, key=lambda reason: _CAUSES.index(reason.cause), default=MissReason(cause="unknown"))

    def _untrusted_reason(self, task: PlannedTask) -> MissReason:
        needed = self._plan.needed_for(task.name) if task.scope == "project" else {task.name}
        keys = {planned.name: result_key(planned) for planned in self._plan.tasks if planned.name in needed}
        for name, key in sorted(keys.items()):
            if key in self._untrusted:
                return MissReason(cause="untrusted", name=name, old=key, new=key)
        return MissReason(cause="unknown")


def _flatten(config: Mapping[str, JsonValue], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", msgspec.json.encode(value, order="sorted").decode()


def _context(items: PlanItems, name: str, index: int) -> bytes | None:
    table = items.contexts.get(name)
    return None if table is None else table.values[table.items[index]]


def _cut_value(text: str | None) -> str | None:
    return text if text is None or len(text) <= VALUE_CHARACTERS_MAX else f"{text[: VALUE_CHARACTERS_MAX - 1]}…"
