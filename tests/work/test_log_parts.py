"""`codebatch.work.read_log`: parts of the logs of a real run."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch import work
from codebatch.errors import InvalidInput, NothingToDo
from codebatch.model.work.command import CommandId
from codebatch.system.files.files import RealFiles
from codebatch.work.control.logs import PIECE_BYTES, AttemptLogFile, OffsetAfterEnd, iter_log, read_log_part
from tests.cli.work.test_work import line, make_list, start
from tests.support.command_line import CommandLine, wait_until, write

__all__ = ["line"]

TEXT = b"0123456789"


def only_batch(line: CommandLine) -> work.WorkBatch:
    """The only batch of a command line."""
    store = line.directory / ".codebatch"
    (batch,) = (path.name for path in (store / "batches").iterdir())
    return work.get(batch, store=store)


def log_path(line: CommandLine) -> Path:
    """The only log of a command line."""
    (path,) = (line.directory / ".codebatch" / "batches").glob("*/logs/*")
    return path


@pytest.fixture
def ran(line: CommandLine) -> CommandLine:
    """A command line with a batch of one task that printed TEXT."""
    make_list(line, {"one": f"run = {json.dumps('printf ' + TEXT.decode())}"})
    line("work", "run")
    return line


@pytest.mark.parametrize(
    ("offset", "limit", "data", "next_offset"),
    [
        (0, PIECE_BYTES, TEXT, 10),
        (0, 3, b"012", 3),
        (3, 3, b"345", 6),
        (9, 3, b"9", 10),
        (10, 3, b"", 10),
        (-1, 3, b"9", 10),
        (-4, 3, b"678", 9),
        (-10, 1, b"0", 1),
        (-11, 1, b"0", 1),
        (-(10**20), 1, b"0", 1),
    ],
)
def test_part_of_a_log_is_within_its_bounds(
    ran: CommandLine, offset: int, limit: int, data: bytes, next_offset: int
) -> None:
    name = log_path(ran).name
    for round_, log_name in ((1, ""), (None, name)):
        part = read_log_part(only_batch(ran), "one", round_, offset, limit, log_name=log_name)
        assert part == work.LogPart(data=data, next_offset=next_offset, size=10, log=name)


def test_offset_after_the_end_is_refused(ran: CommandLine) -> None:
    for offset in (11, 10**20):
        with pytest.raises(
            OffsetAfterEnd, match=f"offset {offset:,} is after the end of the log of task one, which has 10"
        ):
            read_log_part(only_batch(ran), "one", 1, offset)
    os.truncate(log_path(ran), 0)
    assert read_log_part(only_batch(ran), "one").data == b""
    log_path(ran).unlink()
    for arguments in ((), (1,), (1, 5), (1, -5)):
        with pytest.raises(NothingToDo, match="of task one does not exist"):
            read_log_part(only_batch(ran), "one", *arguments)


def test_offset_belongs_to_the_log_of_one_attempt(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "printf $CODEBATCH_ROUND-; exit 1"\nretries = 1', "two": 'run = "printf x"'})
    line("work", "run", status=3)
    work_batch = only_batch(line)
    first = read_log_part(work_batch, "one", 1)
    assert (first.data, read_log_part(work_batch, "one").data) == (b"1-", b"2-")
    with pytest.raises(InvalidInput, match="offset 1 is a position in the log of one attempt, and none is named"):
        read_log_part(work_batch, "one", offset=1)
    assert read_log_part(work_batch, "one", offset=0, log_name=first.log).data == b"1-"
    for name in (read_log_part(work_batch, "two").log, "../batch.json", "x"):
        with pytest.raises(InvalidInput, match="is not a log of task one"):
            read_log_part(work_batch, "one", offset=1, log_name=name)
    (work_batch.batch.root / "logs" / first.log).unlink()
    with pytest.raises(NothingToDo, match="does not exist"):
        read_log_part(work_batch, "one", offset=1, log_name=first.log)


def test_wrong_arguments_of_read_log_are_refused(ran: CommandLine) -> None:
    batch = only_batch(ran).batch
    store = ran.directory / ".codebatch"
    for limit in (0, -1, PIECE_BYTES + 1):
        with pytest.raises(InvalidInput, match="limit of a part of a log"):
            work.read_log("one", limit=limit, batch=batch.id, store=store)
    with pytest.raises(InvalidInput, match="has no task 'two'"):
        work.read_log("two", batch=batch.id, store=store)
    with pytest.raises(InvalidInput, match="no log of attempt 7"):
        work.read_log("one", round=7, batch=batch.id, store=store)
    assert work.read_log("one", round=1, offset=-2, batch=batch.id, store=store).data == b"89"


def test_log_of_two_gigabytes_is_read_in_small_parts(ran: CommandLine) -> None:
    size = 2 << 30
    os.truncate(log_path(ran), size)
    work_batch = only_batch(ran)
    tracemalloc.start()
    try:
        part = read_log_part(work_batch, "one", None, -PIECE_BYTES, PIECE_BYTES)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (part.data, part.next_offset, part.size) == (bytes(PIECE_BYTES), size, size)
    assert peak < 2 * PIECE_BYTES


def test_log_that_is_truncated_or_removed_while_it_is_read_is_shorter_or_refused(
    ran: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_batch, name = only_batch(ran), log_path(ran).name
    files = type(work_batch.batch.files)
    read_range = files.read_range

    def change_then_read(self: object, path: Path, offset: int, length: int) -> bytes:
        if path == log_path(ran):
            changes.pop()(path)
        return read_range(work_batch.batch.files, path, offset, length)

    changes: list[Callable[[Path], object]] = [Path.unlink, lambda path: os.truncate(path, 4)]
    monkeypatch.setattr(files, "read_range", change_then_read)
    assert read_log_part(work_batch, "one", 1, 2, 8) == work.LogPart(data=b"23", next_offset=4, size=10, log=name)
    with pytest.raises(NothingToDo, match="of task one does not exist"):
        read_log_part(work_batch, "one", 1, 2, 2)


def test_log_of_a_running_task_grows(line: CommandLine) -> None:
    wait = "printf first; echo >one.began; while [ ! -e go ]; do sleep 0.02; done; printf second"
    make_list(line, {"one": f"run = {json.dumps(wait)}", "two": 'run = "true"\nneeds = ["one"]'})
    process = start(line, began=("one",))
    work_batch = only_batch(line)
    # The output passes through a pipe, so it may reach the log after the file `one.began` exists.
    wait_until(lambda: read_log_part(work_batch, "one").data == b"first", "the first part of the log")
    first = read_log_part(work_batch, "one")
    assert read_log_part(work_batch, "one", 1, first.next_offset).data == b""
    with pytest.raises(NothingToDo, match="two has not started"):
        read_log_part(work_batch, "two")
    write(line.directory / "go", "")
    line.finish(process)
    assert read_log_part(work_batch, "one", 1, first.next_offset).data == b"second"


@pytest.mark.parametrize("lines", [1, 2, 3, 4, 9])
@pytest.mark.parametrize(
    "text", [b"", b"a", b"a\n", b"\n", b"a\n\n", b"a\nb", b"a\nb\n", b"a\n\nb\nc\n", b"a\nb\nc\nd"]
)
def test_tail_has_the_last_lines(tmp_path: Path, text: bytes, lines: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(text)
    log = AttemptLogFile(task=CommandId("a"), round=1, path=path, bytes=len(text))
    assert b"".join(iter_log(RealFiles(), log, tail=lines)) == b"".join(text.splitlines(keepends=True)[-lines:])
