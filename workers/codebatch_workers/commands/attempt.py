"""One attempt: a command from its start to its end, its output, its limits, and whoever wants it to end earlier.

The end is that of the process. What it had written by then is in the pipe, and read; who else holds the pipe open is
not waited for.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from codebatch.model.outcome import CommandReport, OutcomeType
from codebatch.model.record import CommandReason
from codebatch.model.work.command import Command
from codebatch.model.work.question import AskedQuestionText
from codebatch.system.processes.command_processes import ProcessEnded, Running
from codebatch.system.processes.progress_cell import Child
from codebatch.system.stopwatch import Stopwatch
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.commands.live_questions import LiveQuestions
from codebatch_workers.commands.log import AttemptLogWriter

TICK_SECONDS = 0.2
DRAIN_SECONDS = 0.2
DEATH_SECONDS = 5.0
_ENDING_TICK_SECONDS = 0.02
_MEMORY_TICK_SECONDS = 1.0
_MB = 1 << 20

Cause = Literal["timeout", "stall", "memory", "cancelled", "stopped"]


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an attempt. `type` is None where nothing is to be committed of it. `left` runs on, for people.

    `asked` is what it ended with; `said`, `until_ns` and `is_final` are as in `Outcome`. Some of its `seconds` it
    waited for answers, and spent the others.
    """

    type: OutcomeType | None
    reason: CommandReason | None = None
    exit_status: int | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_peak_bytes: int = 0
    left: tuple[str, ...] = ()
    asked: AskedQuestionText | None = None
    said: CommandReport | None = None
    spent_seconds: float = 0.0
    until_ns: int = 0
    is_final: bool = False

    @property
    def has_ended_by_itself(self) -> bool:
        """Whether nothing but its own end ended it."""
        return self.type == "result" or self.reason in ("exit", "signal")


class PeriodicChecks(Protocol):
    """What is to be done besides, while a command runs."""

    def seconds_left(self) -> float | None:
        """In how many seconds it is to be looked at; None where it need not be."""

    def look(self, now_ns: int) -> None:
        """Do it, where its time has come."""


class Attempt:
    """A command that runs."""

    def __init__(
        self,
        command: Command,
        running: Running,
        log: AttemptLogWriter,
        ears: CoordinatorListener,
        tell: Callable[[Child], None],
        now_ns: Callable[[], int],
        *,
        questions: LiveQuestions,
        run: PeriodicChecks,
        spent_seconds: float = 0.0,
    ) -> None:
        """`tell` is told of the command whenever something changed; `now_ns` is a clock that stops in suspend.

        `spent_seconds` of its time were spent before.
        """
        self._command = command
        self._running = running
        self._log = log
        self._ears = ears
        self._tell = tell
        self._now_ns = now_ns
        self._watch: Stopwatch[str] = Stopwatch()
        self._began_ns = self._output_ns = self._seen_ns = now_ns()
        self._watch.look(self._began_ns / 1e9)
        for limit in ("timeout", "memory"):
            self._watch.seconds(limit, 0)
        self._questions = questions
        self._run = run
        self._spent_seconds = spent_seconds
        self._waited_seconds = self._turned_seconds = 0.0
        self._sampled = 0
        self._memory_peak_bytes = 0
        self._cause: Cause | None = None
        self._grace = command.grace_seconds

    def run(self) -> AttemptResult:
        """Wait for its end, and bring it about where it is due."""
        self._tell_of_it()
        while not self._turn():
            pass
        seconds = (self._seen_ns - self._began_ns) / 1e9
        left: list[str] = []
        if self._cause is not None or self._command.leftovers == "kill":
            left = self._running.end(everything=self._cause is not None, seconds=DEATH_SECONDS)
        deadline_ns = self._now_ns() + round(DRAIN_SECONDS * 1e9)
        while self._pump() and self._now_ns() < deadline_ns:
            pass
        ended = self._running.close()
        type_, reason = self._judge(ended)
        return AttemptResult(
            type=type_,
            reason=reason,
            exit_status=None if ended is None else ended.exit_status,
            seconds=seconds,
            cpu_seconds=0.0 if ended is None else ended.cpu_seconds,
            memory_peak_bytes=max(self._memory_peak_bytes, 0 if ended is None else ended.memory_peak_bytes),
            left=tuple(left),
            spent_seconds=seconds - self._waited_seconds,
        )

    def _turn(self) -> bool:
        """Wait for something, and act on it; whether it is over."""
        seconds = TICK_SECONDS if self._cause is None else _ENDING_TICK_SECONDS
        if (left := self._run.seconds_left()) is not None:
            seconds = min(seconds, left)
        self._running.wait(seconds, self._ears.channel)
        self._seen_ns = self._now_ns()
        self._watch.look(self._seen_ns / 1e9)
        self._pump()
        self._questions.look(self._seen_ns)
        self._run.look(self._seen_ns)
        has_ended = self._running.poll()
        if has_ended and (self._cause is None or not self._running.has_company()):
            return True
        wish = self._ears.hear(self._seen_ns)
        if wish is not None:
            grace = self._command.grace_seconds if wish.grace_seconds is None else wish.grace_seconds
            self._bring_about(wish.why, grace)
        elif self._cause is None and (limit := self._limit_passed()) is not None:
            self._bring_about(limit, self._command.grace_seconds)
        return self._cause is not None and self._watch.seconds("grace", 0) >= self._grace

    def _bring_about(self, cause: Cause, grace_seconds: float) -> None:
        """Ask it to end. What first gave cause to it stands, the shortest grace holds."""
        if self._cause is not None:
            self._grace = min(self._grace, grace_seconds)
            return
        if self._running.poll():  # It was sooner: its end is its own.
            return
        self._cause, self._grace = cause, grace_seconds
        self._running.signal(signal.SIGTERM)
        self._running.signal(signal.SIGCONT)  # Who is stopped hears nothing.

    def _limit_passed(self) -> Cause | None:
        command = self._command
        passed = self._watch.seconds("timeout", 0)
        if self._questions.is_open:  # Nobody's time runs while it waits for an answer.
            self._waited_seconds += passed - self._turned_seconds
        self._turned_seconds = passed
        spent = self._spent_seconds + passed - self._waited_seconds
        if command.timeout_seconds is not None and spent >= command.timeout_seconds:
            return "timeout"
        silent = self._watch.seconds("stall", (self._log.bytes, self._waited_seconds))
        if command.stall_seconds is not None and silent >= command.stall_seconds:
            return "stall"
        if self._watch.seconds("memory", self._sampled) >= _MEMORY_TICK_SECONDS:
            self._sampled += 1
            self._watch.seconds("memory", self._sampled)
            resident = self._running.resident_bytes()
            self._memory_peak_bytes = max(self._memory_peak_bytes, resident)
            if command.memory_mb_max is not None and resident > command.memory_mb_max * _MB:
                return "memory"
        return None

    def _pump(self) -> bool:
        """Take what it has written; whether there was anything."""
        data = self._running.read()
        if data:
            self._log.write(data)
            self._output_ns = self._seen_ns
            self._tell_of_it()
        return bool(data)

    def _tell_of_it(self) -> None:
        self._tell(Child(self._running.pid, self._running.start_ticks, self._log.bytes, self._output_ns))

    def _judge(self, ended: ProcessEnded | None) -> tuple[OutcomeType | None, CommandReason | None]:
        match self._cause:
            case "timeout" | "stall" | "memory":
                return "failed", self._cause
            case "cancelled":
                return "cancelled", None
            case "stopped":
                return None, None
            case None:
                assert ended is not None, "nothing but its end ended it"
        if ended.exit_status in self._command.exit_ok:
            return "result", None
        return "failed", "signal" if ended.exit_status < 0 else "exit"
