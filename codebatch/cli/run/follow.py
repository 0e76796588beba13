"""The commands `follow` and `events`: events of a batch, live or recorded."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import msgspec

from codebatch.cli.answers.event_lines import current_file_text, event_line, is_printed
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, batch_option, with_common_options
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.output.eta import eta_text
from codebatch.cli.output.progress import ProgressStage
from codebatch.cli.output.terminal import printable_line
from codebatch.errors import BatchIncomplete
from codebatch.model.text.quantities import count_text
from codebatch.model.work.event import AnyEvent, BatchEnded, BatchNotified, BatchProgress, EventCursor, instant_ns
from codebatch.operations.runs.events import BatchActivity
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.system.clock import wall_ns
from codebatch.work.control.follow import iter_followed_events, make_follower, read_cursor
from codebatch.work.limit_texts import closed_pool_texts, silence_text

since_option = option(
    "--since",
    metavar="CURSOR",
    help="Print only events after the event with this cursor",
    details="A cursor belongs to one batch. If this is not the latest batch, name it with --batch.",
)

_RUNNING_STATES = (CommandState.RUNNING.value,)
_OPEN_STATES = (CommandState.PENDING.value, CommandState.READY.value, "WAITING")


@command()
@batch_option
@since_option
@option("--keep", "keeps", is_flag=True, help="Keep waiting while no process runs the batch")
@explain_option
@with_common_options
def follow(context: CommandContext, batch_reference: str | None, since: str | None, keeps: bool) -> int:
    """Follow the progress of a batch until it ends.

    The batch may run in another terminal, in the background or on another host. With --json each event is one line.

    Exit status 0 if all is done. Exit status 3 otherwise, or if no process runs the batch.
    """
    store, batch = context.batch(batch_reference, "any")
    place = read_cursor(since, store, batch)
    progress_line = _ProgressLine(context, batch)
    last_event: AnyEvent | None = None
    missing = _MissingEvents(batch, place)
    activity = BatchActivity(is_conducted=False)
    for item in iter_followed_events(make_follower(store, batch, place), keeps=keeps):
        if isinstance(item, BatchActivity):
            if activity.is_conducted and not item.is_conducted and not item.is_over:
                _report_not_running(context, batch, item, last_event)
            if item.silent_since_ns is not None and activity.silent_since_ns is None:
                context.report(
                    f"the process that runs the batch is {silence_text(item.silent_since_ns)}; see: "
                    f"codebatch status --batch {batch.id}"
                )
            activity = item
            progress_line.add_status(item)
        elif item is not None:
            last_event = last_event if isinstance(item, BatchNotified) else item
            missing.add(item)
            _print_event(context, item, only_printed=True)
            progress_line.add_event(item)
        progress_line.draw()
    if activity.is_over and not isinstance(last_event, BatchEnded) and not place.seq:
        counts_shown = ", ".join(f"{count:,} {state.lower()}" for state, count in (activity.counts or {}).items())
        context.report(f"events are missing; the batch has ended: {counts_shown}")
    else:
        missing.report(context)
    if activity.shortfall is not None:
        raise _not_running_error(batch, last_event) if not activity.is_over and is_work(batch) else activity.shortfall
    return 0


@command()
@batch_option
@since_option
@option("--follow", "is_followed", is_flag=True, help="Continue with new events until the batch ends")
@explain_option
@with_common_options
def events(context: CommandContext, batch_reference: str | None, since: str | None, is_followed: bool) -> int:
    """Print the events of a batch.

    Each event is one line, with --json a JSON object. To continue after an event, pass its `cursor` to --since. Exit
    status 3 if events are missing.
    """
    store, batch = context.batch(batch_reference, "any")
    place = read_cursor(since, store, batch)
    followed = make_follower(store, batch, place)
    is_silent = not place.seq
    missing = _MissingEvents(batch, place)
    for event in iter_followed_events(followed) if is_followed else followed.read():
        if event is not None and not isinstance(event, BatchActivity):
            is_silent = False
            missing.add(event)
            _print_event(context, event, only_printed=False)
    if is_silent:
        context.report("no events: the batch has not started, or its events were removed")
    return BatchIncomplete.exit_status if missing.report(context) or is_silent else 0


class _MissingEvents:
    """The events of the last runner that are missing before events that were printed.

    Those of earlier runners do not count, because a new runner reports again what is missing.
    """

    def __init__(self, batch: BatchDir, place: EventCursor) -> None:
        self._is_counted = is_work(batch)  # The events of an analysis are derived from its outcomes.
        self._place = place
        self._count = 0

    def add(self, event: AnyEvent) -> None:
        """Count the events that are missing before an event, which follows the one of the last call."""
        if event.place.epoch != self._place.epoch:
            self._place, self._count = EventCursor(event.place.epoch, 0), 0
        self._count += event.place.seq - self._place.seq - 1
        self._place = event.place

    def report(self, context: CommandContext) -> bool:
        """Report the number of missing events. Return whether there are any."""
        is_any = self._is_counted and self._count > 0
        if is_any:
            are = "event is" if self._count == 1 else "events are"
            context.report(f"{self._count:,} {are} missing: not written (is the disk full?), damaged or removed")
        return is_any


def _print_event(context: CommandContext, event: AnyEvent, *, only_printed: bool) -> None:
    if context.as_json:
        line = msgspec.json.encode(event) + b"\n"
    elif only_printed and not is_printed(event):
        return
    else:
        line = printable_line(event_line(event)).encode(sys.stdout.encoding or "utf-8", "backslashreplace") + b"\n"
    with context.display.without_progress_line():
        sys.stdout.buffer.write(line)
        sys.stdout.flush()


class _ProgressLine:
    """The line of `follow` that shows the progress of the batch."""

    def __init__(self, context: CommandContext, batch: BatchDir) -> None:
        self._context = context
        self._things = "tasks" if is_work(batch) else "results"
        self._counts: Mapping[str, int] = {}
        self._progress: BatchProgress | None = None
        self._silent_since_ns: int | None = None

    def add_event(self, event: AnyEvent) -> None:
        """Update the progress with an event."""
        self._counts = event.counts
        if isinstance(event, BatchProgress):
            self._progress = event

    def add_status(self, activity: BatchActivity) -> None:
        """Update the progress with what was read from disk: counts, and whether the runner responds."""
        self._silent_since_ns = activity.silent_since_ns
        if activity.counts is not None:
            self._counts = activity.counts

    def draw(self) -> None:
        """Draw the line."""
        counts = self._counts
        planned = sum(counts.values())
        to_go = sum(counts.get(state, 0) for state in _OPEN_STATES)
        running = sum(counts.get(state, 0) for state in _RUNNING_STATES)
        blocked = counts.get(CommandState.BLOCKED.value, 0)
        done = counts.get(CommandState.DONE.value, 0)
        more = [f"{running:,} running"] if running else []
        more += [f"{count:,} {state.lower()}" for state, count in counts.items() if state in ("FAILED", "BLOCKED")]
        more += [f"{to_go:,} left"] if to_go else []
        more += [] if self._silent_since_ns is None else [silence_text(self._silent_since_ns)]
        closed = self._progress.closed_pools if self._progress is not None else ()
        by_hours = {pool.pool for pool in closed if pool.reason == "hours"}
        more += closed_pool_texts({pool.pool: instant_ns(pool.until) for pool in closed}, by_hours)
        self._context.display.show_stage(
            ProgressStage(
                "following",
                planned - to_go - running - blocked,
                planned,
                self._things,
                ", ".join(more),
                detail="" if self._progress is None or done == planned else current_file_text(self._progress.running),
                is_even=False,
                remaining_text=self._remaining_text() if done < planned else "",
            )
        )

    def _remaining_text(self) -> str:
        """Return the remaining time as text.

        Between two events, the time decreases with the local clock, unless a task waits for an answer.
        """
        if self._progress is None or self._silent_since_ns is not None:
            return ""
        blocked = self._counts.get(CommandState.BLOCKED.value, 0)
        past = 0.0 if blocked else max(0.0, (wall_ns() - instant_ns(self._progress.at)) / 1e9)
        return eta_text(self._progress.eta_seconds, unknown=self._progress.without_estimate, blocked=blocked, past=past)


def _report_not_running(
    context: CommandContext, batch: BatchDir, activity: BatchActivity, last: AnyEvent | None
) -> None:
    if activity.orphaned_commands:
        them = "this task" if activity.orphaned_commands == 1 else "these tasks"
        orphans = activity.orphaned_commands
        runs = f"{count_text(orphans, 'task')} still {'runs' if orphans == 1 else 'run'}"
        context.note(
            f"the batch is not running{_since_hint(last)}, but {runs}; waiting for {them} to end; "
            f"to resume the batch: codebatch resume --batch {batch.id}"
        )


def _not_running_error(batch: BatchDir, last: AnyEvent | None) -> BatchIncomplete:
    return BatchIncomplete(
        f"batch {batch.id} has not ended, but it is not running{_since_hint(last)}",
        hint=f"resume it with: codebatch resume --batch {batch.id}",
    )


def _since_hint(last: AnyEvent | None) -> str:
    return "" if last is None else f" (last event at {event_line(last)[:8]})"
