"""Executing tasks over items: pure in what it returns, whoever asks and however the work was cut.

Each file is taken through all tasks of the unit in plan order while its syntax tree is in memory; tools that take many
files are asked once a unit. What a task raises fails that task at that item alone, and the tasks that need it there.
What it finds in a file passes `_told` before it is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration
from codebatch.model.analysis.item_table import ITEM_BYTES_MAX
from codebatch.model.analysis.record_counting import count_lines, count_records
from codebatch.model.digest import Digest
from codebatch.model.outcome import Outcome, Register, Unit
from codebatch.model.plan import PlannedTask, contexts_seen
from codebatch.model.record import Diagnostic, Record
from codebatch.model.record_counts import Counts, add_counts
from codebatch.model.shard import PROJECT_PATH, Shard
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import check_planned, load_declaration, load_implementation, look_again
from codebatch.plugins.user_tasks import said
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store.damage import treating_damage_as_missing
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.results.outcomes import EncodedOutcome, encode_outcome, failed_outcome, join_parts
from codebatch.system.files.memory_scratch import try_memory_scratch
from codebatch.system.processes.process_state import ProcessState
from codebatch_workers.api.protocols import (
    BatchedFileTask,
    FileTask,
    IncrementalTask,
    ProjectTask,
    ReportingTask,
    TaskEnvironment,
)
from codebatch_workers.runtime.previous_batch import BatchBefore
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.record_validation import Task, check_task, named, validate_records
from codebatch_workers.runtime.results import (
    NOTHING_SAID,
    EncodedRecords,
    Result,
    ReusedRecords,
    TaskFailure,
    UnitResults,
)
from codebatch_workers.runtime.shard_parts import Adopt, Keep, adopt_none, keep_nothing, made_part, updated_part
from codebatch_workers.runtime.task_calls import call_guarded
from codebatch_workers.runtime.user_tasks import OwnTasks
from codebatch_workers.syntax.cells import with_cells
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import look_for_notes, without_unwanted

_BUILT_IN = "codebatch_workers.tasks."
_NEED_FAILED = TaskFailure(reason="needs", evidence="a task that it needs failed on this file")

P = ParamSpec("P")
T = TypeVar("T")


class TaskRunner:
    """The tasks of a plan, loaded when first used."""

    def __init__(
        self,
        catalogue: TaskCatalogue,
        tasks: Sequence[PlannedTask],
        scratch: Path,
        objects: PackWriter | None = None,
        store: Path | None = None,
        keep: Keep | None = None,
        read_object: Callable[[Digest], bytes] | None = None,
    ) -> None:
        """`store` is that of the batch, which a project's records are read from. `keep`: an index is to be made.
        `read_object` reads what imports are made of.
        """
        self._catalogue = catalogue
        self._planned = {task.name: task for task in tasks}
        self._seen = contexts_seen(tasks)
        self._scratch = scratch
        self._objects = objects
        self._read_object = read_object
        self._loaded: dict[str, Task] = {}
        self._foreign: set[str] = set()
        self._unchecked: set[str] = set()
        self._finding: set[str] = set()
        self._shared: dict[str, object] = {}
        self._check = partial(validate_records, has_object=None if objects is None else objects.holds)
        self._own = OwnTasks(catalogue, store, self._check)
        self._encoder = msgspec.json.Encoder()
        self._frames = FrameWriter()
        self._keep = keep or keep_nothing
        self._process = ProcessState()

    def set_up(self, tasks: Sequence[str]) -> None:
        """Load the tasks that are not loaded yet.

        Raises InvalidConfiguration, or ToolMismatch where what they are made of has changed since the plan was made.
        """
        if not self._loaded.keys() >= set(tasks):
            look_again()
        for name in tasks:
            self._task(name)

    def run_item(
        self, file: SourceFile, tasks: Sequence[str], begin: Callable[[str], None] | None = None
    ) -> dict[str, Result]:
        """One file through the per-file part of the tasks, in plan order; `begin` is told of each."""
        results: dict[str, Result] = {}
        failed: set[str] = set()
        views: dict[frozenset[str], SourceFile] = {}
        for name in tasks:
            seen = self._seen[name]
            if (view := views.get(seen)) is None:
                view = views[seen] = file.seeing(seen)
            result: Result = _NEED_FAILED
            if not failed or failed.isdisjoint(self._planned[name].needs):
                if begin is not None:
                    begin(name)
                result = self._call(name, self._run, name, view)
            if isinstance(result, TaskFailure):
                failed.add(name)
            results[name] = result
        for view in views.values():
            # What is raised is raised again where they are asked for.
            call_guarded(look_for_notes, view)
        return results

    def complete(self, name: str, files: Sequence[SourceFile], results: Sequence[Result]) -> list[Result]:
        """What a task says at last: its batched part is asked about the files it did not fail at, if it has one.

        None of the results is kept from another batch.
        """
        sound = [index for index, result in enumerate(results) if not isinstance(result, TaskFailure)]
        task = self._task(name) if sound else None
        completed = self._batched(name, files, results, sound) if isinstance(task, BatchedFileTask) else list(results)
        self._restore_after(name)
        for index in sound if name in self._finding else ():
            result = completed[index]
            if not isinstance(result, TaskFailure) and Diagnostic in map(type, result):
                completed[index] = call_guarded(self._told, name, files[index].seeing(self._seen[name]), result)
        return completed

    def _batched(
        self, name: str, files: Sequence[SourceFile], results: Sequence[Result], sound: Sequence[int]
    ) -> list[Result]:
        """The answers of a tool that is asked about many files. A call that fails is redone file by file."""
        completed = list(results)
        try:
            for index, answer in zip(sound, self._ask(name, files, results, sound), strict=True):
                completed[index] = answer
        except BaseException:
            for index in sound:
                answers = call_guarded(self._ask, name, files, results, [index])
                completed[index] = answers if isinstance(answers, TaskFailure) else answers[0]
        return completed

    def _ask(
        self, name: str, files: Sequence[SourceFile], results: Sequence[Result], indexes: Sequence[int]
    ) -> list[list[Record]]:
        partial = [result for index in indexes if not isinstance(result := results[index], TaskFailure)]
        asked = [files[index].seeing(self._seen[name]) for index in indexes]
        answers = cast("BatchedFileTask", self._task(name)).complete(asked, partial)
        if len(answers) != len(indexes):
            raise RuntimeError(f"the task was given {len(indexes)} files and returned {len(answers)} results")
        if name in self._unchecked:
            return [self._check(answer, file) for answer, file in zip(answers, asked, strict=True)]
        return answers

    def run_project(
        self,
        unit: Unit,
        project: BatchProject,
        shards: Sequence[Shard],
        inputs: Digest,
        *,
        before: Callable[[], BatchBefore | None] = lambda: None,
        adopt: Adopt = adopt_none,
    ) -> EncodedOutcome:
        """The outcome of a project task, made of these inputs. The objects that records name are on disk before.

        It goes on from an older batch, where it can; why it could not that meant to, is in the evidence.
        """
        (name,) = unit.tasks
        register = Register(unit.shard, unit.start, name, unit.round)
        updated = call_guarded(self._updated_parts, name, project, shards, before, adopt)
        evidence = updated.evidence if isinstance(updated, TaskFailure) else ""
        parts = None if isinstance(updated, TaskFailure) else updated
        if parts is None:
            said = self._call(name, self._run_project, name, project)
            if isinstance(said, TaskFailure):
                return failed_outcome(
                    PROJECT_PATH, register, said.reason, self._frames, evidence=said.evidence, inputs=inputs
                )
            unkeyed = self._own.unkeyed(name)
            parts = [made_part(name, shard, said, self._frames, unkeyed, self._keep) for shard in shards]
            task = self._task(name)
            evidence = evidence or (task.told if isinstance(task, ReportingTask) and name not in self._foreign else "")
        if self._objects is not None:
            self._objects.seal()
        whole = Outcome(shard=unit.shard, task=name, start=0, end=1, type="result", inputs=inputs)
        return join_parts(whole, parts, evidence=evidence)

    def _run_project(self, name: str, project: BatchProject) -> dict[int, EncodedRecords]:
        task = self._task(name)
        assert isinstance(task, ProjectTask)
        by_item: dict[int, list[Record]] = {}
        given = task.run_project(project)
        for record in self._check(given) if name in self._unchecked else given:
            by_item.setdefault(project.item_of(record), []).append(record)
        return self._sealed(name, project, by_item)

    def _updated_parts(
        self,
        name: str,
        project: BatchProject,
        shards: Sequence[Shard],
        before: Callable[[], BatchBefore | None],
        adopt: Adopt,
    ) -> list[EncodedOutcome] | None:
        """What a task says that goes on from an older batch; None where it does not, or that one cannot be read."""
        task = self._task(name)
        base = before() if isinstance(task, IncrementalTask) and name not in self._foreign else None
        if base is None:
            return None
        with treating_damage_as_missing():
            updated = cast("IncrementalTask", task).update(project, base)
            if updated is not None:
                by_item = {project.place_of(file.path): records for file, records in updated}
                said = self._sealed(name, project, by_item)
                return [updated_part(name, shard, said, self._frames, base, adopt, self._keep) for shard in shards]
        return None

    def _sealed(
        self, name: str, project: BatchProject, by_item: Mapping[int, list[Record]]
    ) -> dict[int, EncodedRecords]:
        sealed: dict[int, EncodedRecords] = {}
        for item, records in by_item.items():
            told = records
            if Diagnostic in map(type, records):
                told = self._told(name, project.source(project.files[item]), records)
            sealed[item] = self._seal(told)
        return sealed

    def encode(self, unit: Unit, done: UnitResults) -> Iterator[EncodedOutcome]:
        """The outcomes of what is done: `result` for runs of items that a task did, `failed` for each it did not.

        The objects that records name are on disk before the first is given.
        """
        if self._objects is not None:
            self._objects.seal()
        failed: dict[str, set[int]] = {}
        for name in unit.tasks:
            sealed = [
                result if isinstance(result, (TaskFailure, ReusedRecords)) else call_guarded(self._seal, result)
                for result in done.results[name]
            ]
            for index in set[int]().union(*(failed.get(need, ()) for need in self._planned[name].needs)):
                if not isinstance(sealed[index], ReusedRecords):
                    sealed[index] = _NEED_FAILED
            failed[name] = {index for index, result in enumerate(sealed) if isinstance(result, TaskFailure)}
            start = 0
            for index in (*sorted(failed[name]), len(sealed)):
                if start < index:
                    results = cast("list[EncodedRecords | ReusedRecords]", sealed[start:index])
                    yield self._encode_range(unit, name, done.start + start, results, done.kept.get(name))
                if index < len(sealed):
                    failure = cast("TaskFailure", sealed[index])
                    register = Register(unit.shard, done.start + index, name, unit.round)
                    yield failed_outcome(
                        done.items[index].path, register, failure.reason, self._frames, evidence=failure.evidence
                    )
                start = index + 1

    def _encode_range(
        self,
        unit: Unit,
        name: str,
        start: int,
        results: Sequence[EncodedRecords | ReusedRecords],
        all_kept: tuple[int, Counts] | None,
    ) -> EncodedOutcome:
        kept = [result.lines for result in results if isinstance(result, ReusedRecords)]
        done = [result for result in results if isinstance(result, EncodedRecords)]
        counts = count_records([each.records for each in done], [each.types for each in done])
        if kept:
            number, known = all_kept or (0, counts)
            counts = add_counts((counts, known if number == len(kept) else count_lines(b"".join(kept))))
        outcome = Outcome(
            shard=unit.shard,
            task=name,
            start=start,
            end=start + len(results),
            type="result",
            counts=counts,
            reused=len(kept),
            inputs_outside_key=self._own.unkeyed(name) if done else "",
        )
        encoded = encode_outcome(outcome, [result.lines for result in results], self._frames)
        self._keep(encoded, results)
        return encoded

    def _seal(self, records: list[Record]) -> EncodedRecords:
        """The lines of a result. Raises what tells that it cannot be written (text that is no Unicode, too much)."""
        if not records:
            return NOTHING_SAID
        lines = self._encoder.encode_lines(records)
        if len(lines) > ITEM_BYTES_MAX:
            raise ValueError("more than 4 GiB of records for one file")
        # The types now, while the processor's caches hold the records.
        return EncodedRecords(lines, records, list(map(type, records)))

    def _told(self, name: str, file: SourceFile, records: list[Record]) -> list[Record]:
        """What is recorded of findings in a file: they bear their task's name, but for those that notes hush."""
        if name in self._foreign:
            records = [named(record, name) for record in records]
        return with_cells(file, without_unwanted(file, records))

    def _run(self, name: str, file: SourceFile) -> list[Record]:
        # To ask whether it is one takes longer than many a task takes for a small file.
        given = cast("FileTask", self._task(name)).run_file(file)
        given = self._check(given, file) if name in self._unchecked else given
        return with_cells(file, given)

    def _call(self, name: str, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T | TaskFailure:
        """Like `call_guarded`, for a call that runs a task."""
        result = call_guarded(call, *arguments, **options)
        self._restore_after(name)
        return result

    def _restore_after(self, name: str) -> None:
        """Change back what a task of others may have changed for the files of the store."""
        if name in self._foreign:
            self._process.restore_files()

    def _task(self, name: str) -> Task:
        task = self._loaded.get(name)
        if task is None:
            task = self._loaded[name] = self._set_up(name)
        return task

    def _set_up(self, name: str) -> Task:
        """Load a task, which must be the plan's. That is looked at once it is imported, so that no change is missed."""
        try:
            return self._load(name)
        finally:
            check_planned(self._catalogue, self._planned[name])

    def _load(self, name: str) -> Task:
        """Load a task. Where that fails no file is to blame, but the configuration or the task."""
        declaration = load_declaration(self._catalogue, name)
        planned = self._planned[name]
        scratch = self._scratch / name
        scratch.mkdir(exist_ok=True)
        own = self._catalogue.own_task(name)
        if own is None and not declaration.implementation.startswith(_BUILT_IN):
            self._unchecked.add(name)
        if own is not None or name in self._unchecked:
            self._foreign.add(name)
        if name in self._foreign or "diagnostic" in declaration.records:
            self._finding.add(name)
        try:
            config = msgspec.convert(planned.config, declaration.config)
            if own is not None:
                return self._own.task(own, planned, config)
            factory = load_implementation(declaration)
            if not callable(factory):
                raise TypeError(f"{declaration.implementation} is not callable")
            environment = TaskEnvironment(
                config=config, scratch=scratch, name=name, shared=self._shared, try_memory=try_memory_scratch
            )
            if self._read_object is not None:
                environment = replace(environment, read_object=self._read_object)
            if self._objects is not None:
                environment = replace(environment, put_object=self._objects.add)
            task: object = factory(environment)
        except BaseException as error:
            raise InvalidConfiguration(
                f"the task {name!r} cannot be set up: {said(error)}", hint=f"check [tasks.{name}] of your configuration"
            ) from error
        return check_task(declaration, task)
