"""The ledger of a plan: for each shard and project task, which work has outcomes and which work is open.

1. Work on files is open if a chain has a hole (chains.py), or an outcome that is to be retried.
2. A project task is open if everything that it needs is settled, and its outcome is missing or was made from other
   inputs than the present ones (project_tasks.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, OutcomeRegister, WorkUnit
from codebatch.model.shard import ProjectWork, Shard, ShardId, Work
from codebatch.scheduling.analysis.chains import ChainLink, OutcomeChains
from codebatch.scheduling.analysis.project_tasks import ProjectTaskStates


class ShardResult(NamedTuple):
    """The outcomes of one task for one shard, which has `items` items."""

    shard: ShardId
    items: int
    links: list[ChainLink]


class OutcomeLedger:
    """The known outcomes of a plan. Outcomes are only added, never removed."""

    def __init__(self, work: Iterable[Work], needs: Mapping[str, Sequence[str]]) -> None:
        """Start without outcomes.

        `work` has the shards of files in path order, then the project tasks. `needs` maps each task, in plan order, to
        the tasks that it needs.
        """
        self.work = {work_item.id: work_item for work_item in work}
        """All work by ID, in the given order."""
        self.needs = {task: tuple(needed) for task, needed in needs.items()}
        """The tasks that each task needs, in plan order."""
        self._sizes = {id_: work_item.items for id_, work_item in self.work.items()}
        self._chains = OutcomeChains(self._sizes)
        self._places = {
            id_: place for place, (id_, work_item) in enumerate(self.work.items()) if isinstance(work_item, Shard)
        }
        self._project = ProjectTaskStates(self._chains, tuple(self._places), self.project_work, self.needs)
        self._file_tasks = tuple(task for task in needs if task not in self._project)
        self._tasks = {
            id_: self._file_tasks if isinstance(work_item, Shard) else (work_item.task,)
            for id_, work_item in self.work.items()
        }
        self._sizes_of_files = [(shard, self._sizes[shard]) for shard in self._places]

    @property
    def project_work(self) -> list[ProjectWork]:
        """The work of the project tasks, in plan order."""
        return [work for work in self.work.values() if isinstance(work, ProjectWork)]

    @property
    def iter_chain_keys(self) -> Iterator[tuple[ShardId, str]]:
        """All pairs of work and task that have a chain of outcomes, including empty chains."""
        return ((id_, task) for id_, tasks in self._tasks.items() for task in tasks)

    def planned_count(self, tasks: Collection[str] | None = None) -> int:
        """Return the number of planned (item, task) pairs, for the given tasks or for all tasks."""
        return sum(self._sizes[shard] for shard, task in self.iter_chain_keys if tasks is None or task in tasks)

    def fits_plan(self, commit: Commit) -> bool:
        """Return whether a commit refers only to shards, items and tasks of the plan."""
        return all(
            0 <= outcome.start < outcome.end <= self._sizes.get(outcome.shard, 0)
            and outcome.task in self._tasks[outcome.shard]
            and (not outcome.parts or [(part.shard, part.end) for part in outcome.parts] == self._sizes_of_files)
            for outcome in commit.outcomes
        )

    def add(self, commit: Commit) -> list[ShardId]:
        """Add a commit that fits the plan. Return the IDs of the work that got new outcomes."""
        assert self.fits_plan(commit)
        touched: dict[ShardId, None] = {}
        for outcome in commit.outcomes:
            if self._chains.add(outcome, commit):
                touched[outcome.shard] = None
                self._project.mark_changed(outcome.task)
        return list(touched)

    def has_outcome(self, register: OutcomeRegister) -> bool:
        """Return whether the outcome of a register is known.

        An outcome of a later round with the same first item counts too.
        """
        link = self._chains.link_at(register.shard, register.task, register.start)
        return link is not None and link.round >= register.round

    def mark_unreadable(self, register: OutcomeRegister) -> None:
        """Record that a register exists but has invalid content.

        The work of this register is then open in the next round.
        """
        self._chains.mark_unreadable(register)
        self._project.mark_changed(register.task)

    def iter_links(self, shard: ShardId, task: str) -> Iterator[ChainLink]:
        """Yield the outcomes of a chain in order, without holes.

        The result of a project task has a part for each shard of files. For such a shard, this part is yielded. If the
        project task failed, the failure is yielded for the first shard only.
        """
        if task in self._project and shard in self._places:
            return self._iter_parts(task, self._places[shard])
        return self._chains.iter_links(shard, task)

    def iter_shard_results(self, task: str) -> Iterator[ShardResult]:
        """Yield the present outcomes of a task: one ShardResult for each shard of files, in path order.

        If the plan has no files, yield one empty ShardResult. If a project task failed in such a plan, the ShardResult
        has one item, with the failure.
        """
        for shard in self._places:
            yield ShardResult(shard, self._sizes[shard], list(self.iter_links(shard, task)))
        if not self._places:
            nowhere = ProjectWork(task).id
            failed = self.unsuccessful_links(nowhere, task) if task in self._project else []
            yield ShardResult(nowhere, len(failed), failed)

    def list_holes(self, shard: ShardId, task: str) -> list[tuple[int, int]]:
        """Return the item ranges of a shard without an outcome of a task."""
        return self._chains.list_holes(shard, task)

    def inputs_digest(self, task: str) -> Digest:
        """Return the digest of all inputs of a project task: the known outcomes of the tasks that it needs."""
        return self._project.inputs_digest(task)

    def unsuccessful_links(self, shard: ShardId, task: str) -> list[ChainLink]:
        """Return the outcomes of a task for a shard that are not results."""
        return [link for link in self.iter_links(shard, task) if link.type != "result"]

    def retry_unsuccessful(self) -> None:
        """Mark all known outcomes that are not results for a retry: their items become pending in the next round."""
        for shard, task in self.iter_chain_keys:
            self._chains.retry_unsuccessful(shard, task)
        for task in self.needs:
            self._project.mark_changed(task)
        self._project.forget_settled_files()

    def open_units(self, shard: ShardId) -> list[WorkUnit]:
        """Return the pending work of a shard as units, in item order. Each unit has a maximal range of items.

        For every item of a unit, the same tasks are pending, all with the same round number, because a commit has one
        round. If a task needs another task that is pending in another round, the first task is omitted until the needed
        task is settled. If the needed task fails, the first task must fail too.
        """
        if shard in self._places:
            return self._open_file_units(shard)
        (task,) = self._tasks[shard]
        if not self._project.is_open(task):
            return []
        return [WorkUnit(shard=shard, start=0, end=1, tasks=(task,), round=self._chains.last_round(shard, task, 0) + 1)]

    def changed_projects(self) -> list[ProjectWork]:
        """Return project tasks whose state may have changed since the last call: they may have become open or settled.

        Plan order.
        """
        return self._project.take_changed()

    def independent_tasks(self, tasks: Sequence[str]) -> tuple[str, ...]:
        """Return those of `tasks` that need no other task in `tasks`.

        If they all fail, the rest of `tasks` fails as well.
        """
        return tuple(task for task in tasks if not set(self.needs[task]) & set(tasks))

    def doomed_items(self, unit: WorkUnit) -> list[tuple[int, tuple[str, ...]]]:
        """Return the items of a unit for which a needed task failed.

        Each comes with the tasks that must therefore fail.
        """
        doomed: dict[int, list[str]] = {}
        for task in unit.tasks:
            for need in self.needs[task]:
                if need in unit.tasks or (task in self._project and need not in self._project):
                    # A project task does not fail in this case: it reads all outcomes of file tasks, including
                    # failures.
                    continue
                shard = self._project.project_work(need).id if need in self._project else unit.shard
                for link in self.unsuccessful_links(shard, need):
                    if unit.start <= link.start < unit.end and task not in doomed.setdefault(link.start, []):
                        doomed[link.start].append(task)
        return [(item, tuple(tasks)) for item, tasks in sorted(doomed.items()) if tasks]

    def _iter_parts(self, task: str, place: int) -> Iterator[ChainLink]:
        for link in self._chains.iter_links(self._project.project_work(task).id, task):
            if link.outcome.parts:
                part = link.outcome.parts[place]
                yield ChainLink(part.start, part.end, part.type, link.round, link.segment, part)
            elif place == 0:
                yield link

    def _open_file_units(self, shard: ShardId) -> list[WorkUnit]:
        tasks = self._file_tasks
        if self._chains.is_covered(shard, tasks):
            return []
        if self._chains.is_untouched(shard):
            return [WorkUnit(shard=shard, start=0, end=self._sizes[shard], tasks=tasks)]
        missing: dict[str, list[tuple[int, int, int]]] = {}
        bounds = {0, self._sizes[shard]}
        for task in tasks:
            missing[task] = ranges = self._chains.pending_ranges(shard, task)
            bounds.update(bound for start, end, _ in ranges for bound in (start, end))
        units: list[WorkUnit] = []
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
                WorkUnit(shard=shard, start=start, end=end, tasks=tuple(tasks), round=round_)
                for round_, tasks in sorted(by_round.items())
            ]
        return units
