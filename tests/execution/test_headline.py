"""The headline: on a real codebase, any number of workers, killed or not, gives the same bytes (SPEC.md "Promises")."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.process import CommandLine
from tests.corpora import DJANGO, sdist
from tests.execution.harness import (
    Finished,
    check_no_process_left,
    finished,
    open_latest,
    run_with_kills,
    write_shard_rule,
    zstdcat_agrees,
)
from tests.proof.invariants import check_chains, check_nothing_committed_ran_again, check_registers

KILLS = 10

SHARDS = {"usual": (128, 16, 512), "small": (12, 4, 40), "large": (150, 50, 500)}

WHOLE = [(2, True, "usual"), (5, True, "small")]
REFERENCE = (1, False, "usual")
# Each number of workers with each size, killed or not in turn: with the two others every pair of the three is there.
PAIRS = [
    case
    for place, jobs in enumerate((1, 2, 5))
    for other, size in enumerate(SHARDS)
    if (case := (jobs, bool((place + other) % 2), size)) not in (REFERENCE, *WHOLE)
]


class Tree(NamedTuple):
    """A directory of Django, and how many files it has."""

    path: str
    files: int


ALL = Tree(".", 6890)
CONTRIB = Tree("django/contrib", 2799)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """All of Django by one worker, undisturbed."""
    return _run(tmp_path_factory.mktemp("whole"), ALL, *REFERENCE)


@pytest.fixture(scope="module")
def contrib(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """So a part of it."""
    return _run(tmp_path_factory.mktemp("contrib"), CONTRIB, *REFERENCE)


@pytest.mark.corpus
@pytest.mark.parametrize(("jobs", "is_killed", "size"), WHOLE)
def test_same_bytes_whatever_happens(tmp_path: Path, whole: Finished, jobs: int, is_killed: bool, size: str) -> None:
    _check(_run(tmp_path, ALL, jobs, is_killed, size), whole)


@pytest.mark.corpus
@pytest.mark.parametrize(("jobs", "is_killed", "size"), PAIRS)
def test_same_bytes_whatever_happens_in_every_pair(
    tmp_path: Path, contrib: Finished, jobs: int, is_killed: bool, size: str
) -> None:
    _check(_run(tmp_path, CONTRIB, jobs, is_killed, size), contrib)


def _run(directory: Path, tree: Tree, jobs: int, is_killed: bool, size: str) -> Finished:
    average, least, most = SHARDS[size]
    write_shard_rule(directory, average=average, least=least, most=most)
    store = directory / "store"
    source = sdist(*DJANGO) / tree.path
    seed = jobs * 10 + len(size)
    arguments = ["run", str(source), "--store", str(store), "-j", str(jobs), "--shuffle", str(seed), "-q"]
    run = CommandLine(directory)
    if is_killed:
        points = sorted(random.Random(seed).sample(range(1, tree.files // average * 3 // 4), KILLS))
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


def _check(one: Finished, reference: Finished) -> None:
    assert one.result_digest == reference.result_digest
    assert one.sums == reference.sums
    zstdcat_agrees(one)
