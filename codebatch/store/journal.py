"""Journals: what happened when, for people and tests. One append-only file a holder; no truth depends on them.

Each line is a document, for `errors` shows as evidence what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from codebatch.model.document import Document, DocumentError, decode_document, encode_document
from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.store import layout
from codebatch.store.ids import PassedOver
from codebatch.system.files import Files

EventName = Literal[
    "started",
    "spawned",
    "began",
    "refused",
    "committed",
    "failed",
    "finished",
    "lost",
    "drained",
    "merged",
    "reused",
    "ended",
]


JOURNAL_FORMAT = 1


class JournalLine(Document, frozen=True, kw_only=True, omit_defaults=True):
    """One event. `seq` counts within the holder from 0; `at_ns` is wall time, for people."""

    format: int = JOURNAL_FORMAT
    seq: int
    at_ns: int
    holder: HolderId
    event: EventName
    shard: ShardId | None = None
    start: int | None = None
    end: int | None = None
    tasks: tuple[str, ...] | None = None
    round: int | None = None
    epoch: int | None = None
    task: str | None = None
    path: str | None = None
    reason: str | None = None
    worker: HolderId | None = None
    pid: int | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    memory_peak_bytes: int | None = None
    records: int | None = None
    evidence: str | None = None


class Journal:
    """The journal of this process. Lines are handed to the kernel at once and never synced."""

    def __init__(self, files: Files, batch_root: Path, holder: HolderId, now_ns: Callable[[], int]) -> None:
        self._appender = files.open_append(batch_root / layout.JOURNAL / layout.journal_name(holder))
        self._holder = holder
        self._now_ns = now_ns
        self._seq = 0

    def write(self, event: EventName, **fields: object) -> None:
        """Add a line; `fields` are those of JournalLine."""
        line = JournalLine(seq=self._seq, at_ns=self._now_ns(), holder=self._holder, event=event, **fields)  # type: ignore[arg-type]
        self._seq += 1
        self._appender.append(encode_document(line))

    def close(self) -> None:
        """Release the file."""
        self._appender.close()


_decoder = msgspec.json.Decoder(JournalLine)


def read_journal(files: Files, batch_root: Path, passed_over: PassedOver | None = None) -> list[JournalLine]:
    """Every line of every holder, by time. Lines that are damaged, or of a later version's events, are passed over."""
    lines: list[JournalLine] = []
    directory = batch_root / layout.JOURNAL
    for name, _ in files.listing(directory):
        for line in files.read(directory / name).splitlines(keepends=True):
            try:
                lines.append(decode_document(line, _decoder, JOURNAL_FORMAT))
            except DocumentError as error:
                if passed_over is not None:
                    passed_over(f"a line of {directory / name} is passed over: {error}; evidence may be missing")
    return sorted(lines, key=lambda line: (line.at_ns, line.holder, line.seq))
