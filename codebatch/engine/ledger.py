"""What is done and what is open: the chains of outcomes of every shard and task.

Rules (SPEC.md "Chains"):
1. A register's name holds its start, its body its end. Of several rounds at one start the highest holds.
2. Reading a task's shard walks 0 -> end -> end ... A name is write-once, so the walk covers every item exactly once.
3. A register that the walk does not reach is garbage: its maker lost a race.
4. Where the walk finds no register there is a hole, up to the next register's start; holes are the pending work.
5. A project task has one chain, of one item, in a shard of its own. Its work is open once what it needs is settled in
   every shard, and again, one round up, when the digest of that is not the one its outcome was made of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from codebatch.engine.readiness import Readiness
from codebatch.model.digest import Digest, digest_pairs
from codebatch.model.outcome import Commit, HolderId, Outcome, OutcomeType, Register, Unit
from codebatch.model.shard import ShardId, project_shard


class Link(NamedTuple):
    """One outcome on a chain: items [start, end), and the round that settled them."""

    start: int
    end: int
    type: OutcomeType
    round: int
    segment: HolderId
    outcome: Outcome


class Ledger:
    """The outcomes known so far. Monotone: outcomes are only ever added."""

    def __init__(
        self, items: Mapping[ShardId, int], needs: Mapping[str, Sequence[str]], project: Collection[str] = ()
    ) -> None:
        """`items`: the shards of files and their sizes in path order; `needs`: the tasks in plan order with what each
        needs; `project`: those of project scope.
        """
        self._needs = {task: tuple(needed) for task, needed in needs.items()}
        self._files = tuple(items)
        self._places = {shard: place for place, shard in enumerate(items)}
        self._project = {project_shard(task): (task,) for task in needs if task in project}
        self._items = {**items, **dict.fromkeys(self._project, 1)}
        self._file_tasks = tuple(task for task in needs if task not in project)
        order = {task: place for place, task in enumerate(needs)}
        self._needs_in_order = {
            task: sorted(set(needs[task]), key=order.__getitem__) for (task,) in self._project.values()
        }
        self._readiness = Readiness(
            {task: [need for need in needs[task] if need in project] for (task,) in self._project.values()}
        )
        self._have_files_changed = False
        self._settled_before = dict.fromkeys(self._project, 0)
        self._inputs: dict[str, Digest] = {}
        self._links: dict[tuple[ShardId, str], dict[int, Link]] = {}
        self._unreadable: dict[tuple[ShardId, str, int], int] = {}
        self._retried: dict[tuple[ShardId, str, int], int] = {}

    @property
    def shards(self) -> Sequence[ShardId]:
        """Every shard: of files in path order, then those of the project tasks in plan order."""
        return list(self._items)

    @property
    def project_shards(self) -> Sequence[ShardId]:
        """The shards of the project tasks, in plan order."""
        return list(self._project)

    @property
    def chains(self) -> Iterator[tuple[ShardId, str]]:
        """Every shard with each of its tasks."""
        return ((shard, task) for shard in self._items for task in self._tasks_of(shard))

    def planned(self, tasks: Collection[str] | None = None) -> int:
        """How many pairs of an item and a task there are, of some tasks or of all."""
        return sum(self._items[shard] for shard, task in self.chains if tasks is None or task in tasks)

    def add(self, commit: Commit) -> list[ShardId]:
        """Take note of a commit; returns the shards of which it says something new.

        Raises ValueError where an outcome cannot belong here.
        """
        touched: dict[ShardId, None] = {}
        for outcome in commit.outcomes:
            if (
                not 0 <= outcome.start < outcome.end <= self._items.get(outcome.shard, 0)
                or outcome.task not in self._tasks_of(outcome.shard)
                or (outcome.parts and [(part.shard, part.end) for part in outcome.parts] != self._sizes)
            ):
                raise ValueError(f"an outcome of {outcome.shard}/{outcome.task} that the plan does not know")
            links = self._links.setdefault((outcome.shard, outcome.task), {})
            known = links.get(outcome.start)
            if known is None or known.round < commit.round:
                links[outcome.start] = Link(
                    outcome.start, outcome.end, outcome.type, commit.round, commit.segment, outcome
                )
                touched[outcome.shard] = None
        self._touch(touched)
        return list(touched)

    def knows(self, register: Register) -> bool:
        """Whether this outcome, or one of a later round at the same start, has been taken note of."""
        link = self._links.get((register.shard, register.task), {}).get(register.start)
        return link is not None and link.round >= register.round

    def mark_unreadable(self, register: Register) -> None:
        """Take note that a register's name is taken by bytes that say nothing: its work is done again one round up."""
        key = (register.shard, register.task, register.start)
        self._unreadable[key] = max(register.round, self._unreadable.get(key, 0))
        self._touch([register.shard])

    def walk(self, shard: ShardId, task: str) -> Iterator[Link]:
        """The links of a chain from item 0 on, holes left out.

        What a project task says of a shard of files is a link too: its part; where it failed the first has the failure.
        """
        own = project_shard(task)
        if own in self._project and shard != own:
            yield from self._part(own, self._places[shard])
            return
        for step in self._steps(shard, task):
            if isinstance(step, Link):
                yield step

    def pieces(self, task: str) -> Iterator[tuple[int, list[Link]]]:
        """All that a task says so far: for each shard of files, in path order, its items and links.

        Where there is no file a project task that failed says so all the same, as if of one item.
        """
        for shard in self._files:
            yield self._items[shard], list(self.walk(shard, task))
        own = project_shard(task)
        if not self._files and own in self._project and (failed := self.unsuccessful(own, task)):
            yield 1, failed

    def holes(self, shard: ShardId, task: str) -> list[tuple[int, int]]:
        """The item ranges of a shard that have no outcome of a task."""
        return [step for step in self._steps(shard, task) if not isinstance(step, Link)]

    def is_complete(self, shard: ShardId) -> bool:
        """Whether every item of a shard has an outcome of every task of it."""
        return not any(self.holes(shard, task) for task in self._tasks_of(shard))

    def inputs(self, task: str) -> Digest:
        """The digest of all that a project task reads: the outcomes of what it needs, as they stand."""
        if task not in self._inputs:
            needs = self._needs_in_order[task]
            chains = [(shard, need) for shard in self._files for need in needs if need in self._file_tasks]
            chains += [(own, need) for need in needs if (own := project_shard(need)) in self._project]
            self._inputs[task] = digest_pairs(
                (f"{shard}.{link.start}.{need}", link.outcome.digest)
                for shard, need in chains
                for link in self.walk(shard, need)
            )
        return self._inputs[task]

    def unsuccessful(self, shard: ShardId, task: str) -> list[Link]:
        """The links that are no results."""
        return [link for link in self.walk(shard, task) if link.type != "result"]

    def retry_unsuccessful(self) -> None:
        """Have what is no result by now done again: each counts as pending, one round up, until that round is there."""
        for shard, task in self.chains:
            for link in self.unsuccessful(shard, task):
                self._retried[shard, task, link.start] = link.round
        self._touch(self._items)
        self._settled_before = dict.fromkeys(self._project, 0)

    def open_units(self, shard: ShardId) -> list[Unit]:
        """The pending work of a shard as units: maximal ranges that lack the same tasks, in item order.

        A unit never spans two rounds of one task, for its commit is linked under one.
        """
        if shard in self._project:
            return self._open_project(shard)
        tasks = self._file_tasks
        if self._is_settled(shard, tasks):
            return []
        if not self._unreadable and not any((shard, task) in self._links for task in tasks):
            return [Unit(shard=shard, start=0, end=self._items[shard], tasks=tasks)]
        missing: dict[str, list[tuple[int, int, int]]] = {}
        bounds = {0, self._items[shard]}
        for task in tasks:
            missing[task] = ranges = self._pending(shard, task)
            bounds.update(bound for start, end, _ in ranges for bound in (start, end))
        units: list[Unit] = []
        ordered = sorted(bounds)
        for start, end in pairwise(ordered):
            by_round: dict[int, list[str]] = {}
            for task, ranges in missing.items():
                for first, last, round_ in ranges:
                    if first <= start and end <= last:
                        by_round.setdefault(round_, []).append(task)
            units += [
                Unit(shard=shard, start=start, end=end, tasks=tuple(tasks), round=round_)
                for round_, tasks in sorted(by_round.items())
            ]
        return units

    def changed_projects(self) -> list[ShardId]:
        """The shards of project tasks of which the open work may be another than when this was last asked."""
        self._judge()
        return [project_shard(task) for task in self._readiness.take_changed()]

    def _tasks_of(self, shard: ShardId) -> tuple[str, ...]:
        return self._project.get(shard, self._file_tasks)

    @cached_property
    def _sizes(self) -> list[tuple[ShardId, int]]:
        return [(shard, self._items[shard]) for shard in self._files]

    def _part(self, own: ShardId, place: int) -> Iterator[Link]:
        (task,) = self._project[own]
        for link in self._steps(own, task):
            if isinstance(link, Link) and link.outcome.parts:
                part = link.outcome.parts[place]
                yield Link(part.start, part.end, part.type, link.round, link.segment, part)
            elif isinstance(link, Link) and place == 0:
                yield link

    def _pending(self, shard: ShardId, task: str) -> list[tuple[int, int, int]]:
        """The item ranges that are to be done, and in which round: holes, and what is retried."""
        ranges = [*self.holes(shard, task)]
        ranges += [
            (link.start, link.end)
            for link in self.unsuccessful(shard, task)
            if self._retried.get((shard, task, link.start)) == link.round
        ]
        return [(start, end, self._last_round(shard, task, start) + 1) for start, end in ranges]

    def _last_round(self, shard: ShardId, task: str, start: int) -> int:
        """The highest round whose name is taken at an item, be it by bytes that say nothing; 0 where none is."""
        link = self._links.get((shard, task), {}).get(start)
        return max(link.round if link else 0, self._unreadable.get((shard, task, start), 0))

    def _open_project(self, shard: ShardId) -> list[Unit]:
        (task,) = self._project[shard]
        self._judge()
        if not self._readiness.is_next(task) or not self._are_files_ready(shard, task):
            return []
        return [Unit(shard=shard, start=0, end=1, tasks=(task,), round=self._last_round(shard, task, 0) + 1)]

    def _touch(self, shards: Iterable[ShardId]) -> None:
        """Something was learnt of some shards: what was made of them is judged again when somebody asks."""
        for shard in shards:
            for task in self._project.get(shard, ()):
                self._readiness.touch(task)
                for other in self._readiness.needed_by(task):
                    self._inputs.pop(other, None)
                    self._readiness.touch(other)
            if shard in self._places and self._project:
                self._have_files_changed = True
                self._inputs.clear()

    def _judge(self) -> None:
        if self._have_files_changed:
            self._have_files_changed = False
            for (task,) in self._project.values():
                self._readiness.touch(task)
        self._readiness.judge(self._is_up_to_date)

    def _is_up_to_date(self, task: str) -> bool:
        """Whether a project task has an outcome that is made of what stands now. Its needs of project scope have."""
        shard = project_shard(task)
        link = self._links.get((shard, task), {}).get(0)
        return (
            link is not None
            and self._are_files_ready(shard, task)
            and link.outcome.inputs == self.inputs(task)
            and not self._pending(shard, task)
        )

    def _are_files_ready(self, shard: ShardId, task: str) -> bool:
        """Whether what a project task needs of files is settled. What is stays so, and each shard is asked once."""
        needs = tuple(need for need in self._needs[task] if need in self._file_tasks)
        place = self._settled_before[shard]
        while place < len(self._files) and (
            self._is_settled(self._files[place], needs)
            or not any(self._pending(self._files[place], need) for need in needs)
        ):
            place += 1
        self._settled_before[shard] = place
        return place == len(self._files)

    def _is_settled(self, shard: ShardId, tasks: Sequence[str]) -> bool:
        """Whether one result covers the whole shard for every task: what nearly every shard comes to."""
        items = self._items[shard]
        for task in tasks:
            links = self._links.get((shard, task))
            link = links.get(0) if links else None
            if link is None or link.end != items or link.type != "result":
                return False
        return True

    def first_of(self, tasks: Sequence[str]) -> tuple[str, ...]:
        """Those of some tasks that need none of the others: where these fail, the others fail for want of them."""
        return tuple(task for task in tasks if not set(self._needs[task]) & set(tasks))

    def doomed(self, unit: Unit) -> list[tuple[int, tuple[str, ...]]]:
        """The items of a unit at which some of its tasks must fail, because a task that they need has failed there."""
        doomed: dict[int, list[str]] = {}
        for task in unit.tasks:
            for need in self._needs[task]:
                if need in unit.tasks or (unit.shard in self._project and need in self._file_tasks):
                    continue  # A project task reads what there is of files, failures included.
                shard = unit.shard if need in self._file_tasks else project_shard(need)
                for link in self.unsuccessful(shard, need):
                    if unit.start <= link.start < unit.end and task not in doomed.setdefault(link.start, []):
                        doomed[link.start].append(task)
        return [(item, tuple(tasks)) for item, tasks in sorted(doomed.items()) if tasks]

    def _steps(self, shard: ShardId, task: str) -> Iterator[Link | tuple[int, int]]:
        links = self._links.get((shard, task), {})
        items = self._items[shard]
        at = 0
        while at < items:
            link = links.get(at)
            if link is not None:
                yield link
                at = link.end
            else:
                end = min((start for start in links if start > at), default=items)
                yield (at, end)
                at = end
