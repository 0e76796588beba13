"""The dispatcher of parts to an engine. Calls in, parts out, without clock, processes or files.

Rules (SPEC.md "Engines"):

1. Parts that must be tried again are handed out first. Then new parts are made: the costliest shard, and the costliest
   further shards within the limits of a part. So the last parts are small, and the slots end at about the same time.
2. A few more parts than slots are out, so that a process which ends a part begins the next one at once.
3. A part that is lost or damaged is tried once more, with the same shards. If the part fails again, its shards are left
   to this machine, as are shards that another process holds and shards that are too large. The cause of a failure may
   be the network or a machine, so no file is ever recorded as failed here.
4. If results stop arriving, the engine is the cause: after some damaged answers or losses in a row, nothing more is
   handed out. Parts that are lost at the same time count as one loss, because one cause ends all calls of an executor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from codebatch.model.shard import ShardId

PART_SECONDS_MIN = 10.0
"""Estimated work up to which a part receives shards, unless there is not enough work for one such part per slot."""

PARTS_PER_SLOT = 4
"""The number of parts of equal work that each slot receives if the batch has much work."""

PART_BYTES_MAX = 16 << 20
"""Estimated size up to which a capsule receives shards. A capsule with one shard may be larger."""

OUT_BYTES_MAX = 256 << 20
"""Limit of the estimated size of all capsules that are out at the same time."""

PARTS_BESIDE_SLOTS = 2
"""The number of parts that may be out in addition to the slots."""

COMPRESSED_SHARE = 0.31
"""The size of a capsule as a fraction of the sources, measured for several trees."""

TRIES_MAX = 2
DAMAGED_IN_A_ROW_MAX = 3
LOSSES_IN_A_ROW_MAX = 6

PART_TIME_FACTOR = 10
PART_TIME_MIN = 600.0
PART_TIME_MAX = 3600.0


class OpenShard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard with missing results: the estimated CPU seconds of all its file tasks, and the bytes of its files."""

    id: ShardId
    seconds: float
    bytes: int

    @property
    def compressed_bytes(self) -> int:
        """The estimated size of the shard in a capsule."""
        return round(COMPRESSED_SHARE * self.bytes)


class EnginePart(msgspec.Struct, frozen=True, kw_only=True):
    """A part for an engine: its number, its shards in plan order, their estimates, and the number of this try."""

    number: int
    shards: tuple[ShardId, ...]
    seconds: float
    compressed_bytes: int
    try_number: int

    @property
    def is_last_try(self) -> bool:
        """Whether the shards are left to this machine if this try fails."""
        return self.try_number >= TRIES_MAX

    @property
    def seconds_max(self) -> float:
        """The time limit for the execution of the part by a process of the engine."""
        return min(max(PART_TIME_FACTOR * self.seconds, PART_TIME_MIN), PART_TIME_MAX)


class PartDispatcher:
    """The shards of a batch that an engine executes, by state: waiting, out, to be tried again, finished or left."""

    def __init__(self, shards: Sequence[OpenShard], *, has_unknown_costs: bool = False) -> None:
        """Start with all shards waiting. `shards` are in plan order.

        If `has_unknown_costs` is set, the estimates do not cover all tasks, so parts may be smaller than usual.
        """
        self._shards = {shard.id: shard for shard in shards}
        self._order = {shard.id: position for position, shard in enumerate(shards)}
        self._waiting = sorted(
            (shard for shard in shards if shard.compressed_bytes <= OUT_BYTES_MAX), key=lambda shard: -shard.seconds
        )
        self._left = self._order.keys() - {shard.id for shard in self._waiting}
        self._has_unknown_costs = has_unknown_costs
        self._retries: deque[EnginePart] = deque()
        self._out: dict[int, EnginePart] = {}
        self._part_count = self._damaged_in_a_row = self._losses_in_a_row = 0
        self.shard_count = len(shards)
        """The number of shards."""
        self.total_seconds = sum(shard.seconds for shard in shards)
        """The estimated CPU seconds of all shards."""
        self.broken_reason = ""
        """The reason for which no more parts are handed out, or an empty text."""

    @property
    def is_done(self) -> bool:
        """Whether no shard is waiting, out or to be tried again."""
        return not (self._waiting or self._retries or self._out)

    @property
    def left_shards(self) -> tuple[ShardId, ...]:
        """The shards that are left to this machine, in plan order."""
        return tuple(sorted(self._left, key=self._order.__getitem__))

    def next_part(self, slots: int) -> EnginePart | None:
        """Return the next part, which is then out, or None if no part can be handed out now."""
        if self.broken_reason or slots < 1 or len(self._out) >= slots + PARTS_BESIDE_SLOTS:
            return None
        part = self._retries[0] if self._retries else self._make_new_part(slots)
        out_bytes = sum(other.compressed_bytes for other in self._out.values())
        if part is None or out_bytes + part.compressed_bytes > OUT_BYTES_MAX:
            return None
        if self._retries:
            self._retries.popleft()
        else:
            self._part_count += 1
            self._waiting = [shard for shard in self._waiting if shard.id not in part.shards]
        self._out[part.number] = part
        return part

    def withdraw_shards(self, number: int, shards: Collection[ShardId]) -> EnginePart | None:
        """Leave shards of a part to this machine, because another process holds them.

        Return the part with its other shards, which is still out, or None if it has no other shard.
        """
        part = self._out.pop(number)
        self._left.update(set(part.shards) & set(shards))
        kept = [self._shards[shard] for shard in part.shards if shard not in shards]
        if not kept:
            return None
        self._out[number] = self._make_part(number, kept, part.try_number)
        return self._out[number]

    def finish_part(self, number: int) -> None:
        """Record that all results of a part arrived."""
        del self._out[number]
        self._damaged_in_a_row = self._losses_in_a_row = 0

    def postpone_part(self, number: int) -> None:
        """Record that a part was not submitted. It is handed out again, before all others, with the same try number."""
        self._retries.appendleft(self._out.pop(number))

    def record_losses(self, numbers: Iterable[int], reason: str) -> None:
        """Record that the calls of parts ended at the same time without an answer. `reason` describes one of them."""
        for number in numbers:
            self._retry_part(number)
        self._losses_in_a_row += 1
        if self._losses_in_a_row >= LOSSES_IN_A_ROW_MAX:
            self._break(f"parts were lost {LOSSES_IN_A_ROW_MAX} times in a row: {reason}")

    def record_damage(self, number: int, reason: str) -> None:
        """Record that the answer of a part is damaged, or does not belong to the part."""
        self._retry_part(number)
        self._damaged_in_a_row += 1
        if self._damaged_in_a_row >= DAMAGED_IN_A_ROW_MAX:
            self._break(f"{DAMAGED_IN_A_ROW_MAX} answers in a row were damaged: {reason}")

    def _break(self, reason: str) -> None:
        self.broken_reason = self.broken_reason or reason

    def _retry_part(self, number: int) -> None:
        part = self._out.pop(number)
        if part.is_last_try:
            self._left.update(part.shards)
        else:
            self._retries.append(replace(part, try_number=part.try_number + 1))

    def _make_new_part(self, slots: int) -> EnginePart | None:
        """Return a part of waiting shards, or None if no shard is waiting."""
        seconds_max = self.total_seconds / (PARTS_PER_SLOT * slots)
        if not self._has_unknown_costs:
            seconds_max = max(seconds_max, min(PART_SECONDS_MIN, self.total_seconds / slots))
        chosen = self._waiting[:1]
        seconds, size = sum(shard.seconds for shard in chosen), sum(shard.compressed_bytes for shard in chosen)
        for shard in self._waiting[1:]:
            if seconds + shard.seconds <= seconds_max and size + shard.compressed_bytes <= PART_BYTES_MAX:
                chosen.append(shard)
                seconds, size = seconds + shard.seconds, size + shard.compressed_bytes
        return self._make_part(self._part_count + 1, chosen, try_number=1) if chosen else None

    def _make_part(self, number: int, shards: Iterable[OpenShard], try_number: int) -> EnginePart:
        ordered = sorted(shards, key=lambda shard: self._order[shard.id])
        return EnginePart(
            number=number,
            shards=tuple(shard.id for shard in ordered),
            seconds=sum(shard.seconds for shard in ordered),
            compressed_bytes=sum(shard.compressed_bytes for shard in ordered),
            try_number=try_number,
        )
