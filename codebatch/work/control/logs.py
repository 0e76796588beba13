"""Logs of attempts: the raw bytes of standard output and standard error, in the order in which they were written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput, NothingToDo
from codebatch.model.text.quantities import count_text
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.work.command import CommandId
from codebatch.query.status.work_status import CommandStatus
from codebatch.store import layout
from codebatch.store.work.attempts import CommandPlaces
from codebatch.system.files.file_reader import FileReader
from codebatch.work.control.batches import WorkBatch

PIECE_BYTES = 1 << 20


class OffsetAfterEnd(InvalidInput):
    """An offset that is greater than the size of a log. The log was truncated, or it is another one."""


class AttemptLogFile(msgspec.Struct, frozen=True, kw_only=True):
    """The log of an attempt. `bytes` is its current length, or None if the file does not exist."""

    task: CommandId
    round: int
    path: Path
    bytes: int | None


class LogPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a log. `next_offset` is the offset after its last byte, and `size` is the current length of the log.

    `log` names the log, because each attempt of a task has its own. Pass it with `next_offset` to read on.
    """

    data: bytes
    next_offset: int
    size: int
    log: str


def find_log(work_batch: WorkBatch, command: str, round_: int | None = None) -> AttemptLogFile:
    """Return the log of a command's last attempt. With `round_`, return the log of the last attempt in this round.

    Raises InvalidInput for an unknown command or round, and NothingToDo if the command has not started.
    """
    status = _find_command(work_batch, command)
    if not status.round:
        raise NothingToDo(f"{command} has not started: it is {status.state.value}")
    if round_ is None or round_ == status.round:
        return last_attempt_log(work_batch, status)
    place = CommandPlaces(work_batch.batch.plan().shards).place_of_item(status.item)
    names = work_batch.batch.files.listing(work_batch.batch.root / layout.LOGS)
    epochs = [parts[3] for name in names if (parts := layout.parse_log_name(name)) and parts[:3] == (*place, round_)]
    if not epochs:
        hint = (
            f"the task had {count_text(status.round, 'attempt')}; without --round the log of the last attempt is shown"
        )
        raise InvalidInput(f"no log of attempt {round_} of {command}", hint=hint)
    return _log_file(work_batch, status.id, round_, layout.log_name(*place, round_, max(epochs)))


def find_named_log(work_batch: WorkBatch, command: str, name: str) -> AttemptLogFile:
    """Return the log of a command with a name. Raises InvalidInput for a wrong name."""
    status = _find_command(work_batch, command)
    parts = layout.parse_log_name(name)
    place = CommandPlaces(work_batch.batch.plan().shards).place_of_item(status.item)
    if parts is None or parts[:2] != place:
        raise InvalidInput(f"{name[:200]!r} is not a log of task {command}")
    return _log_file(work_batch, status.id, parts[2], name)


def _find_command(work_batch: WorkBatch, command: str) -> CommandStatus:
    commands = work_batch.standing.commands
    status = next((each for each in commands if each.id == command), None)
    if status is None:
        hint = did_you_mean_text(command, [each.id for each in commands[:1000]])
        raise InvalidInput(f"batch {work_batch.batch.id} has no task {command!r}", hint=hint)
    return status


def last_attempt_log(work_batch: WorkBatch, command: CommandStatus) -> AttemptLogFile:
    """Return the log of a command's last attempt. The command must have started."""
    return _log_file(work_batch, command.id, command.round, command.log)


def _log_file(work_batch: WorkBatch, command: CommandId, round_: int, name: str) -> AttemptLogFile:
    path = work_batch.batch.root / layout.LOGS / name
    return AttemptLogFile(task=command, round=round_, path=path, bytes=work_batch.batch.files.size(path))


def read_log_part(
    work_batch: WorkBatch,
    task: str,
    round_: int | None = None,
    offset: int = 0,
    limit: int = PIECE_BYTES,
    *,
    log_name: str = "",
) -> LogPart:
    """Return the bytes of a log from `offset`, at most `limit` bytes. At most this much of the log is read.

    The log is that of `find_log`, or the one that an earlier part names. A negative offset counts from the end of the
    log. At the end there is no data.

    Raises InvalidInput for a limit that is not from 1 to 1 MiB, or if the log of a positive offset is not certain.
    Raises OffsetAfterEnd, NothingToDo if the log does not exist, and the errors of `find_log` and `find_named_log`.
    """
    if not 1 <= limit <= PIECE_BYTES:
        raise InvalidInput(
            f"the limit of a part of a log is 1 to {PIECE_BYTES:,} bytes, not {limit:,}",
            hint="read a long log in parts: each part has the `next_offset` of the next one",
        )
    log = find_named_log(work_batch, task, log_name) if log_name else find_log(work_batch, task, round_)
    missing = NothingToDo(f"the log {log.path.name} of task {task} does not exist")
    if log.bytes is None:
        raise missing
    size = log.bytes
    start = offset if offset >= 0 else max(0, size + offset)
    if start > size:
        raise OffsetAfterEnd(
            f"offset {offset:,} is after the end of the log of task {task}, which has {size:,} bytes",
            hint="read the log from its start",
        )
    if offset > 0 and round_ is None and not log_name:
        raise InvalidInput(
            f"offset {offset:,} is a position in the log of one attempt, and none is named",
            hint="pass the `log` of the part before, or a round",
        )
    try:
        data = work_batch.batch.files.read_range(log.path, start, min(limit, size - start))
    except FileNotFoundError:
        raise missing from None
    return LogPart(data=data, next_offset=start + len(data), size=size, log=log.path.name)


def iter_log(files: FileReader, log: AttemptLogFile, *, tail: int | None = None) -> Iterator[bytes]:
    """Yield the current bytes of a log in pieces. With `tail`, yield only its last `tail` lines."""
    if log.bytes is None:
        return
    place = 0 if tail is None else _last_lines_offset(files, log.path, log.bytes, tail)
    while place < log.bytes:
        piece = files.read_range(log.path, place, min(PIECE_BYTES, log.bytes - place))
        if not piece:
            return
        place += len(piece)
        yield piece


def _last_lines_offset(files: FileReader, path: Path, end: int, lines: int) -> int:
    """Return the offset at which the last `lines` lines of a file begin.

    `end` is the size of the file. A last line without a line break counts as a line.
    """
    missing = lines
    place = end
    while place > 0:
        start = max(0, place - PIECE_BYTES)
        piece = files.read_range(path, start, place - start)
        at = len(piece)
        if place == end and piece.endswith(b"\n"):
            at -= 1
        while (at := piece.rfind(b"\n", 0, at)) >= 0:
            missing -= 1
            if not missing:
                return start + at + 1
        place = start
    return 0


class LogReader:
    """A reader of a log to which a command may still write. It returns only whole lines."""

    def __init__(self, files: FileReader, path: Path) -> None:
        self._files = files
        self._path = path
        self._place = 0

    def read(self, *, is_over: bool = False) -> Iterator[str]:
        """Yield the lines that were written since the last call. A call reads at most one piece of the file.

        With `is_over`, yield all remaining lines, even an incomplete line. A line that is longer than a piece is split.
        """
        while data := self._next_piece(is_over=is_over):
            self._place += len(data)
            yield from data.decode("utf-8", "replace").removesuffix("\n").split("\n")
            if not is_over:
                return

    def _next_piece(self, *, is_over: bool) -> bytes:
        end = self._files.size(self._path) or 0
        length = min(PIECE_BYTES, end - self._place)
        data = self._files.read_range(self._path, self._place, length) if length > 0 else b""
        if (is_over and self._place + len(data) >= end) or (len(data) == PIECE_BYTES and b"\n" not in data):
            return data
        return data[: data.rfind(b"\n") + 1]
