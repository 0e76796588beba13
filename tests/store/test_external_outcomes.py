"""Tests of the entry for outcomes from outside: each check refuses what it must, and a valid outcome passes.

After a kill at any write of a commit, the same commit gives the whole batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from codebatch.model.analysis.item_table import make_row, make_table
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.outcome import CommandReport, TaskOutcome
from codebatch.model.part import ExternalOutcome
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ShardId
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, open_batch
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.external_outcomes import (
    EXTERNAL_COUNTS_MAX,
    EXTERNAL_RECORD_BYTES_MAX,
    EXTERNAL_TEXT_BYTES_MAX,
    ExternalCommitter,
    ExternalOutcomeCheck,
    new_external_holder,
    registered_committer,
)
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters, encode_outcome
from codebatch.store.results.plain_outcomes import UnmergedOutcomes
from codebatch.system.files.files import RealFiles
from tests.support.batches import FILE_TASKS, make_batch
from tests.support.crashes import PLACE, killed_at_each_write
from tests.support.disk import Disk
from tests.support.stores import make_merged

SHARD = ShardId("0a0b0c0d")
PART = TaskOutcome(shard=SHARD, task="parse", start=0, end=1, type="result")
ITEMS = [b'{"kind":"file"}\n', b"", b'{"kind":"file"}\n{"kind":"file"}\n']


def _external(
    start: int = 0, end: int = 3, type_: str = "result", items: list[bytes] | None = None, **members: object
) -> ExternalOutcome:
    outcome = TaskOutcome(shard=SHARD, task="parse", start=start, end=end, type=type_, **members)  # type: ignore[arg-type]
    encoded = encode_outcome(outcome, ITEMS[start:end] if items is None else items, FrameWriter())
    return ExternalOutcome(outcome=encoded.outcome, frames=encoded.frames, table=encoded.table)


def _check(*externals: ExternalOutcome) -> None:
    checks = ExternalOutcomeCheck({SHARD: 4}, frozenset({"parse"}))
    for external in externals:
        checks.check(external)


def _changed(**members: object) -> ExternalOutcome:
    external = _external()
    return replace(external, outcome=replace(external.outcome, **members))


def test_valid_outcomes_pass() -> None:
    _check(_external(counts=RecordCounts(kinds={"file": 3}), inputs_outside_key="reads /etc/x"))
    _check(_external(0, 1), _external(1, 2, "failed", reason="timeout"), _external(2, 3))
    _check(_external(1, 2, "failed", reason="needs", items=[b'{"kind":"failure"}\n']))
    _check(_external(3, 4, items=[b""]))
    _check(_changed(inputs_outside_key="x" * EXTERNAL_TEXT_BYTES_MAX))


def _swapped_tables() -> ExternalOutcome:
    one, other = _external(), _external(items=[ITEMS[2], b"", ITEMS[0]])
    return replace(one, table=other.table)


def _claimed_size(claim: int) -> ExternalOutcome:
    """Return an outcome whose table, digest and size agree, but whose frames have fewer bytes."""
    table = make_table(ITEMS[:2]) + make_row(b"x" * claim)
    size = len(ITEMS[0]) + claim
    return replace(
        _external(), table=table, outcome=replace(_external().outcome, bytes=size, digest=digest_bytes(table))
    )


def _trailing(data: bytes) -> ExternalOutcome:
    external = _external()
    frames = external.frames + data
    return ExternalOutcome(
        outcome=replace(external.outcome, length=len(frames), crc=zlib.crc32(frames)),
        frames=frames,
        table=external.table,
    )


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: _changed(shard=ShardId("project-parse")), "shard that is not"),
        (lambda: _changed(task="graph"), "not a file task"),
        (lambda: _changed(start=-1), "impossible range"),
        (lambda: _external(2, 2, items=[]), "impossible range"),
        (lambda: _external(2, 5, items=[b"", b"", b""]), "impossible range"),
        (lambda: _changed(type="cancelled"), "type 'cancelled'"),
        (lambda: _changed(type="blocked"), "type 'blocked'"),
        (lambda: _changed(reason="timeout"), "result with a reason"),
        (lambda: _external(0, 2, "failed", reason="timeout"), "failure of several"),
        (lambda: _external(0, 1, "failed"), "known reason"),
        (lambda: _external(0, 1, "failed", reason="stall"), "known reason"),
        (lambda: _changed(file=digest_bytes(b"")), "refers to other"),
        (lambda: _changed(inputs=digest_bytes(b"")), "refers to other"),
        (lambda: _changed(parts=(PART,)), "refers to other"),
        (lambda: _changed(offset=1), "refers to other"),
        (lambda: _changed(reused=3), "refers to other"),
        (lambda: _changed(exit_status=0), "refers to other"),
        (lambda: _changed(question=digest_bytes(b"")), "refers to other"),
        (lambda: _changed(result=CommandReport()), "refers to other"),
        (lambda: _changed(until_ns=1), "refers to other"),
        (lambda: _changed(is_final=True), "refers to other"),
        (lambda: _changed(inputs_outside_key="x" * (EXTERNAL_TEXT_BYTES_MAX + 1)), "too long"),
        (lambda: _changed(counts=RecordCounts(kinds={"ast": 1})), "syntax trees"),
        (lambda: _changed(counts=RecordCounts(kinds={"change": 1})), "changes of files"),
        (lambda: _changed(counts=RecordCounts(kinds={"file": -1})), "impossible count"),
        (lambda: _changed(counts=RecordCounts(languages={"c": EXTERNAL_RECORD_BYTES_MAX + 1})), "impossible count"),
        (lambda: _changed(counts=RecordCounts(diagnostics={"error": {"x": -1}})), "impossible count"),
        (
            lambda: _changed(counts=RecordCounts(kinds=dict.fromkeys(map(str, range(EXTERNAL_COUNTS_MAX + 1)), 1))),
            "too many counts",
        ),
        (lambda: _changed(counts=RecordCounts(kinds={"x" * (EXTERNAL_TEXT_BYTES_MAX + 1): 1})), "too many counts"),
        (lambda: _changed(bytes=-1), "too many records"),
        (lambda: _changed(bytes=1), "another size"),
        (lambda: replace(_external(), table=_external().table[36:]), "another size"),
        (lambda: replace(_external(), table=_external().table + b"x"), "another size"),
        (_swapped_tables, "match its digest"),
        (lambda: _changed(digest=Digest("")), "match its digest"),
        (lambda: _changed(crc=0), "match their checksum"),
        (lambda: _changed(length=0), "match their checksum"),
        (lambda: replace(_external(), frames=b""), "match their checksum"),
        (lambda: _claimed_size(100), "bytes where"),
        (lambda: _trailing(b"x" * 100), "(?i)frame"),
    ],
)
def test_each_check_refuses(make: Callable[[], ExternalOutcome], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        _check(make())


def test_records_larger_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.store.external_outcomes.EXTERNAL_RECORD_BYTES_MAX", sum(map(len, ITEMS)))
    _check(_external())
    monkeypatch.setattr("codebatch.store.external_outcomes.EXTERNAL_RECORD_BYTES_MAX", sum(map(len, ITEMS)) - 1)
    with pytest.raises(ValueError, match="too many records"):
        _check(_external())


@pytest.mark.parametrize("second", [(0, 1), (1, 3), (0, 3)])
def test_ranges_of_a_task_must_not_overlap(second: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="overlap"):
        _check(_external(0, 2), _external(*second))


FILES = [b"a.py", b"b.py", b"c.py", b"fails.py", b"z.py"]


def _ledger(batch: BatchDir) -> OutcomeLedger:
    return load_ledger(batch.plan(), OutcomeRegisters(batch.files, batch.root))


def _only_batch(store: StoreDir) -> BatchDir:
    (batch_id,) = batch_ids(store)
    return open_batch(store, batch_id)


def _outcomes(batch: BatchDir) -> list[ExternalOutcome]:
    """Return all outcomes of file tasks. This checks their bytes too."""
    source = UnmergedOutcomes(OutcomeRegisters(batch.files, batch.root), _ledger(batch))
    return [
        external
        for shard in batch.plan().shards
        for task in FILE_TASKS
        for external in source.iter_outcomes(shard, task)
    ]


def _commit(files: RealFiles, outcomes: Sequence[ExternalOutcome]) -> int:
    batch = _only_batch(open_store(files, PLACE))
    with registered_committer(batch, new_external_holder()) as committer:
        return ExternalCommitter(batch.plan(), _ledger(batch), committer).commit([outcomes])


@pytest.fixture(scope="module")
def joined() -> list[ExternalOutcome]:
    """The outcomes of a batch on another machine."""
    store, _ = create_store(RealFiles(Disk().calls()), PLACE)
    return _outcomes(make_merged(store, FILES))


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_a_commit_that_is_killed_at_any_write_is_completed_by_the_next(
    joined: list[ExternalOutcome], seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is made with and without a power loss after the kill."""
    monkeypatch.setattr("codebatch.store.external_outcomes._OUTCOMES_PER_COMMIT_MAX", 4)
    disk = Disk()
    store, _ = create_store(RealFiles(disk.calls()), PLACE)
    make_batch(store, FILES, shard_items=len(FILES))
    disk.sync()
    assert {external.outcome.type for external in joined} == {"result", "failed"}
    for left, is_over in killed_at_each_write(disk, lambda files: _commit(files, joined), seed=seed, least=20):
        files = RealFiles(left.calls())
        added = _commit(files, joined)
        assert added == 0 or not is_over
        batch = _only_batch(open_store(files, PLACE))
        assert _outcomes(batch) == joined
        assert not any(
            _ledger(batch).list_holes(shard.id, task) for shard in batch.plan().shards for task in FILE_TASKS
        )
