"""Tests of journals: the golden file fixes their bytes, and a reader that continues returns each line exactly once."""

from __future__ import annotations

from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.store import layout
from codebatch.store.batches.journal import (
    Began,
    Committed,
    Drained,
    Ended,
    Failed,
    Finished,
    JournalEvent,
    JournalReader,
    JournalWriter,
    Lost,
    Merged,
    PartReceived,
    Ran,
    Refused,
    Spawned,
    Started,
    WorkerStopped,
    read_journal,
)
from codebatch.system.files.files import RealFiles

GOLDEN = Path(__file__).parent.parent / "golden" / "journal.jsonl"
HOLDER = HolderId("0" * 32)
WORKER = HolderId("1" * 32)
SHARD = ShardId("0123abcd")
EVENTS: list[JournalEvent] = [
    Started(pid=17),
    Spawned(worker=WORKER, pid=18),
    Began(shard=SHARD, start=0, end=9, tasks=("parse", "lint"), round=1, epoch=1),
    Committed(shard=SHARD, start=0, end=9, task="parse", round=1, epoch=1, records=0),
    Failed(
        shard=SHARD, start=3, end=4, task="lint", round=1, epoch=1, reason="exception", records=1,
        evidence="Traceback\n  é",
    ),
    Finished(shard=SHARD, start=0, end=9, epoch=1, seconds=0.25, cpu_seconds=0.125),
    Refused(worker=WORKER, epoch=2),
    Lost(
        worker=WORKER, pid=18, shard=SHARD, start=5, end=6, path="a.py", reason="timeout: signal 9",
        memory_peak_bytes=1024, task="lint", evidence="phase: item",
    ),
    Lost(worker=WORKER, pid=18, reason="exit status 1", evidence=""),
    Failed(
        shard=ShardId("project-duplicates"), start=0, end=1, task="duplicates", round=2, path=".", reason="timeout"
    ),
    Drained(reason="SIGTERM"),
    Ended(reason="complete"),
    Merged(records=441975),
    Ran(
        shard=SHARD, start=3, round=1, epoch=2, type="failed", reason="signal", exit_status=-9, signal="SIGKILL",
        seconds=1.5, cpu_seconds=0.25, memory_peak_bytes=4096, left=("17 sleep",), log="0123abcd.3.r1.2.log",
        output_bytes=5, evidence="last",
    ),
    WorkerStopped(worker=WORKER, pid=18, is_killed=True),
    PartReceived(host="worker-1", shards=(SHARD,), results=12, seconds=1.5, cpu_seconds=0.25),
]  # fmt: skip


def _journal(root: Path, holder: HolderId = HOLDER, at_ns: int = 1_800_000_000_000_000_000) -> JournalWriter:
    clock = count(at_ns)
    return JournalWriter(RealFiles(), root, holder, lambda: next(clock))


def _path(root: Path, holder: HolderId = HOLDER) -> Path:
    return root / layout.JOURNAL / layout.journal_name(holder)


def _events(reader: JournalReader) -> list[JournalEvent]:
    return [line.event for line in reader.read()]


def test_journal_matches_the_golden_file(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    for event in EVENTS:
        journal.write_event(event)
    assert _path(tmp_path).read_bytes() == GOLDEN.read_bytes()
    lines = read_journal(RealFiles(), tmp_path)
    assert [line.event for line in lines] == EVENTS
    assert [line.seq for line in lines] == list(range(len(EVENTS)))
    assert {line.holder for line in lines} == {HOLDER}
    assert lines[2].at_ns == 1_800_000_000_000_000_002


def test_journal_line_without_a_format_is_read(tmp_path: Path) -> None:
    line = b'{"seq":0,"at_ns":1,"holder":"%s","event":"started","pid":17' % HOLDER.encode()
    _path(tmp_path).parent.mkdir()
    _path(tmp_path).write_bytes(line + b',"checksum":"%s"}\n' % digest_bytes(line).encode())
    assert _events(JournalReader(RealFiles(), tmp_path)) == [Started(pid=17)]


def test_golden_file_contains_every_event() -> None:
    assert {type(event) for event in EVENTS} == set(JournalEvent.__args__)


def test_journal_reader_returns_new_lines_of_all_holders_by_time(tmp_path: Path) -> None:
    holders = {HOLDER: 10, WORKER: 1, HolderId("2" * 32): 5}
    with ExitStack() as opened:
        first, second, third = (opened.enter_context(closing(_journal(tmp_path, *each))) for each in holders.items())
        reader = JournalReader(RealFiles(), tmp_path)
        assert _events(reader) == []
        first.write_event(EVENTS[0])
        second.write_event(EVENTS[1])
        assert _events(reader) == [EVENTS[1], EVENTS[0]]
        assert _events(reader) == []
        first.write_event(EVENTS[2])
        third.write_event(EVENTS[3])
        assert _events(reader) == [EVENTS[3], EVENTS[2]]


def test_incomplete_journal_line_is_read_again_when_complete(tmp_path: Path) -> None:
    path = _path(tmp_path)
    path.parent.mkdir()
    data = GOLDEN.read_bytes()
    for cut in range(0, len(data), 211):
        path.write_bytes(data[:cut])
        reader = JournalReader(RealFiles(), tmp_path)
        before = _events(reader)
        path.write_bytes(data)
        assert before + _events(reader) == EVENTS
        assert _events(reader) == []


def test_invalid_journal_line_is_reported_once_and_skipped(tmp_path: Path) -> None:
    path = _path(tmp_path)
    path.parent.mkdir()
    first, second, third, *_ = GOLDEN.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"\rfor\reign\n" + second.replace(b"spawned", b"spawner") + third + b'{"torn')
    reader = JournalReader(RealFiles(), tmp_path)
    notes: list[str] = []
    assert [line.event for line in reader.read(notes.append)] == [EVENTS[0], EVENTS[2]]
    assert len(notes) == 3
    assert all(str(path) in one for one in notes)
    notes.clear()
    assert reader.read(notes.append) == []
    assert len(notes) == 1, "the incomplete line was not read again"


def test_journal_event_of_a_later_version_is_skipped(tmp_path: Path) -> None:
    class Later(Started, frozen=True, kw_only=True):
        pass

    journal = _journal(tmp_path)
    journal.write_event(Later(pid=1))
    journal.write_event(EVENTS[1])
    notes: list[str] = []
    assert [line.event for line in read_journal(RealFiles(), tmp_path, notes.append)] == [EVENTS[1]]
    assert len(notes) == 1
