"""One attempt: the execution of a command from start to end, with its output, its limits and requests to end it.

The attempt ends when the process of the command ends. Output that is then in the pipe is still read. Other processes
that hold the pipe open are not waited for.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.outcome import CommandReport, OutcomeType
from codebatch.model.record import CommandReason
from codebatch.model.text.quantities import human_seconds
from codebatch.model.work.command import Command
from codebatch.model.work.question import ReportedQuestion
from codebatch.system.processes.command_processes import ProcessEnded, RunningProcess
from codebatch.system.processes.progress_cell import CommandProcess
from codebatch.system.stopwatch import StateStopwatch
from codebatch_workers.commands.attempt_questions import AttemptQuestions
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.commands.log import AttemptLogWriter

ATTEMPT_TICK_SECONDS = 0.2
OUTPUT_DRAIN_SECONDS = 0.2
KILL_WAIT_SECONDS = 5.0
_ENDING_TICK_SECONDS = 0.02
_MEMORY_TICK_SECONDS = 1.0
_BYTES_PER_MB = 1 << 20

EndCause = Literal["timeout", "stall", "memory", "cancelled", "stopped"]


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an attempt.

    If `type` is None, no outcome is committed. `orphaned_processes` describes processes that keep running.

    `reported_question` is the question with which the command ended. `report`, `until_ns`, `wait_seconds`, `is_final`,
    `changes`, `unrecorded`, `outputs`, `inputs` and `notes` are as in `TaskOutcome`. `spent_seconds` are `seconds`
    without the time spent waiting for answers.
    """

    type: OutcomeType | None
    reason: CommandReason | None = None
    exit_status: int | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_peak_bytes: int = 0
    orphaned_processes: tuple[str, ...] = ()
    reported_question: ReportedQuestion | None = None
    report: CommandReport | None = None
    spent_seconds: float = 0.0
    until_ns: int = 0
    wait_seconds: float = 0.0
    is_final: bool = False
    changes: Digest = Digest("")
    unrecorded: int = 0
    outputs: Digest = Digest("")
    inputs: Digest = Digest("")
    notes: tuple[str, ...] = ()

    @property
    def has_ended_by_itself(self) -> bool:
        """Whether the command ended without a request to end, which a limit or a user causes."""
        return self.type == "result" or self.reason in ("exit", "signal")


class PeriodicChecks(Protocol):
    """Work that the worker does at certain times while a command runs."""

    def remaining_seconds(self) -> float | None:
        """Return the number of seconds until the work is due, or None if no work is planned."""

    def do_if_due(self, now_ns: int) -> None:
        """Do the work if it is due at the time `now_ns`."""


class RunningAttempt:
    """An attempt whose process has started. `run` waits for its end."""

    def __init__(
        self,
        command: Command,
        running: RunningProcess,
        log: AttemptLogWriter,
        listener: CoordinatorListener,
        report_child: Callable[[CommandProcess], None],
        now_ns: Callable[[], int],
        *,
        questions: AttemptQuestions,
        run: PeriodicChecks,
        spent_seconds: float = 0.0,
    ) -> None:
        """`report_child` is called when the process has started, and whenever the process writes output.

        `now_ns` is a clock that stops in suspend. `spent_seconds` is the part of the time limit that was used before
        this process started: a check shares the limit with its command.
        """
        self._command = command
        self._running = running
        self._log = log
        self._listener = listener
        self._report_child = report_child
        self._now_ns = now_ns
        self._periodic_checks: StateStopwatch[str] = StateStopwatch()
        self._began_ns = self._output_ns = self._progress_reported_ns = now_ns()
        self._periodic_checks.observe(self._began_ns / 1e9)
        for limit in ("timeout", "memory"):
            self._periodic_checks.seconds_in_state(limit, 0)
        self._questions = questions
        self._run = run
        self._spent_seconds = spent_seconds
        self._waited_seconds = self._seconds_at_last_check = 0.0
        self._memory_sampled_at = 0
        self._memory_peak_bytes = 0
        self._end_cause: EndCause | None = None
        self._grace_seconds = command.grace_seconds

    def run(self) -> AttemptResult:
        """Wait for the end of the process. If a limit is exceeded or a request arrives, end the process."""
        self._report_progress()
        while not self._wait_and_check():
            pass
        seconds = (self._progress_reported_ns - self._began_ns) / 1e9
        orphans: list[str] = []
        if self._end_cause is not None or self._command.leftovers == "kill":
            orphans = self._running.kill_and_wait(everything=self._end_cause is not None, seconds=KILL_WAIT_SECONDS)
        deadline_ns = self._now_ns() + round(OUTPUT_DRAIN_SECONDS * 1e9)
        while self._read_available_output() and self._now_ns() < deadline_ns:
            pass
        ended = self._running.close()
        type_, reason = self._result_type(ended)
        memory_peak_bytes = max(self._memory_peak_bytes, 0 if ended is None else ended.memory_peak_bytes)
        return AttemptResult(
            type=type_,
            reason=reason,
            exit_status=None if ended is None else ended.exit_status,
            seconds=seconds,
            cpu_seconds=0.0 if ended is None else ended.cpu_seconds,
            memory_peak_bytes=memory_peak_bytes,
            orphaned_processes=tuple(orphans),
            spent_seconds=seconds - self._waited_seconds,
            notes=self._limit_notes(memory_peak_bytes),
        )

    def _limit_notes(self, memory_peak_bytes: int) -> tuple[str, ...]:
        """Return a text about the limit that ended the attempt, with its figures. Empty if no limit ended it."""
        command = self._command
        match self._end_cause:
            case "timeout":
                return (f"time limit {human_seconds(command.timeout_seconds or 0.0)}",)
            case "stall":
                return (f"no output for {human_seconds(command.stall_seconds or 0.0)}",)
            case "memory":
                peak_mb = math.ceil(memory_peak_bytes / _BYTES_PER_MB)
                return (f"memory limit {command.memory_mb_max:,} MB, peak {peak_mb:,} MB",)
            case _:
                return ()

    def _wait_and_check(self) -> bool:
        """Wait for an event, then read output and apply limits and requests.

        Return whether the attempt is over.
        """
        seconds = ATTEMPT_TICK_SECONDS if self._end_cause is None else _ENDING_TICK_SECONDS
        if (remaining_seconds := self._run.remaining_seconds()) is not None:
            seconds = min(seconds, remaining_seconds)
        self._running.wait(seconds, self._listener.channel)
        self._progress_reported_ns = self._now_ns()
        self._periodic_checks.observe(self._progress_reported_ns / 1e9)
        self._read_available_output()
        self._questions.check_files(self._progress_reported_ns)
        self._run.do_if_due(self._progress_reported_ns)
        has_ended = self._running.has_ended()
        if has_ended and (self._end_cause is None or not self._running.has_other_processes()):
            return True
        request = self._listener.poll(self._progress_reported_ns)
        if request is not None:
            grace = self._command.grace_seconds if request.grace_seconds is None else request.grace_seconds
            self._request_end(request.why, grace)
        elif self._end_cause is None and (limit := self._exceeded_limit()) is not None:
            self._request_end(limit, self._command.grace_seconds)
        return self._end_cause is not None and self._periodic_checks.seconds_in_state("grace", 0) >= self._grace_seconds

    def _request_end(self, cause: EndCause, grace_seconds: float) -> None:
        """Send SIGTERM to the process, and record the cause.

        If an end was already requested, the first cause stays, and the shorter grace period applies.
        """
        if self._end_cause is not None:
            self._grace_seconds = min(self._grace_seconds, grace_seconds)
            return
        if self._running.has_ended():  # The process has ended by itself, so this request is not the cause.
            return
        self._end_cause, self._grace_seconds = cause, grace_seconds
        self._running.signal_group(signal.SIGTERM)
        self._running.signal_group(signal.SIGCONT)  # A stopped process does not receive SIGTERM until it continues.

    def _exceeded_limit(self) -> EndCause | None:
        command = self._command
        passed = self._periodic_checks.seconds_in_state("timeout", 0)
        if self._questions.is_open:  # The time limit does not run while the command waits for an answer.
            self._waited_seconds += passed - self._seconds_at_last_check
        self._seconds_at_last_check = passed
        spent_seconds = self._spent_seconds + passed - self._waited_seconds
        if command.timeout_seconds is not None and spent_seconds >= command.timeout_seconds:
            return "timeout"
        silent_seconds = self._periodic_checks.seconds_in_state("stall", (self._log.bytes, self._waited_seconds))
        if command.stall_seconds is not None and silent_seconds >= command.stall_seconds:
            return "stall"
        if self._periodic_checks.seconds_in_state("memory", self._memory_sampled_at) >= _MEMORY_TICK_SECONDS:
            self._memory_sampled_at += 1
            self._periodic_checks.seconds_in_state("memory", self._memory_sampled_at)
            resident = self._running.resident_bytes()
            self._memory_peak_bytes = max(self._memory_peak_bytes, resident)
            if command.memory_mb_max is not None and resident > command.memory_mb_max * _BYTES_PER_MB:
                return "memory"
        return None

    def _read_available_output(self) -> bool:
        """Append available output to the log. Return whether there was any."""
        data = self._running.read()
        if data:
            self._log.write(data)
            self._output_ns = self._progress_reported_ns
            self._report_progress()
        return bool(data)

    def _report_progress(self) -> None:
        self._report_child(
            CommandProcess(self._running.pid, self._running.start_ticks, self._log.bytes, self._output_ns)
        )

    def _result_type(self, ended: ProcessEnded | None) -> tuple[OutcomeType | None, CommandReason | None]:
        match self._end_cause:
            case "timeout" | "stall" | "memory":
                return "failed", self._end_cause
            case "cancelled":
                return "cancelled", None
            case "stopped":
                return None, None
            case None:
                assert ended is not None, "nothing but its end ended it"
        if ended.exit_status == self._command.skip_status:
            return "result", "unneeded"
        if ended.exit_status in self._command.exit_ok:
            return "result", None
        return "failed", "signal" if ended.exit_status < 0 else "exit"
