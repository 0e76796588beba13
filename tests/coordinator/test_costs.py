"""Tests of the estimated costs of files: the bytes that tasks read, and a constant for each file."""

from __future__ import annotations

import pytest

from codebatch.coordinator.analysis.costs import COST_PER_FILE, PARSED_BYTES_MAX, PROJECT_COST_SHARE, estimate_costs
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import Entry, SnapshotId
from codebatch.model.plan import Plan, PlannedTask
from codebatch.model.shard import ProjectWork, Shard, ShardId, ShardRule
from codebatch_workers.syntax.source import HUGE_BYTES_MIN

S = ShardId("00000001")


def _costs(*files: tuple[bytes, int], seed: int | None = None) -> list[float]:
    """Return the cost of each file, and check that of a project task."""
    entries = [Entry(path, "file", False, size, digest_bytes(path)) for path, size in files]
    task = PlannedTask(
        name="graph", version="1", scope="project", needs=(), implementation_digest=Digest(""), config={}, tools={},
        contexts=(), key=Digest(""),
    )  # fmt: skip
    plan = Plan(
        digest=Digest(""), snapshot_id=SnapshotId("snap-"), snapshot_digest=Digest(""), pipeline="full",
        tasks=(task,), shard_rule=ShardRule(), shards=(Shard(id=S, start=0, end=len(files), bytes=0),), contexts={},
    )  # fmt: skip
    costs = estimate_costs(plan, entries, seed)
    assert costs[ProjectWork("graph").id] == [0.0, pytest.approx(PROJECT_COST_SHARE * costs[S][-1])]
    return [after - before for before, after in zip(costs[S], costs[S][1:], strict=False)]


@pytest.mark.parametrize(
    ("path", "size", "read"),
    [
        (b"a.py", 50_000, 50_000),
        (b"a", 50_000, 5_000),
        (b"png", 50_000, 5_000),
        (b"py", 50_000, 5_000),
        (b"x.py/a", 50_000, 5_000),
        (b"a.PY", 50_000, 50_000),
        (b"a.hpp", 50_000, 100_000),
        (b"a.unknown", 50_000, 5_000),
        (b"a.min.js", 50_000, 0),
        (b"a.png/b.c", 50_000, 50_000),
        (b"a.png", 50_000, 0),
        (b"a/b.tar.GZ", 50_000, 0),
        (b"a.py", PARSED_BYTES_MAX, PARSED_BYTES_MAX),
        (b"a.py", PARSED_BYTES_MAX + 1, 0),
        (b"a.py", 0, 0),
    ],
)
def test_cost_counts_the_bytes_that_tasks_read(path: bytes, size: int, read: int) -> None:
    assert _costs((path, size)) == [COST_PER_FILE + read]


def test_built_in_tasks_read_no_huge_file() -> None:
    assert PARSED_BYTES_MAX == HUGE_BYTES_MIN


def test_costs_accumulate_and_a_seed_changes_them() -> None:
    files = ((b"a.c", 10), (b"b.c", 3000))
    assert _costs(*files) == [COST_PER_FILE + 10, COST_PER_FILE + 3000]
    assert _costs(*files, seed=1) == _costs(*files, seed=1) != _costs(*files)
