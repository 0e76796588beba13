"""What an attempt does: the command, then its check, and what both leave to be asked."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from codebatch.model.work.command import Command
from codebatch.system.files.files import Files
from codebatch.system.processes.command_processes import Commands, NotStarted, ProcessStart
from codebatch.system.processes.progress_cell import Child
from codebatch_workers.commands.attempt import Attempt, AttemptResult
from codebatch_workers.commands.attempt_inputs import Materials
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.commands.live_questions import LiveQuestions
from codebatch_workers.commands.log import AttemptLogWriter
from codebatch_workers.commands.result_parsing import read_asked, read_ending
from codebatch_workers.commands.run import PrefetchedRun

NOTHING = Child(0, 0, 0, 0)

StartOf = Callable[[str | tuple[str, ...], bool], ProcessStart]
"""How to start what is to run, and whether that has the command's standard input. Raises NotStarted."""


class AttemptExecution:
    """One attempt, from its start to its end."""

    def __init__(
        self,
        command: Command,
        materials: Materials,
        log: AttemptLogWriter,
        ears: CoordinatorListener,
        questions: LiveQuestions,
        *,
        files: Files,
        commands: Commands,
        start_of: StartOf,
        tell: Callable[[Child], None],
        run: PrefetchedRun,
        wall_ns: Callable[[], int],
        has_written: Callable[[], bool],
        now_ns: Callable[[], int],
    ) -> None:
        """`command` is as this try has it. `tell` and `now_ns` are as in `Attempt`.

        Whether the command `has_written` anything into the directory of its attempt is perhaps known.
        """
        self._command = command
        self._materials = materials
        self._log = log
        self._ears = ears
        self._questions = questions
        self._files = files
        self._commands = commands
        self._start_of = start_of
        self._tell = tell
        self._run = run
        self._wall_ns = wall_ns
        self._has_written = has_written
        self._now_ns = now_ns

    def run(self) -> AttemptResult:
        """Do it, wait for the end, and say what follows if it failed."""
        result = self._attempt()
        has_rules = self._command.retry_if is not None or self._command.wait_if
        if result.type != "failed" or result.reason == "start" or not has_rules:
            return result
        from codebatch_workers.commands.failures import judge_failure  # Few commands have such rules.

        verdict = judge_failure(self._command, result, self._log.end, self._wall_ns)
        if verdict.note:
            self._log.write(f"codebatch: {verdict.note}\n".encode())
        return verdict.result

    def _attempt(self) -> AttemptResult:
        try:
            result = self._watch(self._command, self._start_of(self._command.run, True), spent_seconds=0.0)
        except NotStarted as error:
            self._log.write(f"codebatch: not started: {error}\n".encode("utf-8", "surrogateescape"))
            return AttemptResult(type="failed", reason="start")
        if result.has_ended_by_itself and result.exit_status is not None:
            question = self._materials.question if self._has_written() else None
            ending = read_ending(self._command, self._files, question, result.exit_status, self._log.end)
            if ending.problem:
                self._log.write(f"codebatch: {ending.problem}\n".encode())
            result = msgspec.structs.replace(result, said=ending.said)
            if ending.asked is not None:
                return msgspec.structs.replace(result, type="blocked", reason=None, asked=ending.asked)
        return self._checked(result) if result.type == "result" and self._command.check else result

    def _checked(self, ran: AttemptResult) -> AttemptResult:
        """What its check makes of a command that succeeded."""
        try:
            command = msgspec.structs.replace(self._command, exit_ok=(0,))
            start = self._start_of(command.check, False)
            checked = self._watch(command, start, spent_seconds=ran.spent_seconds)
        except NotStarted as error:
            self._log.write(f"codebatch: check not started: {error}\n".encode("utf-8", "surrogateescape"))
            checked = AttemptResult(type="failed", reason="exit")
        result = msgspec.structs.replace(
            checked,
            reason="check" if checked.reason in ("exit", "signal") else checked.reason,
            seconds=ran.seconds + checked.seconds,
            cpu_seconds=ran.cpu_seconds + checked.cpu_seconds,
            memory_peak_bytes=max(ran.memory_peak_bytes, checked.memory_peak_bytes),
            left=(*ran.left, *checked.left),
            said=ran.said,
        )
        asked = read_asked(self._files, self._materials.question) if checked.has_ended_by_itself else None
        return result if asked is None else msgspec.structs.replace(result, type="blocked", reason=None, asked=asked)

    def _watch(self, command: Command, start: ProcessStart, *, spent_seconds: float) -> AttemptResult:
        running = self._commands.start(start)
        attempt = Attempt(
            command,
            running,
            self._log,
            self._ears,
            self._tell,
            self._now_ns,
            questions=self._questions,
            run=self._run,
            spent_seconds=spent_seconds,
        )
        result = attempt.run()
        self._tell(NOTHING)
        return result
