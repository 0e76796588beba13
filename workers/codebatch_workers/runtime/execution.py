"""Execution of tasks on items. The results depend neither on the caller nor on how items are divided into units.

Each file passes through all tasks of a unit in plan order, while its syntax tree is in memory. A tool that takes many
files at a time is called once per unit. If a task raises an exception for an item, this task and all tasks that need it
fail for this item only. Findings pass `_finish_findings` before they are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import msgspec

from codebatch.errors import InvalidConfiguration, ToolMismatch
from codebatch.model.analysis.item_table import ITEM_BYTES_MAX
from codebatch.model.analysis.record_counting import count_lines, count_records
from codebatch.model.digest import Digest
from codebatch.model.outcome import OutcomeRegister, TaskOutcome, WorkUnit
from codebatch.model.plan import PlannedTask, visible_contexts
from codebatch.model.record import Diagnostic, Record
from codebatch.model.record_counts import RecordCounts, add_counts
from codebatch.model.shard import PROJECT_PATH, Shard
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import (
    check_planned_task,
    clear_package_caches,
    load_declaration,
    load_implementation,
)
from codebatch.plugins.user_tasks import exception_text
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store.damage import treating_damage_as_missing
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.results.outcomes import EncodedOutcome, encode_outcome, failed_outcome, join_parts
from codebatch.system.processes.process_state import ProcessState
from codebatch_workers.api.protocols import (
    BatchedFileTask,
    CallingFileTask,
    FileTask,
    IncrementalTask,
    ProjectTask,
    ReportingTask,
)
from codebatch_workers.runtime.batched_tasks import complete_files
from codebatch_workers.runtime.previous_batch import PreviousBatch
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.record_validation import LoadedTask, check_task, record_validator, with_default_names
from codebatch_workers.runtime.results import (
    NO_RECORDS,
    EncodedRecords,
    ReusedRecords,
    TaskFailure,
    TaskResult,
    UnitResults,
)
from codebatch_workers.runtime.shard_parts import (
    ShardAdopter,
    TermsKeeper,
    adopt_no_shard,
    keep_no_terms,
    make_shard_part,
    update_shard_part,
)
from codebatch_workers.runtime.task_calls import call_guarded
from codebatch_workers.runtime.task_environments import TaskEnvironments
from codebatch_workers.runtime.user_tasks import CustomTasks
from codebatch_workers.syntax.cells import with_cell_locations
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import exclude_suppressed, may_have_suppressions

_BUILT_IN_PREFIX = "codebatch_workers.tasks."
_NEEDED_TASK_FAILED = TaskFailure(reason="needs", evidence="a task that it needs failed on this file")

P = ParamSpec("P")
T = TypeVar("T")


class TaskRunner:
    """The tasks of a plan, loaded on first use."""

    def __init__(
        self,
        catalogue: TaskCatalogue,
        tasks: Sequence[PlannedTask],
        scratch: Path,
        objects: PackWriter | None = None,
        store: Path | None = None,
        keep: TermsKeeper | None = None,
        read_object: Callable[[Digest], bytes] | None = None,
        restart_limit: Callable[[], None] = lambda: None,
    ) -> None:
        """`store` is the store of the batch. Custom project tasks may read the store.

        `keep` stores terms for the index. For `read_object` and `restart_limit`, see TaskEnvironments.
        """
        self._environments = TaskEnvironments(catalogue, objects, read_object, restart_limit)
        self._catalogue = catalogue
        self._planned = {task.name: task for task in tasks}
        self._visible_contexts = visible_contexts(tasks)
        self._scratch = scratch
        self._objects = objects
        self._loaded: dict[str, LoadedTask] = {}
        self._custom_task_names: set[str] = set()
        self._validated: set[str] = set()
        self._with_findings: set[str] = set()
        self._validate_records = record_validator(objects, partial(self._environments.find_syntax_errors, scratch))
        self._custom_tasks = CustomTasks(catalogue, store, self._validate_records)
        self._encoder = msgspec.json.Encoder()
        self._frame_writer = FrameWriter()
        self._keep_terms = keep or keep_no_terms
        self._process_state = ProcessState()

    def set_up(self, tasks: Sequence[str]) -> None:
        """Load each of the given tasks that is not loaded yet.

        Raises InvalidConfiguration. Raises ToolMismatch if the implementation of a task has changed since the plan was
        made.
        """
        if not self._loaded.keys() >= set(tasks):
            clear_package_caches()
        for name in tasks:
            self._ready_task(name)

    def run_item(
        self, file: SourceFile, tasks: Sequence[str], begin: Callable[[str], None] | None = None
    ) -> dict[str, TaskResult]:
        """Run each task's part for single files on a file, in plan order. Before each, call `begin` with its name."""
        results: dict[str, TaskResult] = {}
        failed: set[str] = set()
        views: dict[frozenset[str], SourceFile] = {}
        for name in tasks:
            visible_contexts = self._visible_contexts[name]
            if (view := views.get(visible_contexts)) is None:
                view = views[visible_contexts] = file.restricted_to_contexts(visible_contexts)
            result: TaskResult = _NEEDED_TASK_FAILED
            if not failed or failed.isdisjoint(self._planned[name].needs):
                if begin is not None:
                    begin(name)
                result = self._call_task(name, self._run_file_task, name, view)
            if isinstance(result, TaskFailure):
                failed.add(name)
            results[name] = result
        for view in views.values():
            # The result is ignored: if there is an error, a later use of the suppressions raises it again.
            call_guarded(may_have_suppressions, view)
        return results

    def complete_results(
        self, name: str, files: Sequence[SourceFile], results: Sequence[TaskResult]
    ) -> list[TaskResult]:
        """Return the final results of a task. A batched task completes all results except failures in one call.

        `results` must not contain reused results.
        """
        passed = [index for index, result in enumerate(results) if not isinstance(result, TaskFailure)]
        task = self._ready_task(name) if passed else None
        batched = isinstance(task, BatchedFileTask)
        completed = self._complete_batched(name, files, results, passed) if batched else list(results)
        self._restore_after(name)
        for index in passed if name in self._with_findings else ():
            result = completed[index]
            if not isinstance(result, TaskFailure) and Diagnostic in map(type, result):
                file = files[index].restricted_to_contexts(self._visible_contexts[name])
                completed[index] = call_guarded(self._finish_findings, name, file, result)
        return completed

    def _complete_batched(
        self, name: str, files: Sequence[SourceFile], results: Sequence[TaskResult], passed: Sequence[int]
    ) -> list[TaskResult]:
        """Return the results of a batched task for many files. If the call fails, call the task for each file alone."""
        completed = list(results)
        try:
            for index, answer in zip(passed, self._complete_batch(name, files, results, passed), strict=True):
                completed[index] = answer
        except ToolMismatch:
            raise
        except BaseException:
            for index in passed:
                answers = call_guarded(self._complete_batch, name, files, results, [index])
                completed[index] = answers if isinstance(answers, TaskFailure) else answers[0]
        return completed

    def _complete_batch(
        self, name: str, files: Sequence[SourceFile], results: Sequence[TaskResult], indexes: Sequence[int]
    ) -> list[TaskResult]:
        partial_records = [result for index in indexes if not isinstance(result := results[index], TaskFailure)]
        narrowed_files = [files[index].restricted_to_contexts(self._visible_contexts[name]) for index in indexes]
        task = cast("BatchedFileTask", self._ready_task(name))
        check = self._validate_records if name in self._validated else None
        return complete_files(task, narrowed_files, partial_records, check)

    def run_project(
        self,
        unit: WorkUnit,
        project: BatchProject,
        shards: Sequence[Shard],
        inputs: Digest,
        *,
        before: Callable[[], PreviousBatch | None] = lambda: None,
        adopt: ShardAdopter = adopt_no_shard,
    ) -> EncodedOutcome:
        """Return the outcome of a project task. `inputs` is the digest of the outcomes from which it is computed.

        Before this returns, all objects that records refer to are on disk.

        If possible, the task updates the results of an older batch. If the update fails, all records are recomputed,
        and the evidence of the outcome contains the error.
        """
        (name,) = unit.tasks
        register = OutcomeRegister(unit.shard, unit.start, name, unit.round)
        updated = call_guarded(self._updated_parts, name, project, shards, before, adopt)
        evidence = updated.evidence if isinstance(updated, TaskFailure) else ""
        parts = None if isinstance(updated, TaskFailure) else updated
        if parts is None:
            results = self._call_task(name, self._run_project, name, project)
            if isinstance(results, TaskFailure):
                return failed_outcome(
                    PROJECT_PATH, register, results.reason, self._frame_writer, evidence=results.evidence, inputs=inputs
                )
            uncovered = self._custom_tasks.uncovered_inputs(name)
            parts = [
                make_shard_part(name, shard, results, self._frame_writer, uncovered, self._keep_terms)
                for shard in shards
            ]
            task = self._ready_task(name)
            evidence = evidence or (
                task.report if isinstance(task, ReportingTask) and name not in self._custom_task_names else ""
            )
        if self._objects is not None:
            self._objects.seal_packs()
        project_outcome = TaskOutcome(shard=unit.shard, task=name, start=0, end=1, type="result", inputs=inputs)
        return join_parts(project_outcome, parts, evidence=evidence)

    def _run_project(self, name: str, project: BatchProject) -> dict[int, EncodedRecords]:
        task = self._ready_task(name)
        assert isinstance(task, ProjectTask)
        by_item: dict[int, list[Record]] = {}
        records = task.run_project(project)
        for record in self._validate_records(records) if name in self._validated else records:
            by_item.setdefault(project.record_item(record), []).append(record)
        return self._encode_items(name, project, by_item)

    def _updated_parts(
        self,
        name: str,
        project: BatchProject,
        shards: Sequence[Shard],
        before: Callable[[], PreviousBatch | None],
        adopt: ShardAdopter,
    ) -> list[EncodedOutcome] | None:
        """Let a task update the results of an older batch. Return one outcome per shard, or None if the task cannot."""
        task = self._ready_task(name)
        base = before() if isinstance(task, IncrementalTask) and name not in self._custom_task_names else None
        if base is None:
            return None
        with treating_damage_as_missing():
            updated = cast("IncrementalTask", task).update(project, base)
            if updated is not None:
                by_item = {project.path_item(file.path): records for file, records in updated}
                results = self._encode_items(name, project, by_item)
                return [
                    update_shard_part(name, shard, results, self._frame_writer, base, adopt, self._keep_terms)
                    for shard in shards
                ]
        return None

    def _encode_items(
        self, name: str, project: BatchProject, by_item: Mapping[int, list[Record]]
    ) -> dict[int, EncodedRecords]:
        encoded: dict[int, EncodedRecords] = {}
        for item, records in by_item.items():
            reported = records
            if Diagnostic in map(type, records):
                reported = self._finish_findings(name, project.source(project.files[item]), records)
            encoded[item] = self._encode_records(reported)
        return encoded

    def encode_unit(self, unit: WorkUnit, done: UnitResults) -> Iterator[EncodedOutcome]:
        """Yield a unit's outcomes: `result` for consecutive items that succeeded, `failed` for each failed item.

        Before the first outcome is yielded, all objects that records refer to are on disk.
        """
        if self._objects is not None:
            self._objects.seal_packs()
        failed: dict[str, set[int]] = {}
        for name in unit.tasks:
            encoded = [
                result
                if isinstance(result, (TaskFailure, ReusedRecords))
                else call_guarded(self._encode_records, result)
                for result in done.results[name]
            ]
            for index in set[int]().union(*(failed.get(need, ()) for need in self._planned[name].needs)):
                if not isinstance(encoded[index], ReusedRecords):
                    encoded[index] = _NEEDED_TASK_FAILED
            failed[name] = {index for index, result in enumerate(encoded) if isinstance(result, TaskFailure)}
            start = 0
            for index in (*sorted(failed[name]), len(encoded)):
                if start < index:
                    results = cast("list[EncodedRecords | ReusedRecords]", encoded[start:index])
                    yield self._encode_range(unit, name, done.start + start, results, done.reused_counts.get(name))
                if index < len(encoded):
                    failure = cast("TaskFailure", encoded[index])
                    register = OutcomeRegister(unit.shard, done.start + index, name, unit.round)
                    yield failed_outcome(
                        done.items[index].path, register, failure.reason, self._frame_writer, evidence=failure.evidence
                    )
                start = index + 1

    def _encode_range(
        self,
        unit: WorkUnit,
        name: str,
        start: int,
        results: Sequence[EncodedRecords | ReusedRecords],
        all_kept: tuple[int, RecordCounts] | None,
    ) -> EncodedOutcome:
        reused_lines = [result.lines for result in results if isinstance(result, ReusedRecords)]
        done = [result for result in results if isinstance(result, EncodedRecords)]
        counts = count_records([result.records for result in done], [result.types for result in done])
        if reused_lines:
            number, known = all_kept or (0, counts)
            counts = add_counts((counts, known if number == len(reused_lines) else count_lines(b"".join(reused_lines))))
        outcome = TaskOutcome(
            shard=unit.shard,
            task=name,
            start=start,
            end=start + len(results),
            type="result",
            counts=counts,
            reused=len(reused_lines),
            inputs_outside_key=self._custom_tasks.uncovered_inputs(name) if done else "",
        )
        report = task.take_report() if isinstance(task := self._loaded.get(name), CallingFileTask) else ""
        encoded = encode_outcome(outcome, [result.lines for result in results], self._frame_writer, evidence=report)
        self._keep_terms(encoded, results)
        return encoded

    def _encode_records(self, records: list[Record]) -> EncodedRecords:
        """Return the encoded records of an item. Raises an exception for invalid Unicode, or ValueError above 4 GiB."""
        if not records:
            return NO_RECORDS
        lines = self._encoder.encode_lines(records)
        if len(lines) > ITEM_BYTES_MAX:
            raise ValueError("more than 4 GiB of records for one file")
        # The types are collected here, because the records are still in the CPU caches.
        return EncodedRecords(lines, records, list(map(type, records)))

    def _finish_findings(self, name: str, file: SourceFile, records: list[Record]) -> list[Record]:
        """Return records to store: without suppressed findings, and with tool and code in findings of custom tasks."""
        if name in self._custom_task_names:
            records = [with_default_names(record, name) for record in records]
        return with_cell_locations(file, exclude_suppressed(file, records))

    def _run_file_task(self, name: str, file: SourceFile) -> list[Record]:
        # The type is not checked here, because `isinstance` with a protocol is slower than many a task.
        run_file = cast("FileTask", self._ready_task(name)).run_file
        records = run_file(file)
        records = self._validate_records(records, file, run_file) if name in self._validated else records
        return with_cell_locations(file, records)

    def _call_task(self, name: str, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T | TaskFailure:
        """Call a function that runs a task. An exception becomes a failure, as in `call_guarded`."""
        result = call_guarded(call, *arguments, **options)
        self._restore_after(name)
        return result

    def _restore_after(self, name: str) -> None:
        """After code of a custom task has run, restore the umask. If this process is a fork of the worker, end it."""
        if name in self._custom_task_names:
            self._process_state.restore_files()

    def _ready_task(self, name: str) -> LoadedTask:
        task = self._loaded.get(name)
        if task is None:
            task = self._loaded[name] = self._set_up(name)
        return task

    def _set_up(self, name: str) -> LoadedTask:
        """Load a task, and check that its implementation is the one in the plan.

        The check follows the import. So it also detects a change that happens just before the import.
        """
        try:
            return self._load_task(name)
        finally:
            check_planned_task(self._catalogue, self._planned[name])

    def _load_task(self, name: str) -> LoadedTask:
        """Load a task. Any error is raised as InvalidConfiguration, so that no file counts as its cause."""
        declaration = load_declaration(self._catalogue, name)
        planned = self._planned[name]
        scratch = self._scratch / name
        scratch.mkdir(exist_ok=True)
        custom_task = self._catalogue.custom_task(name)
        is_built_in = declaration.implementation.startswith(_BUILT_IN_PREFIX) and name not in self._catalogue.rewrites
        if custom_task is None and not is_built_in:
            self._validated.add(name)
        if custom_task is not None or name in self._validated:
            self._custom_task_names.add(name)
        if name in self._custom_task_names or "diagnostic" in declaration.records:
            self._with_findings.add(name)
        try:
            config = msgspec.convert(planned.config, declaration.config)
            if custom_task is not None:
                return self._custom_tasks.task(custom_task, planned, config)
            factory = load_implementation(declaration)
            if not callable(factory):
                raise TypeError(f"{declaration.implementation} is not callable")
            environment = self._environments.make(name, config, scratch)
            task: object = factory(environment)
        except BaseException as error:
            raise InvalidConfiguration(
                f"the task {name!r} cannot be set up: {exception_text(error)}",
                hint=f"check [tasks.{name}] of your configuration",
            ) from error
        return check_task(declaration, task)
