"""What is on disk of a work batch's attempts: outcomes, leases, and who conducts it (SPEC.md "Work batches")."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from codebatch.model.outcome import Commit, Outcome, Register, decode_commit
from codebatch.model.plan import Plan
from codebatch.model.record import CommandReason
from codebatch.model.shard import Shard, ShardId
from codebatch.model.work.work_batch import WORK_TASK
from codebatch.scheduling.work.events import Concluded, Conclusion
from codebatch.store import layout
from codebatch.store.batches.holders import Lease, LeaseReader
from codebatch.store.documents import read_document_bytes
from codebatch.store.results.outcomes import Outcomes
from codebatch.system.files.file_reader import FileReader
from codebatch.system.processes.background_fork import BackgroundFork, has_other_processor

_FORKED_MIN = 2000
"""Of so many commits some take longer to read than a fork to be made."""


class CommandPlaces:
    """Where commands stand in the plan: an item of it is an item of a shard."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._by_id = {shard.id: shard for shard in shards}
        self._shards = sorted(shards, key=lambda shard: shard.start)
        self._starts = [shard.start for shard in self._shards]

    def place(self, item: int) -> tuple[ShardId, int]:
        """The shard of an item, and its number there."""
        shard = self._shards[bisect_right(self._starts, item) - 1]
        return shard.id, item - shard.start

    def item(self, shard: ShardId, number: int) -> int | None:
        """The item with a number in a shard; None where there is none."""
        found = self._by_id.get(shard)
        return found.start + number if found is not None and number < found.end - found.start else None


class Attempts:
    """Reads how attempts ended, and goes on where it stopped."""

    def __init__(self, plan: Plan, outcomes: Outcomes) -> None:
        self.places = CommandPlaces(plan.shards)
        self._outcomes = outcomes
        self._known: dict[tuple[int, int], Conclusion] = {}
        self._unreadable: list[tuple[int, int]] = []

    def read_all(self, *, may_fork: bool = False) -> Concluded:
        """All that there is, of which only what appeared since is read. Who `may_fork` has some of many read so."""
        listed = self._outcomes.list_new()
        forked = len(listed) * 2 // 5 if may_fork and len(listed) > _FORKED_MIN and has_other_processor() else 0
        if forked:  # Less than half: it is ready later than we are, and what it says has to be read too.
            ahead = BackgroundFork(partial(self._read, listed[:forked]))
            rest = self._read(listed[forked:])
            self._take(ahead.wait(Concluded))
            self._take(rest)
        else:
            self._take(self._read(listed))
        return Concluded(tuple(self._known.values()), tuple(self._unreadable))

    def read(self) -> Concluded:
        """What appeared since. What no plan of commands has is passed over as what cannot be read is."""
        found = self._read(self._outcomes.list_new())
        self._take(found)
        return found

    def _read(self, listed: Sequence[list[str]]) -> Concluded:
        registers: list[Register] = []
        conclusions = [one for commit in self._outcomes.iter_commits(listed, registers) for one in self._of(commit)]
        unreadable = tuple([place for each in registers if (place := self._named(each)) is not None])
        return Concluded(tuple(conclusions), unreadable)

    def _take(self, found: Concluded) -> None:
        self._keep(found.conclusions)
        self._unreadable += found.unreadable

    def hear(self, commit: Commit) -> list[Conclusion]:
        """What a commit says that is on disk, told by whoever made it: it is not read again."""
        self._outcomes.note(commit)
        found = self._of(commit)
        self._keep(found)
        return found

    def _keep(self, conclusions: Iterable[Conclusion]) -> None:
        """Each once, be it heard of and found on disk."""
        for one in conclusions:
            self._known.setdefault((one.item, one.round), one)

    def _of(self, commit: Commit) -> list[Conclusion]:
        found: list[Conclusion] = []
        for outcome in commit.outcomes:
            item = self.places.item(outcome.shard, outcome.start)
            if item is None or outcome.task != WORK_TASK or outcome.end != outcome.start + 1:
                continue
            found.append(
                Conclusion(
                    item=item,
                    round=commit.round,
                    type=outcome.type,
                    reason=cast("CommandReason | None", outcome.reason),
                    epoch=commit.epoch,
                    exit_status=outcome.exit_status,
                    question=outcome.question,
                    said=outcome.result,
                    until_ns=outcome.until_ns,
                    is_final=outcome.is_final,
                )
            )
        return found

    def _named(self, register: Register) -> tuple[int, int] | None:
        item = self.places.item(register.shard, register.start)
        return None if item is None or register.task != WORK_TASK else (item, register.round)


def unreadable_last(concluded: Concluded) -> list[int]:
    """The items of whose rounds the highest that has a register has one that cannot be read; ascending."""
    readable: dict[int, int] = {}
    for one in concluded.conclusions:
        readable[one.item] = max(one.round, readable.get(one.item, 0))
    return sorted({item for item, round_ in concluded.unreadable if round_ > readable.get(item, 0)})


class Leased(msgspec.Struct, frozen=True):
    """The highest lease of every command that ever began, by item."""

    leases: dict[int, Lease]

    @property
    def epochs(self) -> dict[int, int]:
        """Its epoch."""
        return {item: lease.epoch for item, lease in self.leases.items()}

    @property
    def live(self) -> list[int]:
        """Those whose holder lives."""
        return [item for item, lease in self.leases.items() if lease.is_live]

    def unended(self, concluded: Concluded) -> dict[int, Lease]:
        """The leases of dead holders, by item, that have no outcome."""
        ended: dict[int, int] = {}
        for one in concluded.conclusions:
            ended[one.item] = max(ended.get(one.item, 0), one.epoch)
        dead = {item: lease for item, lease in self.leases.items() if not lease.is_live}
        return {item: lease for item, lease in dead.items() if lease.epoch > ended.get(item, 0)}


def read_leases(reader: LeaseReader, places: CommandPlaces, listed: Mapping[str, int] | None = None) -> Leased:
    """Who holds what, by the names in `leases/`, be it those that were `listed`."""
    found: dict[int, Lease] = {}
    for (shard, number), lease in reader.leases(listed).items():
        item = places.item(shard, number)
        if item is not None:
            found[item] = lease
    return Leased(found)


def read_attempt(files: FileReader, batch_root: Path, shard: ShardId, start: int, round_: int) -> Outcome | None:
    """The outcome of an attempt; None where there is none that can be read."""
    name = layout.register_name(shard, start, WORK_TASK, round_)
    try:
        data = read_document_bytes(files, batch_root / layout.OUTCOMES / name)
        commit = decode_commit(data)
    except (FileNotFoundError, ValueError):
        return None
    wanted = (shard, start, WORK_TASK)
    return next((each for each in commit.outcomes if (each.shard, each.start, each.task) == wanted), None)
