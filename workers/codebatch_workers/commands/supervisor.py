"""A worker of a work batch. It executes one attempt after another; a running attempt outlives the coordinator.

An attempt has four steps. First, take a durable lease. Second, check for requests and other coordinators (SPEC.md
"Attempts"). Third, run the command until it ends. Fourth, publish a durable outcome. Between lease and outcome, a new
coordinator can find the process of the command: by the lease, the progress cell, and the environment variable that
marks the attempt.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import UNSET

from codebatch.errors import CorruptFile, StoreError, StoreUnwritable
from codebatch.model.documents import DocumentError
from codebatch.model.entry import Entry
from codebatch.model.outcome import WorkUnit
from codebatch.model.shard import Shard
from codebatch.model.text.color_codes import enable_colors
from codebatch.model.work.command import Command, Isolation, decode_command
from codebatch.model.work.request import Reload, Set, added_commands, reloaded_command, set_timeout
from codebatch.model.work.work_batch import ADDED_SHARD
from codebatch.protocol.launch import HOLDER_VARIABLE, WorkerLaunch, attempt_mark
from codebatch.protocol.messages import PROTOCOL_VERSION, Assign, Hello, Refused, Stop
from codebatch.store import layout
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import load_batch_snapshot, open_batch
from codebatch.store.batches.holders import HolderFile, HolderRegistration
from codebatch.store.batches.store_directory import open_store
from codebatch.store.results.outcomes import OutcomeCommitter, attempt_outcome
from codebatch.store.work.questions import QuestionStore
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import read_work
from codebatch.system.clock import running_ns, wall_ns
from codebatch.system.files.files import RealFiles, StoreFiles
from codebatch.system.files.system_calls import PRIVATE_MODE
from codebatch.system.host import this_host
from codebatch.system.processes.command_processes import CommandStarter, ProcessNotStarted, ProcessStart
from codebatch.system.processes.processes import signal_name
from codebatch.system.processes.progress_cell import (
    PHASE_COMMAND,
    PHASE_COMMIT,
    PHASE_IDLE,
    PHASE_LEASE,
    ProgressCell,
    WorkerStep,
)
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.attempt_inputs import AttemptFilesWriter
from codebatch_workers.commands.attempt_questions import AttemptQuestions
from codebatch_workers.commands.context import make_process_start
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.commands.execution import AttemptExecution, make_outputs
from codebatch_workers.commands.log import EVIDENCE_BYTES_MAX, NOTES_MAX, AttemptLogWriter
from codebatch_workers.commands.masking import SECRET_CHARACTERS_MIN, SecretMasker
from codebatch_workers.commands.process import RealCommandStarter
from codebatch_workers.commands.result_parsing import RESULT_BYTES_MAX
from codebatch_workers.commands.run import PrefetchedRun
from codebatch_workers.commands.scratch import AttemptDirectories
from codebatch_workers.runtime.channel import CoordinatorChannel, CoordinatorLost, report_fatal_error

if TYPE_CHECKING:
    from codebatch_workers.commands.attempt_tree import AttemptTree
    from codebatch_workers.commands.trees import TreeMaker

_ITEMS_PER_READ = 256

_NextStep = Literal["goes on", "is over", "refused", "ends"]
"""What a worker does after an attempt: start the next command, end the run, refuse the unit, or end itself."""


class Supervisor:
    """One worker process of one work batch, from its start to its end."""

    def __init__(
        self,
        launch: WorkerLaunch,
        channel: CoordinatorChannel,
        *,
        pid: int,
        environment: Mapping[str, str],
        files: StoreFiles | None = None,
        cell: ProgressCell | None = None,
        commands: CommandStarter | None = None,
        now_ns: Callable[[], int] = running_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`environment` is the environment of the caller. `now_ns` is a clock that stops in suspend.

        By default, files and processes are real, and the progress cell is new.
        """
        files = files or RealFiles()
        self._store = open_store(files, Path(launch.store))
        self._batch = open_batch(self._store, launch.batch)
        self._launch = launch
        self._channel = channel
        self._files = files
        base_environment = {name: value for name, value in environment.items() if name != HOLDER_VARIABLE}
        self._environment = enable_colors(base_environment) if launch.wants_colors else base_environment
        self._root = Path(os.fsdecode(self._batch.about.sources[0]))
        self._shards = {shard.id: shard for shard in self._batch.plan().shards}
        self._snapshot = load_batch_snapshot(self._store, self._batch)
        self._objects = self._store.objects()
        self._entries: tuple[int, list[Entry]] = (0, [])
        about = HolderFile(
            holder=launch.holder,
            role="worker",
            pid=pid,
            host=this_host(),
            since_ns=wall_ns(),
            parent=launch.coordinator,
        )
        root = self._batch.root
        self._holder = HolderRegistration(files, root, about, is_durable=True)
        self._cell = cell or ProgressCell(files, root / layout.HOLDERS / layout.cell_name(launch.holder), create=True)
        self._listener = CoordinatorListener(self._batch, channel)
        self._committer = OutcomeCommitter(files, root, launch.holder)
        self._journal = journal.JournalWriter(files, root, launch.holder, wall_ns)
        self._questions, self._requests = QuestionStore(files, root), RequestStore(files, root)
        self._scratch = AttemptDirectories(files, root / layout.SCRATCH / launch.holder, wall_ns)
        self._materials = AttemptFilesWriter(files, root, self._scratch, self._questions, self._requests, self._objects)
        self._logs = root / layout.LOGS
        files.make_directory(self._logs, PRIVATE_MODE)
        self._commands: CommandStarter = commands or RealCommandStarter()
        self._run = PrefetchedRun(channel, self._listener, self._committer, self._journal, now_ns=now_ns, sleep=sleep)
        self._trees: TreeMaker | None = None
        self._attempts = 0
        self._now_ns = now_ns

    def run(self) -> None:
        """Work until the coordinator requests the end. Raises CoordinatorLost."""
        root = self._batch.root
        directories = (root / name for name in (layout.OUTCOMES, layout.LEASES, layout.HOLDERS, layout.LOGS))
        with (
            contextlib.nullcontext() if self._launch.store_lock is not None else self._store.writing(),
            self._files.keeping_open(root, *directories, self._scratch.root),
        ):
            try:
                self._handle_messages()
            except CoordinatorLost:
                self._scratch.remove()
                raise

    def _handle_messages(self) -> None:
        self._channel.send(Hello(version=PROTOCOL_VERSION, holder=self._holder.id))
        is_continuing = True
        while is_continuing:
            match self._listener.receive():
                case Assign() as assign:
                    try:
                        is_continuing = self._handle_message(assign)
                    except StoreError as error:
                        report_fatal_error(self._channel, error)
                        return
                case Stop():
                    return
                case _:
                    pass  # The message refers to an attempt that is over.

    def _handle_message(self, assign: Assign) -> bool:
        """Execute the commands of an assignment one after the other. Return whether this worker continues."""
        self._run.begin_run(assign)
        self._listener.is_queue_recalled = False
        then: _NextStep = "goes on"
        try:
            while then == "goes on" and (next_assign := self._run.next_assignment()) is not None:
                assign, then = next_assign, self._run_attempt(next_assign)
        except StoreError:
            with contextlib.suppress(StoreError):
                self._run.end_run("ends")
            raise
        if then != "refused":
            self._record_step(assign.unit, PHASE_COMMIT)
        self._run.end_run("ends" if then == "ends" else Refused(epoch=assign.epoch) if then == "refused" else "is idle")
        if self._trees is not None:
            self._trees.remove_ended()
        self._record_step(assign.unit, PHASE_IDLE)
        return then != "ends"

    def _run_attempt(self, assign: Assign) -> _NextStep:
        unit, epoch = assign.unit, assign.epoch
        self._attempts += 1
        self._record_step(unit, PHASE_LEASE)
        listed = self._listed_command(unit)
        directory = self._scratch.attempt_path(self._attempts)
        has_no_processes = False
        try:
            if not self._holder.try_lease(unit.shard, unit.start, epoch, may_be_forgotten=assign.is_repeatable):
                return "refused"
            try:
                request = self._listener.check_before_start(assign.requests, listed.id, unit.round, epoch)
                if self._listener.is_alone or (request is not None and request.why == "stopped"):
                    self._record_not_started(unit, epoch)
                    return "ends"
                self._run.note_event(_began_event(unit, epoch))
                command = self._current_definition(listed, unit.round).for_try(assign.brief.tried)
                masker = SecretMasker(command.secret or ())
                questions = self._make_questions(command, unit, epoch, directory, masker)
                log = None if request is not None else self._make_log(command, unit, epoch, directory, masker)
            except StoreError:
                with contextlib.suppress(StoreError):
                    self._record_not_started(unit, epoch)
                raise
            if log is None:
                return self._finish_attempt(assign, AttemptResult(type="cancelled"), None, questions)
            result = self._execute_attempt(command, assign, directory, log, questions, masker)
            has_no_processes = command.leftovers == "kill" and not result.orphaned_processes
            for note in result.notes:
                log.write_note(note)
            log.close()
            result = msgspec.structs.replace(result, notes=(*result.notes, *log.notes)[: NOTES_MAX + 1])
            return self._finish_attempt(assign, result, log, questions)
        finally:
            self._scratch.end_attempt(directory, has_no_processes=has_no_processes)

    def _make_log(
        self, command: Command, unit: WorkUnit, epoch: int, scratch: Path, masker: SecretMasker
    ) -> AttemptLogWriter:
        is_searched = command.result is not None or command.retry_if is not None or command.wait_if
        end = RESULT_BYTES_MAX if is_searched else EVIDENCE_BYTES_MAX
        path = f"{self._logs}/{_attempt_log_name(unit, epoch)}"
        bytes_max = command.log_mb_max << 20
        return AttemptLogWriter(self._files, path, scratch, bytes_max, masker=masker, end_bytes=end)

    def _make_questions(
        self, command: Command, unit: WorkUnit, epoch: int, directory: Path, masker: SecretMasker
    ) -> AttemptQuestions:
        return AttemptQuestions(
            self._files,
            self._questions,
            self._requests,
            self._listener,
            task=command.id,
            unit=unit,
            epoch=epoch,
            directory=directory,
            sync_lease=self._holder.sync_leases,
            masker=masker,
        )

    def _record_not_started(self, unit: WorkUnit, epoch: int) -> None:
        """Commit an outcome for a leased command that was not started.

        Otherwise, the attempt would count as interrupted. Raises StoreUnwritable.
        """
        self._committer.commit_outcomes([attempt_outcome(unit, "cancelled", "unbegun")], epoch=epoch, round_=unit.round)

    def _execute_attempt(
        self,
        command: Command,
        assign: Assign,
        directory: Path,
        log: AttemptLogWriter,
        questions: AttemptQuestions,
        masker: SecretMasker,
    ) -> AttemptResult:
        unit = assign.unit
        self._record_step(unit, PHASE_COMMAND)
        outputs = make_outputs(command, self._root, self._objects, assign, log, self._environment, masker, self._run)
        if outputs is not None and (reused := outputs.reuse_success()) is not None:
            return reused
        try:
            materials = self._materials.write_files(command, assign, directory)
        except (ProcessNotStarted, StoreUnwritable) as error:
            log.write_note(f"not started: {error}")
            return AttemptResult(type="failed", reason="start")
        if (ended := self._run.early_result()) is not None:
            return ended
        tree = None if command.isolation is UNSET else self._make_tree(command.isolation, command, assign, log)
        if isinstance(tree, AttemptResult):
            return tree
        root = self._root if tree is None else tree.root

        def start_of(run: str | tuple[str, ...], reads: bool) -> ProcessStart:
            start = make_process_start(
                command,
                run,
                materials,
                batch=self._batch.id,
                round_=unit.round,
                root=root,
                base_environment=self._environment if tree is None else tree.environment(self._environment),
                tree_variables={} if tree is None else tree.variables(self._environment),
                mark=attempt_mark(self._holder.id, unit.shard, unit.start, assign.epoch),
                masker=masker,
                reads=reads,
            )
            for name in masker.take_short_names():
                log.report(f"the value of {name} has fewer than {SECRET_CHARACTERS_MIN} characters and is not masked")
            return start

        result = AttemptExecution(
            command,
            materials,
            log,
            self._listener,
            questions,
            files=self._files,
            commands=self._commands,
            make_start=start_of,
            report_child=self._cell.write_child,
            run=self._run,
            wall_ns=wall_ns,
            has_written=lambda: not self._scratch.is_untouched(directory),
            now_ns=self._now_ns,
            is_first_try=not assign.brief.tried,
            finish=(lambda result: result) if outputs is None else lambda result: outputs.finish(result, root),
        ).run()
        if result.orphaned_processes:
            orphans = tuple(map(masker.mask_text, result.orphaned_processes))
            result = msgspec.structs.replace(result, orphaned_processes=orphans)
            log.write_note(f"keeps running: {', '.join(result.orphaned_processes)}")
        if tree is not None and self._trees is not None:
            result = tree.finish(result, log.write_note)
            self._trees.end(tree, result)
        return result

    def _make_tree(
        self, isolation: Isolation, command: Command, assign: Assign, log: AttemptLogWriter
    ) -> AttemptTree | AttemptResult:
        """Return the tree of an attempt, or the result of the attempt if it cannot get a tree. Raises StoreCorrupt."""
        from codebatch_workers.commands.trees import TreeMaker, make_tree_or_result  # Few batches have trees.

        if self._trees is None:
            settings = read_work(self._batch).trees
            if settings is UNSET:
                log.write_note("not started: this batch was made without settings of trees")
                return AttemptResult(type="failed", reason="start")
            self._trees = TreeMaker(self._store, self._batch.id, self._root, settings, self._objects)
        return make_tree_or_result(self._trees, isolation, assign, command.id, log, self._run.early_result)

    def _finish_attempt(
        self, assign: Assign, result: AttemptResult, log: AttemptLogWriter | None, questions: AttemptQuestions
    ) -> _NextStep:
        """Add the result of an attempt to the run and the journal. Return the worker's next step."""
        self._run.note_event(_attempt_event(assign, result, log))
        if result.type is None:
            return "ends"  # The lease stays, so the attempt counts as running until this process ends.
        self._run.add(assign, result, questions)
        return "goes on" if result.type == "result" else "is over"

    def _listed_command(self, unit: WorkUnit) -> Command:
        """Return the definition of a unit's command from the task list, or from the request that added it.

        Raises StoreCorrupt.
        """
        if unit.shard == ADDED_SHARD:
            return added_commands(self._requests.read())[unit.start]
        entry = self._item_entry(self._shards[unit.shard], unit.start)
        try:
            return decode_command(self._objects.read(entry.object, entry.size))
        except DocumentError as error:
            hint = "this batch cannot be recovered: make a new one with: codebatch work run"
            raise CorruptFile(str(self._batch.root), f"has a damaged task {entry.text}: {error}", hint=hint) from error

    def _current_definition(self, command: Command, round_: int) -> Command:
        """Return the definition of a command that applies in a round: the last reloaded definition, or else `command`.

        The time limit is that of the last Set request, if any has one. Raises StoreCorrupt.
        """
        bodies = [request.body for request in self._requests.read()]
        reloads = [body for body in bodies if isinstance(body, Reload)]
        sets = [body for body in bodies if isinstance(body, Set)]
        return set_timeout(sets, reloaded_command(reloads, command.id, round_) or command)

    def _item_entry(self, shard: Shard, item: int) -> Entry:
        """Return the entry of an item of a shard.

        Entries are read in blocks and cached, because reading one entry takes as long as reading several.
        """
        place = shard.start + item
        start, entries = self._entries
        if not start <= place < start + len(entries):
            start = place - place % _ITEMS_PER_READ
            entries = self._snapshot.items_between(start, min(start + _ITEMS_PER_READ, self._snapshot.files))
            self._entries = (start, entries)
        return entries[place - start]

    def _record_step(self, unit: WorkUnit, phase: int) -> None:
        end = unit.start if phase == PHASE_IDLE else unit.end
        self._cell.write_step(WorkerStep(running_ns(), self._attempts, 0, self._attempts, unit.start, end, phase))


def _began_event(unit: WorkUnit, epoch: int) -> journal.Began:
    return journal.Began(
        shard=unit.shard, start=unit.start, end=unit.end, tasks=unit.tasks, round=unit.round, epoch=epoch
    )


def _attempt_log_name(unit: WorkUnit, epoch: int) -> str:
    return layout.log_name(unit.shard, unit.start, unit.round, epoch)


def _attempt_event(assign: Assign, result: AttemptResult, log: AttemptLogWriter | None) -> journal.Ran:
    """Return the journal event of an attempt that is over."""
    unit, epoch, status = assign.unit, assign.epoch, result.exit_status
    return journal.Ran(
        shard=unit.shard,
        start=unit.start,
        round=unit.round,
        epoch=epoch,
        type=result.type or "stopped",
        reason=result.reason,
        exit_status=status,
        signal=signal_name(-status) if status is not None and status < 0 else "",
        seconds=round(result.seconds, 6),
        cpu_seconds=round(result.cpu_seconds, 6),
        memory_peak_bytes=result.memory_peak_bytes,
        left=result.orphaned_processes,
        tried=assign.brief.tried,
        log="" if log is None else _attempt_log_name(unit, epoch),
        output_bytes=0 if log is None else log.bytes,
        evidence="" if log is None else log.evidence,
    )
