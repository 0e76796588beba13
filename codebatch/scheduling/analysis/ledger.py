"""What is done and what is open, of every shard, project and task of a plan.

1. The work on files is open where their chains have holes (chains.py), or an outcome that is to be done again.
2. The work of a project task is open when what it needs is settled, and it is not made of that (project_tasks.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, Register, Unit
from codebatch.model.shard import ProjectWork, Shard, ShardId, Work
from codebatch.scheduling.analysis.chains import Chains, Link
from codebatch.scheduling.analysis.project_tasks import ProjectTasks


class ShardResult(NamedTuple):
    """What a task says of a shard of so many items."""

    shard: ShardId
    items: int
    links: list[Link]


class Ledger:
    """The outcomes known so far. Monotone: outcomes are only ever added."""

    def __init__(self, work: Iterable[Work], needs: Mapping[str, Sequence[str]]) -> None:
        """`work`: the shards of files in path order, then the project tasks; `needs`: the tasks in plan order with what
        each needs.
        """
        self.work = {each.id: each for each in work}
        """All work by id, as it was given."""
        self.needs = {task: tuple(needed) for task, needed in needs.items()}
        """What each task needs, in plan order."""
        self._sizes = {id_: each.items for id_, each in self.work.items()}
        self._chains = Chains(self._sizes)
        self._places = {id_: place for place, (id_, each) in enumerate(self.work.items()) if isinstance(each, Shard)}
        self._project = ProjectTasks(self._chains, tuple(self._places), self.project_work, self.needs)
        self._file_tasks = tuple(task for task in needs if task not in self._project)
        self._tasks = {
            id_: self._file_tasks if isinstance(each, Shard) else (each.task,) for id_, each in self.work.items()
        }
        self._sizes_of_files = [(shard, self._sizes[shard]) for shard in self._places]

    @property
    def project_work(self) -> list[ProjectWork]:
        """The work of the project tasks, in plan order."""
        return [work for work in self.work.values() if isinstance(work, ProjectWork)]

    @property
    def chains(self) -> Iterator[tuple[ShardId, str]]:
        """All work with each of its tasks."""
        return ((id_, task) for id_, tasks in self._tasks.items() for task in tasks)

    def planned(self, tasks: Collection[str] | None = None) -> int:
        """How many pairs of an item and a task there are, of some tasks or of all."""
        return sum(self._sizes[shard] for shard, task in self.chains if tasks is None or task in tasks)

    def fits(self, commit: Commit) -> bool:
        """Whether the plan knows all that a commit speaks of."""
        return all(
            0 <= outcome.start < outcome.end <= self._sizes.get(outcome.shard, 0)
            and outcome.task in self._tasks[outcome.shard]
            and (not outcome.parts or [(part.shard, part.end) for part in outcome.parts] == self._sizes_of_files)
            for outcome in commit.outcomes
        )

    def add(self, commit: Commit) -> list[ShardId]:
        """Take note of a commit, which fits; returns the work of which it says something new."""
        assert self.fits(commit)
        touched: dict[ShardId, None] = {}
        for outcome in commit.outcomes:
            if self._chains.add(outcome, commit):
                touched[outcome.shard] = None
                self._project.touch(outcome.task)
        return list(touched)

    def knows(self, register: Register) -> bool:
        """Whether this outcome, or one of a later round at the same start, has been taken note of."""
        link = self._chains.link_at(register.shard, register.task, register.start)
        return link is not None and link.round >= register.round

    def mark_unreadable(self, register: Register) -> None:
        """Take note that a register's name is taken by bytes that say nothing: its work is done again one round up."""
        self._chains.mark_unreadable(register)
        self._project.touch(register.task)

    def walk(self, shard: ShardId, task: str) -> Iterator[Link]:
        """The links of a chain from item 0 on, holes left out.

        What a project task says of a shard of files is a link too: its part; where it failed the first has the failure.
        """
        if task in self._project and shard in self._places:
            return self._parts(task, self._places[shard])
        return self._chains.walk(shard, task)

    def pieces(self, task: str) -> Iterator[ShardResult]:
        """All that a task says so far: for each shard of files, in path order, its items and links.

        Where there is no file there is one piece of nothing, but for a project task that failed: it says so all the
        same, as if of one item.
        """
        for shard in self._places:
            yield ShardResult(shard, self._sizes[shard], list(self.walk(shard, task)))
        if not self._places:
            nowhere = ProjectWork(task).id
            failed = self.unsuccessful(nowhere, task) if task in self._project else []
            yield ShardResult(nowhere, len(failed), failed)

    def holes(self, shard: ShardId, task: str) -> list[tuple[int, int]]:
        """The item ranges of a shard that have no outcome of a task."""
        return self._chains.holes(shard, task)

    def inputs(self, task: str) -> Digest:
        """The digest of all that a project task reads: the outcomes of what it needs, as they stand."""
        return self._project.inputs(task)

    def unsuccessful(self, shard: ShardId, task: str) -> list[Link]:
        """The links that are no results."""
        return [link for link in self.walk(shard, task) if link.type != "result"]

    def retry_unsuccessful(self) -> None:
        """Have what is no result by now done again: each counts as pending, one round up, until that round is there."""
        for shard, task in self.chains:
            self._chains.retry_unsuccessful(shard, task)
        for task in self.needs:
            self._project.touch(task)
        self._project.doubt_files()

    def open_units(self, shard: ShardId) -> list[Unit]:
        """The pending work of a shard as units: maximal ranges that lack the same tasks, in item order.

        A unit has one round, for its commit is linked under one. A task that needs one which is to be done there in
        another round waits until that is settled: whether it failed is not known before.
        """
        if shard in self._places:
            return self._open_in_files(shard)
        (task,) = self._tasks[shard]
        if not self._project.is_open(task):
            return []
        return [Unit(shard=shard, start=0, end=1, tasks=(task,), round=self._chains.last_round(shard, task, 0) + 1)]

    def changed_projects(self) -> list[ProjectWork]:
        """The work of project tasks that may be open where it was not, or the other way, since this was last asked."""
        return self._project.take_changed()

    def first_of(self, tasks: Sequence[str]) -> tuple[str, ...]:
        """Those of some tasks that need none of the others: where these fail, the others fail for want of them."""
        return tuple(task for task in tasks if not set(self.needs[task]) & set(tasks))

    def doomed(self, unit: Unit) -> list[tuple[int, tuple[str, ...]]]:
        """The items of a unit at which some of its tasks must fail, because a task that they need has failed there."""
        doomed: dict[int, list[str]] = {}
        for task in unit.tasks:
            for need in self.needs[task]:
                if need in unit.tasks or (task in self._project and need not in self._project):
                    continue  # A project task reads what there is of files, failures included.
                shard = self._project.work(need).id if need in self._project else unit.shard
                for link in self.unsuccessful(shard, need):
                    if unit.start <= link.start < unit.end and task not in doomed.setdefault(link.start, []):
                        doomed[link.start].append(task)
        return [(item, tuple(tasks)) for item, tasks in sorted(doomed.items()) if tasks]

    def _parts(self, task: str, place: int) -> Iterator[Link]:
        for link in self._chains.walk(self._project.work(task).id, task):
            if link.outcome.parts:
                part = link.outcome.parts[place]
                yield Link(part.start, part.end, part.type, link.round, link.segment, part)
            elif place == 0:
                yield link

    def _open_in_files(self, shard: ShardId) -> list[Unit]:
        tasks = self._file_tasks
        if self._chains.is_covered(shard, tasks):
            return []
        if self._chains.is_untouched(shard):
            return [Unit(shard=shard, start=0, end=self._sizes[shard], tasks=tasks)]
        missing: dict[str, list[tuple[int, int, int]]] = {}
        bounds = {0, self._sizes[shard]}
        for task in tasks:
            missing[task] = ranges = self._chains.pending(shard, task)
            bounds.update(bound for start, end, _ in ranges for bound in (start, end))
        units: list[Unit] = []
        for start, end in pairwise(sorted(bounds)):
            rounds = {
                task: round_
                for task, ranges in missing.items()
                for first, last, round_ in ranges
                if first <= start and end <= last
            }
            by_round: dict[int, list[str]] = {}
            waiting: set[str] = set()
            for task, round_ in rounds.items():
                if any(need in waiting or rounds.get(need, round_) != round_ for need in self.needs[task]):
                    waiting.add(task)
                else:
                    by_round.setdefault(round_, []).append(task)
            units += [
                Unit(shard=shard, start=start, end=end, tasks=tuple(tasks), round=round_)
                for round_, tasks in sorted(by_round.items())
            ]
        return units
