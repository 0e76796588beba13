"""The dispatcher of parts: tables of single rules, and random sequences of calls."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.shard import ShardId
from codebatch.scheduling.analysis.part_dispatcher import (
    OUT_BYTES_MAX,
    PART_BYTES_MAX,
    PART_SECONDS_MIN,
    PARTS_BESIDE_SLOTS,
    TRIES_MAX,
    EnginePart,
    OpenShard,
    PartDispatcher,
)

MIB = 1 << 20


def open_shards(*seconds: float, size: int = 0) -> list[OpenShard]:
    """Return shards named a, b, c and so on with these estimates."""
    names = "abcdefghijklmnopqrstuvwxyz"
    return [OpenShard(id=ShardId(names[i]), seconds=cost, bytes=size) for i, cost in enumerate(seconds)]


def all_parts(dispatcher: PartDispatcher, slots: int) -> list[str]:
    """Hand out and finish parts until the dispatcher is done. Return the shards of each part as a text."""
    parts = []
    while (part := dispatcher.next_part(slots)) is not None:
        parts.append("".join(part.shards))
        dispatcher.finish_part(part.number)
    return parts


def take(dispatcher: PartDispatcher, slots: int = 1) -> EnginePart:
    """Return the next part, which must exist."""
    part = dispatcher.next_part(slots)
    assert part is not None
    return part


@pytest.mark.parametrize(
    ("seconds", "slots", "parts"),
    [
        ((1, 5, 3), 1, ["abc"]),  # Less than the least work of a part.
        ((4, 6, 6, 4), 1, ["ab", "cd"]),  # The costliest first, then the costliest that still fits.
        ((6, 6, 6), 1, ["a", "b", "c"]),
        ((10,), 1, ["a"]),
        ((4, 6), 1, ["ab"]),  # The limit is included.
        ((4.1, 6), 1, ["b", "a"]),
        ((50, 1, 2), 1, ["a", "bc"]),  # A costlier shard is a part of its own.
        ((12,) * 8, 1, ["ab", "cd", "ef", "gh"]),  # A quarter of 96 seconds for the only slot.
        ((12,) * 8, 2, list("abcdefgh")),  # An eighth for each of two slots.
        ((0, 0, 0), 3, ["abc"]),
        ((3, 3, 3, 3), 2, ["ab", "cd"]),  # Too little work for ten seconds in each slot.
        ((9, 9, 9, 9), 2, list("abcd")),
        ((), 3, []),
    ],
)
def test_costliest_shards_are_handed_out_first_in_parts_of_limited_work(
    seconds: tuple[float, ...], slots: int, parts: list[str]
) -> None:
    dispatcher = PartDispatcher(open_shards(*seconds))
    assert all_parts(dispatcher, slots) == parts
    assert dispatcher.is_done
    assert dispatcher.left_shards == ()


def test_parts_have_no_least_work_if_costs_are_unknown() -> None:
    assert all_parts(PartDispatcher(open_shards(1, 1, 1, 1), has_unknown_costs=True), 1) == list("abcd")
    assert all_parts(PartDispatcher(open_shards(*[1] * 8), has_unknown_costs=True), 1) == ["ab", "cd", "ef", "gh"]


def test_part_is_limited_by_estimated_compressed_bytes() -> None:
    size = round(8 * MIB / 0.31)
    assert all_parts(PartDispatcher(open_shards(1, 1, 1, size=size)), 1) == ["ab", "c"]
    assert all_parts(PartDispatcher(open_shards(1, 1, 1, size=size + 4)), 1) == ["a", "b", "c"]
    part = take(PartDispatcher(open_shards(1, 1, size=100)))
    assert (part.compressed_bytes, part.seconds) == (62, 2.0)


def test_parts_that_are_out_are_limited_by_slots() -> None:
    dispatcher = PartDispatcher(open_shards(*[20] * 9))
    assert dispatcher.next_part(0) is None
    out = [dispatcher.next_part(2) for _ in range(5)]
    assert [part.number if part else None for part in out] == [1, 2, 3, 4, None]
    assert dispatcher.next_part(3) is not None
    dispatcher.finish_part(1)
    assert dispatcher.next_part(2) is None, "four parts are still out"
    dispatcher.finish_part(2)
    assert take(dispatcher, 2).number == 6


def test_parts_that_are_out_are_limited_by_bytes() -> None:
    large = round(120 * MIB / 0.31)
    dispatcher = PartDispatcher(open_shards(3, 2, 1, size=large))
    first, second = take(dispatcher, 8), take(dispatcher, 8)
    assert dispatcher.next_part(8) is None
    assert not dispatcher.is_done
    dispatcher.record_losses([second.number], "lost")
    assert take(dispatcher, 8).shards == second.shards
    assert dispatcher.next_part(8) is None
    dispatcher.finish_part(first.number)
    assert take(dispatcher, 8).shards == ("c",)


def test_limit_of_bytes_is_included() -> None:
    dispatcher = PartDispatcher(open_shards(3, 2, 1, size=round(128 * MIB / 0.31)))
    assert sum(take(dispatcher, 8).compressed_bytes for _ in range(2)) == OUT_BYTES_MAX
    assert dispatcher.next_part(8) is None


def test_shard_that_can_never_be_out_is_left_to_this_machine() -> None:
    limit = round(256 * MIB / 0.31)
    shards = [
        OpenShard(id=ShardId("a"), seconds=1, bytes=limit + 4),
        OpenShard(id=ShardId("b"), seconds=1, bytes=limit),
    ]
    dispatcher = PartDispatcher(shards)
    assert dispatcher.left_shards == ("a",)
    assert all_parts(dispatcher, 1) == ["b"]


@pytest.mark.parametrize("fail", ["loss", "damage"])
def test_failed_part_is_tried_once_more_before_others_and_then_left(fail: str) -> None:
    def record_failure(part: EnginePart) -> None:
        if fail == "loss":
            dispatcher.record_losses([part.number], "why")
        else:
            dispatcher.record_damage(part.number, "why")

    dispatcher = PartDispatcher(open_shards(20, 30, 5))
    first = take(dispatcher)
    assert (first.shards, first.try_number, first.is_last_try) == (("b",), 1, False)
    record_failure(first)
    assert not dispatcher.is_done
    second = take(dispatcher)
    assert (second.number, second.shards, second.try_number, second.is_last_try) == (1, ("b",), 2, True)
    record_failure(second)
    assert dispatcher.left_shards == ("b",)
    assert all_parts(dispatcher, 1) == ["a", "c"]
    assert dispatcher.is_done
    assert dispatcher.left_shards == ("b",)


def test_failed_parts_are_tried_again_in_the_order_of_their_failures() -> None:
    dispatcher = PartDispatcher(open_shards(20, 20, 20))
    a, b, c = (take(dispatcher) for _ in range(3))
    dispatcher.record_losses([c.number, a.number], "lost")
    dispatcher.record_damage(b.number, "damaged")
    assert [take(dispatcher).shards for _ in range(3)] == [("c",), ("a",), ("b",)]


def test_engine_is_broken_after_three_damaged_answers_in_a_row() -> None:
    dispatcher = PartDispatcher(open_shards(*[20] * 20))
    for reason in ("one", "two"):
        dispatcher.record_damage(take(dispatcher, 9).number, reason)
    dispatcher.finish_part(take(dispatcher, 9).number)
    for reason in ("three", "four"):
        dispatcher.record_damage(take(dispatcher, 9).number, reason)
        dispatcher.record_losses([take(dispatcher, 9).number], "lost")
    assert dispatcher.broken_reason == ""
    out, another = take(dispatcher, 9), take(dispatcher, 9)
    dispatcher.record_damage(take(dispatcher, 9).number, "five")
    assert dispatcher.broken_reason == "3 answers in a row were damaged: five"
    assert dispatcher.next_part(8) is None
    assert not dispatcher.is_done
    dispatcher.record_damage(another.number, "six")
    assert dispatcher.broken_reason == "3 answers in a row were damaged: five", "the first reason is kept"
    dispatcher.finish_part(out.number)
    assert dispatcher.next_part(8) is None


def test_engine_is_broken_after_six_losses_in_a_row() -> None:
    dispatcher = PartDispatcher(open_shards(*[20] * 20))
    for _ in range(5):
        dispatcher.record_losses([take(dispatcher, 9).number for _ in range(2)], "lost together")
    dispatcher.finish_part(take(dispatcher, 9).number)
    for number in range(5):
        dispatcher.record_losses([take(dispatcher, 9).number], f"lost {number}")
    assert dispatcher.broken_reason == ""
    dispatcher.record_losses([take(dispatcher, 9).number], "lost last")
    assert dispatcher.broken_reason == "parts were lost 6 times in a row: lost last"
    assert dispatcher.next_part(9) is None


def test_withdrawn_shards_are_left_and_the_part_keeps_the_others() -> None:
    dispatcher = PartDispatcher(open_shards(1, 2, 3, size=100))
    part = take(dispatcher)
    kept = dispatcher.withdraw_shards(part.number, {ShardId("b"), ShardId("z")})
    assert kept is not None
    assert (kept.shards, kept.seconds, kept.compressed_bytes, kept.number) == (("a", "c"), 4.0, 62, part.number)
    dispatcher.record_losses([part.number], "lost")
    again = take(dispatcher)
    assert (again.shards, again.try_number) == (("a", "c"), 2)
    assert dispatcher.withdraw_shards(again.number, again.shards) is None
    assert dispatcher.is_done
    assert dispatcher.left_shards == ("a", "b", "c")


def test_postponed_part_is_handed_out_first_as_the_same_try() -> None:
    dispatcher = PartDispatcher(open_shards(20, 20, 20))
    first, second = take(dispatcher), take(dispatcher)
    dispatcher.record_losses([first.number], "lost")
    dispatcher.postpone_part(second.number)
    assert take(dispatcher) == second
    assert take(dispatcher).shards == first.shards


@pytest.mark.parametrize(
    ("seconds", "limit"), [(0.0, 600.0), (60.0, 600.0), (61.0, 610.0), (360.0, 3600.0), (1e6, 3600.0)]
)
def test_time_limit_of_a_part_follows_its_estimate(seconds: float, limit: float) -> None:
    assert take(PartDispatcher(open_shards(seconds))).seconds_max == limit


SHARDS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 400)), max_size=30)


@given(SHARDS, st.data())
def test_each_shard_is_handed_out_once_per_try_within_the_limits(
    sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    shards = [OpenShard(id=ShardId(f"{i:08x}"), seconds=s, bytes=b * MIB) for i, (s, b) in enumerate(sizes)]
    by_id = {shard.id: shard for shard in shards}
    dispatcher = PartDispatcher(shards)
    out: dict[int, EnginePart] = {}
    lost: dict[int, tuple[ShardId, ...]] = {}
    finished: list[ShardId] = []
    tries: Counter[tuple[ShardId, int]] = Counter()
    withdrawn: set[ShardId] = set()
    for _ in range(TRIES_MAX * len(shards) * 3):
        slots = data.draw(st.integers(0, 4))
        part = dispatcher.next_part(slots)
        if part is not None:
            assert part.number not in out
            limit = max(PART_SECONDS_MIN, sum(shard.seconds for shard in shards) / (4 * slots))
            if part.try_number == 1 and len(part.shards) > 1:
                assert part.seconds <= limit
                assert part.compressed_bytes <= PART_BYTES_MAX
            assert part.shards == lost.get(part.number, part.shards)
            assert part.seconds == sum(by_id[shard].seconds for shard in part.shards)
            assert list(part.shards) == sorted(part.shards)
            tries.update((shard, part.try_number) for shard in part.shards)
            held = set(data.draw(st.lists(st.sampled_from(part.shards), max_size=1)))
            withdrawn |= held
            part = dispatcher.withdraw_shards(part.number, held)
        if part is not None:
            out[part.number] = part
            assert len(out) <= slots + PARTS_BESIDE_SLOTS
            assert sum(other.compressed_bytes for other in out.values()) <= OUT_BYTES_MAX
        elif out:
            ended = out.pop(data.draw(st.sampled_from(sorted(out))))
            lost[ended.number] = ended.shards
            match data.draw(st.sampled_from(["finish", "finish", "loss", "damage"])):
                case "finish":
                    dispatcher.finish_part(ended.number)
                    finished += ended.shards
                case "loss":
                    dispatcher.record_losses([ended.number], "lost")
                case _:
                    dispatcher.record_damage(ended.number, "damaged")
        if dispatcher.is_done or dispatcher.broken_reason:
            break
    assert set(tries.values()) <= {1}
    assert {number for _, number in tries} <= {*range(1, TRIES_MAX + 1)}
    assert len(finished) == len(set(finished))
    assert not set(finished) & set(dispatcher.left_shards)
    assert withdrawn <= set(dispatcher.left_shards)
    if dispatcher.is_done:
        assert not out
        assert sorted([*finished, *dispatcher.left_shards]) == [shard.id for shard in shards]


@given(SHARDS, st.integers(1, 5))
def test_everything_ends_if_every_part_is_lost_or_finished(sizes: list[tuple[int, int]], slots: int) -> None:
    shards = [OpenShard(id=ShardId(f"{i:08x}"), seconds=s, bytes=b * MIB) for i, (s, b) in enumerate(sizes)]
    dispatcher = PartDispatcher(shards)
    calls = 0
    while not dispatcher.is_done:
        parts = iter(lambda: dispatcher.next_part(slots), None)
        numbers = [part.number for part in parts]
        assert numbers, "no part is out, and none is handed out"
        calls += len(numbers)
        if numbers[1:]:
            dispatcher.record_losses(numbers[1:], "lost")
        dispatcher.finish_part(numbers[0])
    assert calls <= TRIES_MAX * len(shards)
