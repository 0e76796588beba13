"""Whole runs in simulated time: slow tasks get all requested workers, and small trees get few."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from codebatch.coordinator.analysis.costs import COST_PER_FILE, COST_PER_WORKER
from tests.scheduling.work.makespan import Crew, Simulation

FILES = 4000
START = 0.25
SECONDS_A_BYTE = 1 / 3_000_000
TOLERANCE = 1.15


def _small_estimates(files: int) -> list[float]:
    return [COST_PER_FILE + 10.0] * files


def _skewed_estimates(files: int) -> list[float]:
    chance = random.Random(1)
    return [COST_PER_FILE + 500 * chance.lognormvariate(0.0, 2.0) for _ in range(files)]


def _run(
    seconds: Sequence[float], estimates: Sequence[float], jobs: int, *, starts_max: int | None = None
) -> Simulation:
    crew = Crew(jobs=jobs, start_seconds=START, starts_max=starts_max)
    simulation = Simulation(seconds, estimates, crew, worth=COST_PER_WORKER)
    simulation.run()
    return simulation


@pytest.mark.parametrize("jobs", [8, 16, 32, 64])
@pytest.mark.parametrize("estimates", [_small_estimates(FILES), _skewed_estimates(FILES)], ids=["small", "skewed"])
def test_waiting_tasks_take_their_work_divided_by_the_workers(jobs: int, estimates: list[float]) -> None:
    """Each file takes half a second, which the estimates by bytes do not predict."""
    simulation = _run([0.5] * FILES, estimates, jobs)
    assert simulation.started == jobs
    assert simulation.now <= TOLERANCE * 0.5 * FILES / jobs
    assert simulation.busy <= 1.01 * 0.5 * FILES, "work was executed twice"


@pytest.mark.parametrize("jobs", [8, 64])
def test_start_limit_costs_little_time(jobs: int) -> None:
    simulation = _run([0.5] * FILES, _small_estimates(FILES), jobs, starts_max=4)
    assert simulation.now <= TOLERANCE * 0.5 * FILES / jobs


def test_files_of_different_durations_are_spread_evenly() -> None:
    chance = random.Random(2)
    seconds = [chance.lognormvariate(-1.0, 1.0) for _ in range(FILES)]
    simulation = _run(seconds, _small_estimates(FILES), 32)
    assert simulation.now <= TOLERANCE * sum(seconds) / 32


@pytest.mark.parametrize("files", [2, 10, 40])
def test_few_slow_files_get_a_worker_each(files: int) -> None:
    simulation = _run([20.0] * files, _small_estimates(files), 64)
    assert simulation.started == files
    assert simulation.now < 20.0 + 3.0


@pytest.mark.parametrize("jobs", [2, 64])
@pytest.mark.parametrize("files", [10, 100, 200])
def test_small_tree_is_parsed_by_a_single_worker(files: int, jobs: int) -> None:
    """The cost does not justify a second worker, and the observed speed does not change that."""
    estimates = [5000.0] * files
    assert _run([estimate * SECONDS_A_BYTE for estimate in estimates], estimates, jobs).started == 1


def test_large_tree_gets_all_workers_at_once() -> None:
    estimates = _skewed_estimates(20_000)
    simulation = _run([estimate * SECONDS_A_BYTE for estimate in estimates], estimates, 8)
    assert simulation.started == 8
