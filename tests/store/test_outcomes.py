"""Tests of outcomes: registers and segments that do not match their names or digests are reported and not used."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from codebatch.coordinator.analysis.merge import _assemble_shard
from codebatch.errors import StoreCorrupt
from codebatch.model.analysis.item_table import make_row
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.outcome import HolderId, OutcomeRegister, TaskOutcome
from codebatch.model.shard import ShardId
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.analysis.chains import ChainLink
from codebatch.store import layout
from codebatch.store.results.outcomes import EncodedOutcome, OutcomeCommitter, OutcomeRegisters, encode_outcome
from codebatch.store.results.shard_files import make_trailer, read_trailer
from codebatch.system.files.files import RealFiles

HOLDER = HolderId("0" * 32)
SHARD = ShardId("00000001")
LINES = [b'{"kind":"x"}\n', b'{"kind":"yy"}\n']


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    for name in (layout.RESULTS, layout.OUTCOMES):
        (tmp_path / name).mkdir()
    return tmp_path


def _encoded(table: bytes | None = None) -> EncodedOutcome:
    outcome = TaskOutcome(shard=SHARD, task="parse", start=0, end=2, type="result")
    encoded = encode_outcome(outcome, LINES, FrameWriter())
    if table is None:
        return encoded
    outcome = msgspec.structs.replace(encoded.outcome, digest=digest_bytes(table))
    return replace(encoded, outcome=outcome, table=table)


def _commit(batch: Path, encoded: EncodedOutcome) -> TaskOutcome:
    (outcome,) = OutcomeCommitter(RealFiles(), batch, HOLDER).commit_outcomes([encoded], epoch=1, round_=1).outcomes
    return outcome


def test_commit_under_a_foreign_register_name_is_unreadable(batch: Path) -> None:
    _commit(batch, _encoded())
    committed = OutcomeRegister(SHARD, 0, "parse", 1)
    other = OutcomeRegister(SHARD, 2, "parse", 1)
    outcomes = batch / layout.OUTCOMES
    (outcomes / layout.register_name(*other)).hardlink_to(outcomes / layout.register_name(*committed))
    scan = OutcomeRegisters(RealFiles(), batch).scan_new()
    assert scan.unreadable == [other]
    assert [[outcome.start for outcome in commit.outcomes] for commit in scan.commits] == [[0]]


def test_item_table_that_does_not_match_the_records_is_damaged(batch: Path) -> None:
    """The table has the right sum of bytes, divided differently."""
    table = make_row(LINES[0] + b" ") + make_row(LINES[1][:-1])
    outcome = _commit(batch, _encoded(table))
    with pytest.raises(StoreCorrupt, match="item table"):
        list(OutcomeRegisters(RealFiles(), batch).iter_items(HOLDER, outcome))


def test_item_is_returned_unless_its_own_row_is_wrong(batch: Path) -> None:
    outcome = _commit(batch, _encoded(make_row(LINES[0]) + make_row(LINES[1][:-1] + b" ")))
    outcomes = OutcomeRegisters(RealFiles(), batch)
    assert outcomes.read_item(HOLDER, outcome, 0) == LINES[0]
    with pytest.raises(StoreCorrupt, match="item table"):
        outcomes.read_item(HOLDER, outcome, 1)
    items = outcomes.iter_items(HOLDER, outcome)
    assert next(items) == LINES[0]
    with pytest.raises(StoreCorrupt, match="item table"):
        next(items)


def test_item_table_with_other_lengths_than_the_records_is_damaged(batch: Path) -> None:
    outcome = _commit(batch, _encoded(make_row(LINES[0]) * 2))
    with pytest.raises(StoreCorrupt, match="item table"):
        OutcomeRegisters(RealFiles(), batch).read_items(HOLDER, outcome)


def test_shard_file_with_other_rows_than_its_outcome_is_damaged(batch: Path) -> None:
    encoded, outcomes = _encoded(), OutcomeRegisters(RealFiles(), batch)
    trailer = make_trailer(encoded.frames, encoded.table, encoded.outcome.bytes)
    file = read_trailer(trailer).digest
    outcomes.adopted_path(file).write_bytes(encoded.frames + trailer)
    outcome = msgspec.structs.replace(encoded.outcome, file=file)
    assert outcomes.read_bytes(HOLDER, outcome) == (encoded.frames, encoded.table)
    with pytest.raises(StoreCorrupt, match="its records do not match"):
        outcomes.read_bytes(HOLDER, msgspec.structs.replace(outcome, digest=Digest("0" * 64)))


def test_a_chain_with_a_hole_is_never_merged(batch: Path) -> None:
    outcome = _commit(batch, _encoded())
    link = ChainLink(2, 4, "result", 1, HOLDER, msgspec.structs.replace(outcome, start=2, end=4))
    with pytest.raises(AssertionError, match="hole"):
        _assemble_shard(OutcomeRegisters(RealFiles(), batch), FrameWriter(), 4, [link])


def test_shard_with_any_flipped_byte_is_never_merged(batch: Path) -> None:
    """The frames of a shard are copied without decompression."""
    outcome = _commit(batch, _encoded())
    links = [ChainLink(0, 2, "result", 1, HOLDER, outcome)]
    path = batch / layout.RESULTS / layout.segment_name(HOLDER)
    sound = path.read_bytes()
    frames, table, _ = _assemble_shard(OutcomeRegisters(RealFiles(), batch), FrameWriter(), 2, links)
    assert frames + table == sound
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        with pytest.raises(StoreCorrupt, match="does not match its checksum"):
            _assemble_shard(OutcomeRegisters(RealFiles(), batch), FrameWriter(), 2, links)
