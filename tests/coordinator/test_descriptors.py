"""Tests of the limit of open files: a run raises it if needed, or reports that it is too low, before it starts."""

from __future__ import annotations

import os
import resource

import pytest

from codebatch.coordinator.processes import descriptors
from codebatch.coordinator.processes.descriptors import DESCRIPTORS_PER_WORKER, SPARE_DESCRIPTORS, enough_descriptors
from codebatch.errors import StoreUnwritable
from codebatch.protocol.launch import WORKER_DESCRIPTORS_MIN
from codebatch_workers.runtime.worker import DESCRIPTORS_RESERVED

OPEN = 20


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limits of this process, of which the last is in force. `OPEN` descriptors are open."""
    set_ = [(1024, 4096)]
    monkeypatch.setattr(descriptors, "_count_open_descriptors", lambda: OPEN)
    monkeypatch.setattr(resource, "getrlimit", lambda _: set_[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: set_.append(limit))
    return set_


def _descriptors_min(workers: int) -> int:
    return OPEN + SPARE_DESCRIPTORS + DESCRIPTORS_PER_WORKER * workers


def test_sufficient_descriptor_limit_is_unchanged(limits: list[tuple[int, int]]) -> None:
    with enough_descriptors(64):
        assert len(limits) == 1


@pytest.mark.parametrize("hard", [4096, resource.RLIM_INFINITY])
def test_soft_descriptor_limit_is_raised_during_the_run(limits: list[tuple[int, int]], hard: int) -> None:
    limits[:] = [(40, hard)]
    with enough_descriptors(2):
        assert limits[-1] == (WORKER_DESCRIPTORS_MIN, hard), "the limit is not the one that a worker needs"
        limits[:] = [(40, hard)]
        with enough_descriptors(100):
            assert limits[-1] == (_descriptors_min(100), hard)
        assert limits[-1] == (40, hard)


@pytest.mark.parametrize(
    ("hard", "workers", "hint"),
    [
        (20, 1, "raise the limit of open files: ulimit -n 1024; then"),
        (63, 64, "raise the limit of open files: ulimit -n 1024; then"),
        (100, 64, "raise the limit of open files: ulimit -n 1024, or start fewer workers: -j 21; then"),
        (
            1000,
            1000,
            f"raise the limit of open files: ulimit -n {_descriptors_min(1000)}, or start fewer workers: -j 321; then",
        ),
    ],
)
def test_hard_descriptor_limit_that_is_too_low_is_an_error(
    limits: list[tuple[int, int]], hard: int, workers: int, hint: str
) -> None:
    limits[:] = [(20, hard)]
    with (
        pytest.raises(StoreUnwritable, match=rf"^cannot start {workers:,} worker.* limit is {hard}$") as caught,
        enough_descriptors(workers),
    ):
        pytest.fail("too few descriptors were accepted")
    assert (caught.value.hint or "").startswith(hint)
    assert len(limits) == 1
    assert hard < WORKER_DESCRIPTORS_MIN or _descriptors_min((hard - OPEN - SPARE_DESCRIPTORS) // 3) <= hard


def test_open_descriptors_are_counted() -> None:
    before = descriptors._count_open_descriptors()
    duplicate = os.dup(0)
    try:
        assert descriptors._count_open_descriptors() == before + 1
    finally:
        os.close(duplicate)


def test_unlistable_descriptors_use_the_default_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str) -> list[str]:
        raise FileNotFoundError

    monkeypatch.setattr(os, "listdir", refuse)
    assert descriptors._count_open_descriptors() == descriptors._DESCRIPTORS_ASSUMED_OPEN


def test_worker_limit_exceeds_its_reserved_descriptors() -> None:
    assert WORKER_DESCRIPTORS_MIN > DESCRIPTORS_RESERVED + 20
