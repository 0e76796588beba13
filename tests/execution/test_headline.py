"""Test that runs over real code give equal bytes with any number of workers, killed or not (SPEC.md "Guarantees")."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.corpora import DJANGO, sdist
from tests.support.invariants import check_chains, check_nothing_committed_ran_again, check_registers
from tests.support.worker_processes import (
    Finished,
    check_no_process_left,
    finished,
    open_latest,
    run_with_kills,
    write_shard_rule,
    zstdcat_agrees,
)

KILLS = 4

SHARDS = {"usual": (32, 4, 128), "small": (6, 2, 20), "large": (40, 13, 130)}

REFERENCE = (1, False, "usual")
# Each number of workers with each size, alternately killed and not. With the reference, every pair of the three occurs.
CASES = [
    case
    for place, jobs in enumerate((1, 2, 5))
    for size_index, size in enumerate(SHARDS)
    if (case := (jobs, bool((place + size_index) % 2), size)) != REFERENCE
]

# Enough files of Django, in several languages, that their run can be killed several times.
PART, FILES = "django/contrib/admin", 594


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The finished batch of a run by one worker that was not killed."""
    return _run(tmp_path_factory.mktemp("undisturbed"), *REFERENCE)


@pytest.mark.corpus
@pytest.mark.parametrize(("jobs", "is_killed", "size"), CASES)
def test_outputs_are_identical_for_any_workers_kills_and_shard_sizes(
    tmp_path: Path, undisturbed: Finished, jobs: int, is_killed: bool, size: str
) -> None:
    one = _run(tmp_path, jobs, is_killed, size)
    assert one.result_digest == undisturbed.result_digest
    assert one.sums == undisturbed.sums
    zstdcat_agrees(one)


def _run(directory: Path, jobs: int, is_killed: bool, size: str) -> Finished:
    average, least, most = SHARDS[size]
    write_shard_rule(directory, average=average, least=least, most=most)
    store = directory / "store"
    source = sdist(*DJANGO) / PART
    seed = jobs * 10 + len(size)
    arguments = ["run", str(source), "--store", str(store), "-j", str(jobs), "--shuffle", str(seed), "-q"]
    run = CommandLine(directory)
    if is_killed:
        points = sorted(random.Random(seed).sample(range(1, FILES // average * 3 // 4), KILLS))
        kills = run_with_kills(run, arguments, store, points=points, seed=seed)
        assert kills >= KILLS // 2, "too few kills hit a live process for this to prove anything"
    else:
        run(*arguments)
    batch = open_latest(store)
    check_registers(batch, batch.plan())
    check_chains(batch, batch.plan())
    check_nothing_committed_ran_again(batch)
    check_no_process_left(batch)
    return finished(batch)
