"""The progress of a batch of commands, printed on standard error while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codebatch.cli.answers.work_analysis import confirm_inferred
from codebatch.cli.answers.work_status import parallelism_text
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.framework.work_options import AttemptOutput
from codebatch.cli.output.eta import eta_text
from codebatch.cli.output.program_output import ProgramOutput, shorten_line
from codebatch.cli.output.progress import ProgressStage
from codebatch.model.text.quantities import count_text, human_seconds
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import StopCause
from codebatch.model.work.work_batch import RejectedEdge, Work
from codebatch.query.status.unrecorded_work import unrecorded_work_text
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.work.logs import last_lines
from codebatch.work.control.listener import CommandEnded, CommandStopped, WorkListener, WorkProgress
from codebatch.work.control.logs import LogReader
from codebatch.work.control.status import failure_reason_text, stop_reason_text
from codebatch.work.limit_texts import cap_text, closed_pool_texts, wait_text

_FAILED_LOG_LINES_MAX = 20
_RUNNING_SHOWN_MAX = 3
_ID_WIDTH_MAX = 32


class WorkProgressListener(WorkListener):
    """Listener that reports the progress of a batch of commands on standard error."""

    def __init__(self, context: CommandContext, output: AttemptOutput, *, is_sure: bool = False) -> None:
        """Create the listener. With `is_sure`, inferred dependencies are used without asking."""
        self._context = context
        self._output = output
        self.wants_colors = context.has_colored_notes
        self._is_sure = is_sure
        self._logs: dict[Path, tuple[LogReader, ProgramOutput]] = {}
        self._width = 0
        self._has_reported_start = False

    def note(self, text: str) -> None:
        self._context.note(text)

    def warn(self, text: str) -> None:
        self._context.report(text)

    def agrees(self, work: Work, rejected: Sequence[RejectedEdge]) -> bool:
        return confirm_inferred(self._context, work, rejected, is_sure=self._is_sure)

    def chosen(self, batch: BatchDir, work: Work) -> None:
        self._context.use_store_of(batch)
        self._batch = batch
        self._width = min(_ID_WIDTH_MAX, max(map(len, work.order), default=0))
        how = parallelism_text(work.strategy, work.max_parallel, len(work.order))
        self.note(f"batch {batch.id}: {how}, from {work.source}")

    def update(self, progress: WorkProgress) -> None:
        running_texts = [
            f"{command.id} {human_seconds(command.seconds)}" for command in progress.running[:_RUNNING_SHOWN_MAX]
        ]
        more = len(progress.running) - _RUNNING_SHOWN_MAX
        failed = [f"{progress.failed:,} failed"] if progress.failed else []
        blocked = [f"{progress.blocked:,} blocked"] if progress.blocked else []
        waits = ["paused"] if progress.is_paused else []
        waits += closed_pool_texts(progress.closed, progress.by_hours)
        if waits and not (self._has_reported_start or progress.running):
            self.note(f"no task runs yet: {', '.join(waits)}")
        self._has_reported_start = self._has_reported_start or bool(waits or progress.running)
        waits += [cap_text(cap, progress.cost_unit) for cap in progress.caps]
        details = ", ".join([*failed, *blocked, *waits, *running_texts, *([f"{more} more"] if more > 0 else [])])
        remaining, is_paused = "", progress.is_paused
        if (eta := progress.eta) is not None:
            remaining = eta_text(eta.seconds, unknown=eta.unknown, blocked=progress.blocked, is_paused=is_paused)
        stage = ProgressStage(
            "running", progress.ended, progress.planned, "tasks", details, is_even=False, remaining_text=remaining
        )
        self._context.display.show_stage(stage)
        if self._output == "all":
            for command in progress.running:
                self._print_new_output(command.id, command.log)

    def ended(self, ended: CommandEnded) -> None:
        if self._output == "all":
            self._print_new_output(ended.id, ended.log, is_over=True)
        took = "" if ended.seconds is None else human_seconds(ended.seconds)
        why = failure_reason_text(ended.reason, ended.exit_status)
        if ended.until_ns:
            why += f"; {wait_text(ended.pools, ended.until_ns)}"
        elif ended.again_seconds is not None:
            why += f"; retry in {human_seconds(ended.again_seconds)}" if ended.again_seconds else "; retrying"
        if ended.state is CommandState.BLOCKED:
            why = f"question: codebatch work questions --batch {self._batch.id}"
        lost = unrecorded_work_text(ended.unrecorded) if ended.unrecorded else ""
        why = "; ".join(filter(None, (why, lost, *ended.notes)))
        place = f"[{ended.ended:,}/{ended.planned:,}]"
        word = "waiting" if ended.until_ns else ended.state.value.lower()
        self.note(f"{place} {ended.id.ljust(self._width)} {word:9} {took:8} {why}".rstrip())
        if ended.state is CommandState.FAILED and ended.again_seconds is None and self._output == "failed":
            output = ProgramOutput(is_colored=self.wants_colors)
            for line in last_lines(self._batch.files, ended.log, _FAILED_LOG_LINES_MAX):
                self._context.relay(f"        {output.printable_line(shorten_line(line))}")
            self.note(f"        whole log: codebatch work log {ended.id} --batch {self._batch.id}")

    def asking(self, id: CommandId) -> None:
        self.note(f"{id} waits for an answer: codebatch work questions --batch {self._batch.id}")

    def draining(self, running: int) -> None:
        suffix = f"; waiting for {count_text(running, 'task')} (press Ctrl-C again to stop them)" if running else ""
        self.note(f"no new tasks are started{suffix}")

    def ending(self, running: int, *, is_killed: bool) -> None:
        count = count_text(running, "task")
        self.note(f"killing {count}" if is_killed else f"stopping {count} (press Ctrl-C again to kill)")

    def stopping(self, cause: StopCause, detail: str, running: int) -> None:
        self.note(f"{stop_reason_text(cause, detail)}: stopping {count_text(running, 'task')}")

    def notifying(self) -> None:
        self._context.display.show_stage(ProgressStage("delivering notifications"))

    def stopped(self, stopped: CommandStopped) -> None:
        place = f"[{stopped.ended:,}/{stopped.planned:,}]"
        why = stop_reason_text(stopped.cause, stopped.detail)
        self.note(f"{place} {stopped.id.ljust(self._width)} stopped   {human_seconds(stopped.seconds):8} {why}")

    def _print_new_output(self, command: CommandId, log: Path, *, is_over: bool = False) -> None:
        if log not in self._logs:
            self._logs[log] = LogReader(self._batch.files, log), ProgramOutput(is_colored=self.wants_colors)
        reader, output = self._logs[log]
        for line in reader.read(is_over=is_over):
            self._context.relay(f"[{command}] {output.printable_line(line)}")
        if is_over:
            del self._logs[log]
