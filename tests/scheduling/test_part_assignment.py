"""Tests of the assignment of shards to parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codebatch.scheduling.analysis.part_assignment import assign_shards

COSTS = st.lists(st.integers(0, 1000).map(float), max_size=40)


@given(COSTS, st.integers(1, 50))
def test_each_shard_is_in_one_part_and_the_largest_part_is_near_the_mean(costs: list[float], parts: int) -> None:
    assigned = assign_shards(costs, parts)
    assert len(assigned) == parts
    assert sorted(position for part in assigned for position in part) == list(range(len(costs)))
    assert all(part == sorted(part) for part in assigned)
    loads = [sum(costs[position] for position in part) for part in assigned]
    # Graham 1966: the last shard of the largest part was added when this part had at most the mean load.
    assert max(loads) <= sum(costs) / parts + max(costs, default=0)
    assert assigned == assign_shards(list(costs), parts)


def test_the_costliest_shard_goes_first_and_ties_are_broken_by_position() -> None:
    assert assign_shards([1.0, 5.0, 3.0, 3.0, 4.0], 2) == [[1, 3], [0, 2, 4]]
    assert assign_shards([2.0, 2.0, 2.0], 2) == [[0, 2], [1]]
    assert assign_shards([7.0], 3) == [[0], [], []]


def test_longest_first_is_better_than_in_order() -> None:
    assert assign_shards([1.0, 1.0, 1.0, 3.0], 2) == [[3], [0, 1, 2]]
