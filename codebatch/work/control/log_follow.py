"""The log of one task while it is written, over all further attempts of the task until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.work.command import CommandId
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.attempts import CommandPlaces
from codebatch.work.control.batches import load_work_batch
from codebatch.work.control.logs import LogReader
from codebatch.work.control.requests import find_commands

POLL_SECONDS = 0.2
_STATUS_SECONDS = 1.0
_STATUS_TIME_FACTOR = 10
"""The pause between two reads of the status is at least this often the time of a read, which large batches need."""


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a task printed. `round` and `epoch` identify the attempt, as in its log."""

    task: CommandId
    round: int
    epoch: int
    line: str


class FollowedTask(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a followed task. `is_over` is set once no further line can come.

    `is_conducted` is False if no process runs the batch.
    """

    state: CommandState
    is_over: bool
    is_conducted: bool


def follow_log(
    store: StoreDir, batch: BatchDir, task: str, *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[LogLine | FollowedTask]:
    """Yield the lines of a task's latest attempt and of all later ones, and the state of the task at intervals.

    While no process runs the batch, wait until one resumes it. The last value is a FollowedTask that is over: the task
    has ended, or its batch has. Raises InvalidInput for an unknown task.
    """
    followed = _FollowedLog(store, batch, task)
    next_look = 0.0
    while True:
        began = time.monotonic()
        if began >= next_look:
            yield from followed.read_status()
            now = time.monotonic()
            next_look = now + max(_STATUS_SECONDS, _STATUS_TIME_FACTOR * (now - began))
        yield from followed.read_lines()
        yield followed.state
        if followed.state.is_over:
            return
        sleep(POLL_SECONDS)


class _FollowedLog:
    """The log of the attempt of a task that is read at the moment."""

    def __init__(self, store: StoreDir, batch: BatchDir, task: str) -> None:
        self._store = store
        self._batch = batch
        statuses = find_commands(load_work_batch(store, batch), [task])
        if len(statuses) > 1:
            raise InvalidInput(f"{task!r} matches {len(statuses):,} tasks", hint="follow one task at a time")
        self._task = statuses[0].id
        self._place = CommandPlaces(batch.plan().shards).place_of_item(statuses[0].item)
        self._attempt = (statuses[0].round, statuses[0].epoch)
        self._reader: LogReader | None = None
        self.state = FollowedTask(state=statuses[0].state, is_over=False, is_conducted=True)

    def read_status(self) -> Iterator[LogLine]:
        """Read the state of the task. If it has later attempts, yield their lines, but only whole lines of the last."""
        standing = load_work_batch(self._store, self._batch).standing
        (status,) = (command for command in standing.commands if command.id == self._task)
        self.state = FollowedTask(
            state=status.state,
            is_over=status.holder is None and (status.state.is_ended or standing.state.is_final),
            is_conducted=standing.coordinator is not None or bool(standing.workers),
        )
        for later in self._attempts():
            if later == self._attempt and self._reader is not None:
                continue
            yield from self.read_lines(is_over=True)
            name = layout.log_name(*self._place, *later)
            self._attempt, self._reader = later, LogReader(self._batch.files, self._batch.root / layout.LOGS / name)

    def read_lines(self, *, is_over: bool | None = None) -> Iterator[LogLine]:
        """Yield the lines that the attempt has printed since the last call."""
        if self._reader is None:
            return
        for text in self._reader.read(is_over=self.state.is_over if is_over is None else is_over):
            yield LogLine(task=self._task, round=self._attempt[0], epoch=self._attempt[1], line=text)

    def _attempts(self) -> list[tuple[int, int]]:
        """Return the attempts that have a log, from the one that is read at the moment."""
        parsed = map(layout.parse_log_name, self._batch.files.listing(self._batch.root / layout.LOGS))
        attempts = [parts[2:] for parts in parsed if parts is not None and parts[:2] == self._place]
        return sorted(attempt for attempt in attempts if attempt >= self._attempt)
