"""Files that record the attempts of a work batch: outcomes and leases (SPEC.md "Work batches")."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from codebatch.model.outcome import Commit, OutcomeRegister, TaskOutcome, decode_commit
from codebatch.model.plan import Plan
from codebatch.model.record import CommandReason
from codebatch.model.shard import Shard, ShardId
from codebatch.model.work.work_batch import ADDED_SHARD, COMMANDS_MAX, WORK_TASK
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded
from codebatch.store import layout
from codebatch.store.batches.holders import LeaseReader, UnitLease
from codebatch.store.documents import read_document_bytes
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.system.files.file_reader import FileReader


class CommandPlaces:
    """A mapping between item numbers of a plan and (shard, number in the shard). An item is a command.

    Commands that requests have added are in a shard of their own, after those of the plan.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        end = max((shard.end for shard in shards), default=0)
        shards = [*shards, Shard(id=ADDED_SHARD, start=end, end=end + COMMANDS_MAX, bytes=0)]
        self._by_id = {shard.id: shard for shard in shards}
        self._shards = sorted(shards, key=lambda shard: shard.start)
        self._starts = [shard.start for shard in self._shards]

    def place_of_item(self, item: int) -> tuple[ShardId, int]:
        """Return the shard that contains an item, and the item's number in this shard."""
        shard = self._shards[bisect_right(self._starts, item) - 1]
        return shard.id, item - shard.start

    def item_at_place(self, shard: ShardId, number: int) -> int | None:
        """Return the item with a number in a shard, or None if there is none."""
        shard_ = self._by_id.get(shard)
        return shard_.start + number if shard_ is not None and number < shard_.end - shard_.start else None


class AttemptReader:
    """A reader of the outcomes of attempts. Each call of `read` continues after the previous one."""

    def __init__(self, plan: Plan, outcomes: OutcomeRegisters) -> None:
        self.places = CommandPlaces(plan.shards)
        self._outcomes = outcomes
        self._known: dict[tuple[int, int], AttemptOutcome] = {}
        self._unreadable: list[tuple[int, int]] = []

    def read_all(self) -> OutcomesConcluded:
        """Return the outcomes of all attempts.

        Outcomes returned by earlier calls are taken from memory, not read again.
        """
        self.read()
        return OutcomesConcluded(tuple(self._known.values()), tuple(self._unreadable))

    def read(self) -> OutcomesConcluded:
        """Return the outcomes that appeared since the last call.

        Outcomes that do not fit a plan of commands are skipped.
        """
        registers: list[OutcomeRegister] = []
        conclusions = [
            conclusion
            for commit in self._outcomes.iter_commits(self._outcomes.list_new(), registers)
            for conclusion in self._commit_conclusions(commit)
        ]
        unreadable = [place for register in registers if (place := self._register_place(register)) is not None]
        self._record_outcomes(conclusions)
        self._unreadable += unreadable
        return OutcomesConcluded(tuple(conclusions), tuple(unreadable))

    def record_reported(self, commit: Commit) -> list[AttemptOutcome]:
        """Record a commit that a worker reported as durable, so that it is not read from disk. Return its outcomes."""
        self._outcomes.note_commit(commit)
        conclusions = self._commit_conclusions(commit)
        self._record_outcomes(conclusions)
        return conclusions

    def _record_outcomes(self, conclusions: Iterable[AttemptOutcome]) -> None:
        """Record each outcome once, even if it was both reported by a worker and read from disk."""
        for conclusion in conclusions:
            self._known.setdefault((conclusion.item, conclusion.round), conclusion)

    def _commit_conclusions(self, commit: Commit) -> list[AttemptOutcome]:
        conclusions: list[AttemptOutcome] = []
        for outcome in commit.outcomes:
            item = self.places.item_at_place(outcome.shard, outcome.start)
            if item is None or outcome.task != WORK_TASK or outcome.end != outcome.start + 1:
                continue
            conclusions.append(
                AttemptOutcome(
                    item=item,
                    round=commit.round,
                    type=outcome.type,
                    reason=cast("CommandReason | None", outcome.reason),
                    epoch=commit.epoch,
                    exit_status=outcome.exit_status,
                    question=outcome.question,
                    said=outcome.result,
                    until_ns=outcome.until_ns,
                    wait_seconds=outcome.wait_seconds,
                    is_final=outcome.is_final,
                    changes=outcome.changes,
                    unrecorded=outcome.unrecorded,
                    outputs=outcome.outputs,
                    inputs=outcome.inputs,
                    notes=outcome.notes,
                )
            )
        return conclusions

    def _register_place(self, register: OutcomeRegister) -> tuple[int, int] | None:
        item = self.places.item_at_place(register.shard, register.start)
        return None if item is None or register.task != WORK_TASK else (item, register.round)


def unreadable_last(concluded: OutcomesConcluded) -> list[int]:
    """Return the items for which the register of the latest round is unreadable, ascending."""
    readable: dict[int, int] = {}
    for conclusion in concluded.conclusions:
        readable[conclusion.item] = max(conclusion.round, readable.get(conclusion.item, 0))
    return sorted({item for item, round_ in concluded.unreadable if round_ > readable.get(item, 0)})


class CommandLeases(msgspec.Struct, frozen=True):
    """For each command that was ever started, the lease with the highest epoch. Keys are item numbers."""

    leases: dict[int, UnitLease]

    @property
    def epoch_by_item(self) -> dict[int, int]:
        """The epoch of each lease, by item."""
        return {item: lease.epoch for item, lease in self.leases.items()}

    @property
    def live_items(self) -> list[int]:
        """The items whose lease belongs to a live process."""
        return [item for item, lease in self.leases.items() if lease.is_live]

    def unended_leases(self, concluded: OutcomesConcluded) -> dict[int, UnitLease]:
        """Return the leases of dead processes whose attempts have no outcome, by item."""
        ended: dict[int, int] = {}
        for conclusion in concluded.conclusions:
            ended[conclusion.item] = max(ended.get(conclusion.item, 0), conclusion.epoch)
        dead = {item: lease for item, lease in self.leases.items() if not lease.is_live}
        return {item: lease for item, lease in dead.items() if lease.epoch > ended.get(item, 0)}


def read_leases(reader: LeaseReader, places: CommandPlaces, listed: Mapping[str, int] | None = None) -> CommandLeases:
    """Return the leases of commands.

    Names are taken from `listed`, which maps names in `leases/` to inodes, or from a new listing.
    """
    leases: dict[int, UnitLease] = {}
    for (shard, number), lease in reader.read_leases(listed).items():
        item = places.item_at_place(shard, number)
        if item is not None:
            leases[item] = lease
    return CommandLeases(leases)


def read_attempt(files: FileReader, batch_root: Path, shard: ShardId, start: int, round_: int) -> TaskOutcome | None:
    """Return the outcome of an attempt, or None if it is missing or unreadable."""
    name = layout.register_name(shard, start, WORK_TASK, round_)
    try:
        data = read_document_bytes(files, batch_root / layout.OUTCOMES / name)
        commit = decode_commit(data)
    except (FileNotFoundError, ValueError):
        return None
    expected = (shard, start, WORK_TASK)
    return next(
        (outcome for outcome in commit.outcomes if (outcome.shard, outcome.start, outcome.task) == expected), None
    )
