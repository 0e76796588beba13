"""When the tasks of project scope are open: the barrier of SPEC.md "Project tasks".

Each has one chain, of one item. Its work is open once what it needs is settled in every shard, and again, one round up,
when the digest of that is not the one its outcome was made of. What is learnt touches only the tasks that need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.digest import Digest, digest_pairs
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.analysis.chains import Chains
from codebatch.scheduling.analysis.readiness import Readiness


class ProjectTasks:
    """The project tasks of a plan, and what each is made of."""

    def __init__(
        self,
        chains: Chains,
        files: Sequence[ShardId],
        works: Sequence[ProjectWork],
        needs: Mapping[str, Sequence[str]],
    ) -> None:
        """`files`: the shards of files in path order; `works` and `needs` in plan order."""
        self._chains = chains
        self._files = files
        self._works = {work.task: work for work in works}
        order = {task: place for place, task in enumerate(needs)}
        ordered = {task: sorted(set(needs[task]), key=order.__getitem__) for task in self._works}
        self._of_files = {task: [n for n in needed if n not in self._works] for task, needed in ordered.items()}
        self._of_projects = {task: [n for n in needed if n in self._works] for task, needed in ordered.items()}
        self._readers: dict[str, list[str]] = {}
        for task, needed in self._of_files.items():
            for need in needed:
                self._readers.setdefault(need, []).append(task)
        self._readiness = Readiness(self._of_projects)
        self._unheeded: set[str] = set()  # File tasks: told of at every commit, and asked for rarely.
        self._settled_before = dict.fromkeys(self._works, 0)
        self._inputs: dict[str, Digest] = {}

    def __contains__(self, task: str) -> bool:
        """Whether a task is of project scope."""
        return task in self._works

    def work(self, task: str) -> ProjectWork:
        """The work of a task that is one of these."""
        return self._works[task]

    def inputs(self, task: str) -> Digest:
        """The digest of all that a project task reads: the outcomes of what it needs, as they stand."""
        self._heed()
        if task not in self._inputs:
            chains = [(shard, need) for shard in self._files for need in self._of_files[task]]
            chains += [(self._works[need].id, need) for need in self._of_projects[task]]
            self._inputs[task] = digest_pairs(
                (f"{shard}.{link.start}.{need}", link.outcome.digest)
                for shard, need in chains
                for link in self._chains.walk(shard, need)
            )
        return self._inputs[task]

    def touch(self, task: str) -> None:
        """Something was learnt of a task, of either scope: what rests on it is judged again when somebody asks."""
        if task not in self._works:
            self._unheeded.add(task)
            return
        self._readiness.touch(task)
        for other in self._readiness.needed_by(task):
            self._inputs.pop(other, None)
            self._readiness.touch(other)

    def doubt_files(self) -> None:
        """What was settled of files may be open again."""
        self._settled_before = dict.fromkeys(self._works, 0)

    def is_open(self, task: str) -> bool:
        """Whether a task is to be done now."""
        self._judge()
        return self._readiness.is_next(task) and self._are_files_ready(task)

    def take_changed(self) -> list[ProjectWork]:
        """The work that may be open where it was not, or the other way, since this was last asked."""
        self._judge()
        return [self._works[task] for task in self._readiness.take_changed()]

    def _heed(self) -> None:
        """Touch what reads the file tasks of which something was learnt, once for all that was."""
        for task in self._unheeded:
            for reader in self._readers.get(task, ()):
                self._inputs.pop(reader, None)
                self._readiness.touch(reader)
        self._unheeded.clear()

    def _judge(self) -> None:
        self._heed()
        self._readiness.judge(self._is_up_to_date)

    def _is_up_to_date(self, task: str) -> bool:
        """Whether a task has an outcome that is made of what stands now. Its needs of project scope have."""
        shard = self._works[task].id
        link = self._chains.link_at(shard, task, 0)
        return (
            link is not None
            and self._are_files_ready(task)
            and link.outcome.inputs == self.inputs(task)
            and not self._chains.pending(shard, task)
        )

    def _are_files_ready(self, task: str) -> bool:
        """Whether what a task needs of files is settled. What is stays so, and each shard is asked once."""
        needs = self._of_files[task]
        place = self._settled_before[task]
        while place < len(self._files) and (
            self._chains.is_covered(self._files[place], needs)
            or not any(self._chains.pending(self._files[place], need) for need in needs)
        ):
            place += 1
        self._settled_before[task] = place
        return place == len(self._files)
