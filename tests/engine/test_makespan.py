"""How long a batch takes beside the best that any schedule could do (SPEC.md "Scheduling"), in simulated time."""

from __future__ import annotations

import pytest

from tests.engine.makespan import SKEWS, Crew, Simulation, log_normal, skewed, wrong

ITEMS = 100_000


@pytest.mark.parametrize("jobs", [2, 16, 128, 1024])
@pytest.mark.parametrize("skew", SKEWS)
def test_with_exact_estimates_the_makespan_is_the_bound(skew: str, jobs: int) -> None:
    costs = SKEWS[skew](ITEMS, 1)
    makespan = Simulation(costs, costs, Crew(jobs=jobs)).run()
    assert makespan <= 1.05 * max(*costs, sum(costs) / jobs)


@pytest.mark.parametrize("jobs", [2, 16, 128, 1024])
@pytest.mark.parametrize("skew", SKEWS)
def test_with_wrong_estimates_the_tail_is_one_item(skew: str, jobs: int) -> None:
    costs = SKEWS[skew](ITEMS, 1)
    simulation = Simulation(costs, wrong(costs, 2), Crew(jobs=jobs))
    makespan = simulation.run()
    assert makespan <= 1.05 * (sum(costs) / jobs + max(costs))
    assert simulation.busy <= 1.01 * sum(costs), "work was done twice"


@pytest.mark.parametrize(
    "crew",
    [
        Crew(jobs=64, speeds=(1.0, 0.5, 0.25)),
        Crew(jobs=64, join_seconds=0.1),
        Crew(jobs=64, stall_rate=0.002, stall_seconds=1.0),
        Crew(jobs=64, leave_rate=0.005),
    ],
    ids=["slow", "joining", "stalling", "leaving"],
)
def test_whatever_the_workers_do_the_rest_goes_on(crew: Crew) -> None:
    costs = skewed(ITEMS, 1)
    simulation = Simulation(costs, wrong(costs, 2), crew)
    makespan = simulation.run()
    power = sum(crew.speeds) / len(crew.speeds) * crew.jobs
    idle = crew.join_seconds * crew.jobs**2 / 2 + crew.stall_seconds * simulation.stalls
    tail = max(costs) / min(crew.speeds) + crew.stall_seconds
    assert makespan <= 1.05 * ((sum(costs) + simulation.lost + idle) / power + tail)


def test_a_unit_that_is_stolen_from_again_and_again_is_done_once() -> None:
    costs = log_normal(200, 3)
    simulation = Simulation(costs, wrong(costs, 4), Crew(jobs=32))
    simulation.run()
    assert simulation.steals > 32
    assert simulation.busy <= 1.1 * sum(costs)
