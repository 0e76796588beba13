"""Merged batches with given records, made without a worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from codebatch.coordinator.analysis.merge import merge_outputs
from codebatch.index.read import BatchIndex, open_index
from codebatch.model.outcome import TaskOutcome
from codebatch.model.record import TAG_BY_TYPE, Diagnostic, Edge, File, Metric, Record, Symbol
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ProjectWork
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store.batches.batch_directory import BatchDir, BatchId
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters, encode_outcome, join_parts
from codebatch.system.files.files import RealFiles
from tests.support.batches import FILE_TASKS, PROJECT, make_batch

SHARD_ITEMS = 3
BASE = "base-000000.lmdb.zst"
OVERLAY = "overlay-000000.lmdb.zst"

Said = Mapping[str, Sequence[Sequence[Record]]]
"""The records of each item, by task."""


def symbol(name: str) -> Symbol:
    return Symbol(
        path="a", name=name, symbol_type="class", qualified=name, scope="", line=1, column=1, end_line=2, end_column=1
    )


def diagnostic(code: str, severity: str = "error") -> Diagnostic:
    return msgspec.convert(
        {
            "path": "a", "line": 1, "column": 1, "end_line": 1, "end_column": 2, "severity": severity,
            "code": code, "message": "m", "tool": "t", "kind": "diagnostic",
        },
        Diagnostic,
    )  # fmt: skip


def calls(target: str) -> Edge:
    return Edge(path="a", edge_type="calls", source="", target=target, line=1)


def depends(target: str) -> Edge:
    return Edge(path="a", edge_type="depends", source="", target=target, line=1, resolution="exact")


def metric(name: str, value: int) -> Metric:
    return Metric(path="a", metric=name, value=value)


def make_store(root: Path) -> StoreDir:
    return create_store(RealFiles(), root / "store")[0]


def make_saying(
    store: StoreDir,
    items: int,
    said: Said,
    *,
    second: int = 0,
    bases: tuple[BatchId, ...] = (),
    contents: Mapping[bytes, bytes] | None = None,
    shard_items: int = SHARD_ITEMS,
    sources: Sequence[bytes] = (),
    commit: str = "",
) -> BatchDir:
    """Make a merged batch, by default with three items in a shard, whose file tasks have exactly these records.

    `contents` are the paths and contents of the items. By default, the paths are numbers.
    """
    paths = [b"%03d" % item for item in range(items)] if contents is None else sorted(contents)
    batch = make_batch(
        store,
        paths,
        shard_items=shard_items,
        at_ns=second * 10**9,
        bases=bases,
        contents=contents,
        sources=sources,
        commit=commit,
    )
    plan = batch.plan()
    committer = OutcomeCommitter(batch.files, batch.root, new_holder_id())
    writer = FrameWriter()
    encoded = []
    for task in FILE_TASKS:
        for shard in plan.shards:
            records_by_item = [said.get(task, [()] * items)[item] for item in range(shard.start, shard.end)]
            lines = [b"".join(msgspec.json.encode(record) + b"\n" for record in records) for records in records_by_item]
            outcome = TaskOutcome(
                shard=shard.id,
                task=task,
                start=0,
                end=shard.items,
                type="result",
                counts=_counts([record for records in records_by_item for record in records]),
            )
            encoded.append(encode_outcome(outcome, lines, writer))
    committer.commit_outcomes(encoded, epoch=1, round_=1)
    for task in PROJECT:
        inputs = load_ledger(plan, OutcomeRegisters(batch.files, batch.root)).inputs_digest(task)
        whole = TaskOutcome(shard=ProjectWork(task).id, task=task, start=0, end=1, type="result", inputs=inputs)
        parts = [
            encode_outcome(
                TaskOutcome(shard=shard.id, task=task, start=0, end=shard.items, type="result"),
                [b""] * shard.items,
                writer,
            )
            for shard in plan.shards
        ]
        committer.commit_outcomes([join_parts(whole, parts)], epoch=1, round_=1)
    committer.close()
    merge_outputs(batch, plan, load_ledger(plan, OutcomeRegisters(batch.files, batch.root)))
    return batch


def opened(store: StoreDir, batch: BatchDir) -> BatchIndex:
    """Return the index of a batch."""
    index = open_index(store, batch.id)
    assert index is not None
    return index


def cut_small(patch: pytest.MonkeyPatch) -> None:
    """Limit a part to one key from now on."""
    patch.setattr("codebatch.index.parts.PART_BYTES_MAX", 1)


def frame_lines(patch: pytest.MonkeyPatch) -> None:
    """Limit a frame to one line from now on."""
    patch.setattr("codebatch.protocol.record_frames.FRAME_BYTES", 1)


def spoilt(sound: bytes) -> Iterator[bytes]:
    """Yield damaged versions of a file: each 40th byte is flipped or the end of the file; last, the file is longer."""
    for at in range(0, len(sound), 40):
        yield sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :]
        yield sound[:at]
    yield sound + b"\0" * 4096


def _counts(records: list[Record]) -> RecordCounts:
    def count(values: list[str]) -> dict[str, int]:
        return {value: values.count(value) for value in sorted({*values})}

    findings = [record for record in records if isinstance(record, Diagnostic)]
    return RecordCounts(
        kinds=count([TAG_BY_TYPE[type(record)] for record in records]),
        diagnostics={
            severity: count([record.code for record in findings if record.severity == severity])
            for severity in sorted({record.severity for record in findings})
        },
        languages=count([record.lang for record in records if isinstance(record, File)]),
    )
