"""Journals: logs of events for users and tests, which do not affect correctness. Each holder appends to its own file.

Each line is a JSON document: first the members of JournalHead, then those of the event. The command `errors` shows
lines as evidence. To continue later, a reader keeps an offset for each journal. If the last line has no line feed, its
writer is still writing this line or has died. The reader skips an unfinished line and reads it again the next time.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import msgspec

from codebatch.model.documents import Document, DocumentError, InstantNs, decode_document, decode_json, encode_members
from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.store import layout
from codebatch.store.ids import SkipCallback
from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.files import StoreFiles

JOURNAL_FORMAT = 1

ENGINE_ENDED = "engine"
"""The reason of the event Ended if an engine has executed shards. The same run then continues on this machine."""


class JournalHead(Document, frozen=True, kw_only=True):
    """Members that every line of a journal has.

    `seq` counts the lines of the process from 0. `at_ns` is the time, for display.
    """

    format: int = JOURNAL_FORMAT
    seq: int
    at_ns: InstantNs
    holder: HolderId


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag=str.lower):
    """Base of the events. The order of their fields is the order on disk."""


class Started(_Event, frozen=True, kw_only=True):
    """A coordinator started."""

    pid: int


class Spawned(_Event, frozen=True, kw_only=True):
    """The coordinator started a worker."""

    worker: HolderId
    pid: int


class Began(_Event, frozen=True, kw_only=True):
    """A worker has leased a unit of work and begins with it."""

    shard: ShardId
    start: int
    end: int
    tasks: tuple[str, ...]
    round: int
    epoch: int


class Refused(_Event, frozen=True, kw_only=True):
    """A worker could not take a lease, because another process has it."""

    epoch: int
    worker: HolderId


class Committed(_Event, frozen=True, kw_only=True):
    """A result is durable."""

    shard: ShardId
    start: int
    end: int
    round: int
    epoch: int
    task: str
    records: int
    evidence: str | None = None


class Failed(_Event, frozen=True, kw_only=True):
    """A failed outcome was committed durably, by the coordinator or by a worker. Only the coordinator sets `path`."""

    shard: ShardId
    start: int
    end: int
    round: int
    epoch: int | None = None
    task: str
    path: str | None = None
    reason: str | None = None
    records: int | None = None
    evidence: str | None = None


class Finished(_Event, frozen=True, kw_only=True):
    """A worker has finished a unit of work. [start, end) are the items that it processed."""

    shard: ShardId
    start: int
    end: int
    epoch: int
    seconds: float
    cpu_seconds: float


class Ran(_Event, frozen=True, kw_only=True):
    """An attempt of a task in a task list ended.

    Its outcome is durable. Only an attempt with type `stopped` has no outcome.

    `log` is the name of the log, `output_bytes` the size of the output, `evidence` the end of the output.
    `memory_peak_bytes` is the highest measured memory. `left` names processes that are still running. `tried` counts
    the tries that failed before.
    """

    shard: ShardId
    start: int
    round: int
    epoch: int
    type: str
    reason: str | None = None
    exit_status: int | None = None
    signal: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_peak_bytes: int = 0
    left: tuple[str, ...] = ()
    tried: int = 0
    log: str = ""
    output_bytes: int = 0
    evidence: str = ""


class Lost(_Event, frozen=True, kw_only=True):
    """A worker died. `start` and `end` are the items that it was processing, if any."""

    shard: ShardId | None = None
    start: int | None = None
    end: int | None = None
    task: str | None = None
    path: str | None = None
    reason: str
    worker: HolderId
    pid: int
    memory_peak_bytes: int | None = None
    evidence: str


class WorkerStopped(_Event, frozen=True, kw_only=True, tag="worker_stopped"):
    """A worker process was found stopped, or traced by another process. It was continued, or killed if `is_killed` is
    set.
    """

    worker: HolderId
    pid: int
    is_traced: bool = False
    is_killed: bool = False


class Drained(_Event, frozen=True, kw_only=True):
    """The coordinator received a signal to stop."""

    reason: str


class Ended(_Event, frozen=True, kw_only=True):
    """The coordinator ended: its work is complete, or it was stopped early or failed."""

    reason: str


class PartReceived(_Event, frozen=True, kw_only=True, tag="part_received"):
    """The results of shards arrived from an engine and are durable. `host` is the machine that executed their tasks."""

    host: str
    shards: tuple[ShardId, ...]
    results: int
    seconds: float
    cpu_seconds: float


class Merged(_Event, frozen=True, kw_only=True):
    """The outputs are merged."""

    records: int


JournalEvent = (
    Started
    | Spawned
    | Began
    | Refused
    | Committed
    | Failed
    | Finished
    | Ran
    | Lost
    | WorkerStopped
    | Drained
    | Ended
    | PartReceived
    | Merged
)


class JournalLine(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its writer and time."""

    seq: int
    at_ns: InstantNs
    holder: HolderId
    event: JournalEvent


class JournalWriter:
    """The journal of this process. `write_event` and `flush` pass lines to the kernel and never sync them."""

    def __init__(self, files: StoreFiles, batch_root: Path, holder: HolderId, now_ns: Callable[[], int]) -> None:
        self._appender = files.open_append(batch_root / layout.JOURNAL / layout.journal_name(holder))
        self._holder = holder
        self._now_ns = now_ns
        self._seq = 0
        self._lines: list[bytes] = []

    def write_event(self, event: JournalEvent) -> None:
        """Append a line immediately."""
        self.add(event)
        self.flush()

    def add(self, event: JournalEvent) -> None:
        """Buffer an event until the next `flush`, with the current time."""
        head = JournalHead(seq=self._seq, at_ns=self._now_ns(), holder=self._holder)
        self._seq += 1
        self._lines.append(encode_members(head, event))

    def flush(self) -> None:
        """Write the buffered lines. If this raises StoreUnwritable, the lines are dropped."""
        lines, self._lines = self._lines, []
        if lines:
            self._appender.append(b"".join(lines))

    def close(self) -> None:
        """Close the file."""
        self._appender.close()


class JournalReader:
    """A reader of the journals of a batch that continues at its last position."""

    def __init__(self, files: FileReader, batch_root: Path) -> None:
        self._files = files
        self._directory = batch_root / layout.JOURNAL
        self._read_positions: dict[str, int] = {}
        self._event_decoder: msgspec.json.Decoder[JournalEvent] = msgspec.json.Decoder(JournalEvent)

    def read(self, on_skipped: SkipCallback | None = None) -> list[JournalLine]:
        """Return the lines that all holders have added since the last call, sorted by time.

        Damaged lines and events of later versions are skipped and reported to `on_skipped`. A last line without a line
        feed is skipped as well: later calls return it when it is complete.
        """
        lines: list[JournalLine] = []
        for name in self._files.listing(self._directory):
            path = self._directory / name
            start = self._read_positions.get(name, 0)
            size = self._files.size(path) or 0
            for line in io.BytesIO(self._files.read_range(path, start, max(size - start, 0))):
                if line.endswith(b"\n"):
                    self._read_positions[name] = start = start + len(line)
                try:
                    lines.append(self._decode_line(line))
                except DocumentError as error:
                    if on_skipped is not None:
                        on_skipped(f"a line of {path} was skipped: {error}; evidence may be missing")
        return sorted(lines, key=lambda line: (line.at_ns, line.holder, line.seq))

    def _decode_line(self, line: bytes) -> JournalLine:
        head = decode_document(line, JournalHead, JOURNAL_FORMAT)
        event = decode_json(line, self._event_decoder.decode)
        return JournalLine(seq=head.seq, at_ns=head.at_ns, holder=head.holder, event=event)


def read_journal(files: FileReader, batch_root: Path, on_skipped: SkipCallback | None = None) -> list[JournalLine]:
    """Return every line of every holder, sorted by time. Damaged lines and events of later versions are skipped."""
    return JournalReader(files, batch_root).read(on_skipped)
