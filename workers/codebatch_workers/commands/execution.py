"""The execution of one attempt: the command, then its check, then any question that the command or the check asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from codebatch.model.work.command import Command
from codebatch.protocol.messages import Assign
from codebatch.store.objects.object_store import ObjectStore
from codebatch.system.files.files import StoreFiles
from codebatch.system.processes.command_processes import CommandStarter, ProcessNotStarted, ProcessStart
from codebatch.system.processes.progress_cell import CommandProcess
from codebatch_workers.commands.attempt import AttemptResult, RunningAttempt
from codebatch_workers.commands.attempt_inputs import AttemptFiles
from codebatch_workers.commands.attempt_questions import AttemptQuestions
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.commands.log import AttemptLogWriter
from codebatch_workers.commands.masking import SecretMasker
from codebatch_workers.commands.result_parsing import read_ending, read_question_file
from codebatch_workers.commands.run import PrefetchedRun

if TYPE_CHECKING:
    from codebatch_workers.commands.attempt_outputs import AttemptOutputs

_NOTHING_TO_DO_STATUS = 1
"""The exit status of `when` that means that there is nothing to do."""

_UNANSWERED_TEXT = (
    "asked a question, went on without the answer and ended with 0: end the task after it, as in "
    "`codebatch ask … || exit 75`"
)

NO_COMMAND_PROCESS = CommandProcess(0, 0, 0, 0)

ResultFinisher = Callable[[AttemptResult], AttemptResult]

ProcessStartMaker = Callable[[str | tuple[str, ...], bool], ProcessStart]
"""A function that takes a command line and a flag, and returns how to start the command. Raises ProcessNotStarted.

If the flag is set, the process gets the command's standard input.
"""


def make_outputs(
    command: Command,
    root: Path,
    objects: ObjectStore,
    assign: Assign,
    log: AttemptLogWriter,
    environment: Mapping[str, str],
    masker: SecretMasker,
    run: PrefetchedRun,
) -> AttemptOutputs | None:
    """Return the outputs of an attempt, or None if its command has none and is never skipped."""
    if not (command.outputs or command.skip_if_unchanged):
        return None
    from codebatch_workers.commands.attempt_outputs import AttemptOutputs  # Few batches have outputs.

    return AttemptOutputs(command, root, objects, assign.brief, log, environment, masker, run.early_result)


class AttemptExecution:
    """One attempt, from start to end."""

    def __init__(
        self,
        command: Command,
        materials: AttemptFiles,
        log: AttemptLogWriter,
        listener: CoordinatorListener,
        questions: AttemptQuestions,
        *,
        files: StoreFiles,
        commands: CommandStarter,
        make_start: ProcessStartMaker,
        report_child: Callable[[CommandProcess], None],
        run: PrefetchedRun,
        wall_ns: Callable[[], int],
        has_written: Callable[[], bool],
        now_ns: Callable[[], int],
        is_first_try: bool = True,
        finish: ResultFinisher = lambda result: result,
    ) -> None:
        """`command` is the definition that applies to this try. `report_child` and `now_ns` are as in `RunningAttempt`.

        `has_written` returns whether the command may have written files to the attempt's directory. False is certain.

        `when` of the command runs only if `is_first_try` is set. `finish` adds outputs to the result of an attempt
        whose processes have ended.
        """
        self._command = command
        self._materials = materials
        self._log = log
        self._listener = listener
        self._questions = questions
        self._files = files
        self._commands = commands
        self._make_start = make_start
        self._report_child = report_child
        self._run = run
        self._wall_ns = wall_ns
        self._has_written = has_written
        self._now_ns = now_ns
        self._is_first_try = is_first_try
        self._finish = finish

    def run(self) -> AttemptResult:
        """Run the attempt until it ends. If it failed, apply `retry_if` and `wait_if` of the command to the result."""
        if self._is_first_try and self._command.when and (decided := self._run_condition()) is not None:
            return self._finish(decided)
        result = self._finish(self._run_and_check())
        has_rules = self._command.retry_if is not None or self._command.wait_if
        has_failed = result.type == "failed" and result.reason != "start"
        may_be_limited = result.type == "result" and result.exit_status in (self._command.wait_exits or ())
        if not has_rules or not (has_failed or may_be_limited):
            return result
        from codebatch_workers.commands.failures import judge_failure  # Imported late: few commands have such rules.

        verdict = judge_failure(self._command, result, self._log.output_end, self._wall_ns)
        if verdict.note:
            self._log.write_note(verdict.note)
        if verdict.problem:
            self._log.report(verdict.problem)
        return verdict.result

    def _run_condition(self) -> AttemptResult | None:
        """Run `when` of the command. Return the result of the attempt, or None if `run` follows."""
        assert self._command.when, "the caller checks that the command has a condition"
        command = msgspec.structs.replace(
            self._command,
            exit_ok=(0,),
            skip_status=_NOTHING_TO_DO_STATUS,
            timeout_seconds=self._command.when_timeout_seconds or None,
            stall_seconds=None,
            leftovers="kill",
        )
        try:
            result = self._run_command_process(command, self._make_start(self._command.when, False), spent_seconds=0.0)
        except ProcessNotStarted as error:
            self._log.write_note(f"`when` not started: {error}")
            return AttemptResult(type="failed", reason="when")
        if result.reason == "unneeded":
            self._log.write_note(f"nothing to do: `when` ended with status {_NOTHING_TO_DO_STATUS}")
        elif result.type != "failed":
            return None if result.type == "result" else result
        elif result.reason not in ("exit", "signal"):
            self._log.write_note(f"`when` exceeded a limit: {result.reason}")
            return msgspec.structs.replace(result, reason="when", exit_status=None)
        return msgspec.structs.replace(result, reason="when")

    def _run_and_check(self) -> AttemptResult:
        try:
            result = self._run_command_process(
                self._command, self._make_start(self._command.run, True), spent_seconds=0.0
            )
        except ProcessNotStarted as error:
            self._log.write_note(f"not started: {error}")
            return AttemptResult(type="failed", reason="start")
        if result.has_ended_by_itself and result.exit_status is not None:
            question = self._materials.question if self._has_written() else None
            ending = read_ending(self._command, self._files, question, result.exit_status, self._log.output_end)
            if ending.problem and result.type == "result":
                self._log.report(ending.problem)
            result = msgspec.structs.replace(result, report=ending.said)
            if ending.reported_question is not None:
                if result.exit_status == 0 and question and read_question_file(self._files, question) is not None:
                    self._log.report(_UNANSWERED_TEXT)
                return msgspec.structs.replace(
                    result, type="blocked", reason=None, reported_question=ending.reported_question
                )
        return (
            self._run_check(result) if result.type == "result" and not result.reason and self._command.check else result
        )

    def _run_check(self, command_result: AttemptResult) -> AttemptResult:
        """Run the check of a command that succeeded. Return one result for both, with the sum of their resources."""
        try:
            command = msgspec.structs.replace(self._command, exit_ok=(0,), skip_status=UNSET)
            start = self._make_start(command.check, False)
            check_result = self._run_command_process(command, start, spent_seconds=command_result.spent_seconds)
        except ProcessNotStarted as error:
            self._log.write_note(f"check not started: {error}")
            check_result = AttemptResult(type="failed", reason="exit")
        result = msgspec.structs.replace(
            check_result,
            reason="check" if check_result.reason in ("exit", "signal") else check_result.reason,
            seconds=command_result.seconds + check_result.seconds,
            cpu_seconds=command_result.cpu_seconds + check_result.cpu_seconds,
            memory_peak_bytes=max(command_result.memory_peak_bytes, check_result.memory_peak_bytes),
            orphaned_processes=(*command_result.orphaned_processes, *check_result.orphaned_processes),
            report=command_result.report,
        )
        question = (
            read_question_file(self._files, self._materials.question) if check_result.has_ended_by_itself else None
        )
        return (
            result
            if question is None
            else msgspec.structs.replace(result, type="blocked", reason=None, reported_question=question)
        )

    def _run_command_process(self, command: Command, start: ProcessStart, *, spent_seconds: float) -> AttemptResult:
        running = self._commands.start(start)
        attempt = RunningAttempt(
            command,
            running,
            self._log,
            self._listener,
            self._report_child,
            self._now_ns,
            questions=self._questions,
            run=self._run,
            spent_seconds=spent_seconds,
        )
        result = attempt.run()
        self._report_child(NO_COMMAND_PROCESS)
        return result
