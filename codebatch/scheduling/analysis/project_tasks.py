"""Readiness of project tasks: when each can be executed (SPEC.md "Project tasks").

Each project task has one chain with one item. The task is open once everything that it needs is settled in every shard.
Its outcome has the digest of its inputs. If the inputs have changed since that outcome, the task is open again in the
next round. A new outcome affects only the tasks that need its task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.digest import Digest, digest_pairs
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.analysis.chains import OutcomeChains
from codebatch.scheduling.analysis.readiness import TaskReadiness


class ProjectTaskStates:
    """The project tasks of a plan and their inputs."""

    def __init__(
        self,
        chains: OutcomeChains,
        files: Sequence[ShardId],
        works: Sequence[ProjectWork],
        needs: Mapping[str, Sequence[str]],
    ) -> None:
        """Start without outcomes.

        `files` are the shards of files in path order; `works` and `needs` are in plan order.
        """
        self._chains = chains
        self._files = files
        self._work_by_task = {work.task: work for work in works}
        order = {task: place for place, task in enumerate(needs)}
        ordered = {task: sorted(set(needs[task]), key=order.__getitem__) for task in self._work_by_task}
        self._of_files = {task: [n for n in needed if n not in self._work_by_task] for task, needed in ordered.items()}
        self._of_projects = {task: [n for n in needed if n in self._work_by_task] for task, needed in ordered.items()}
        self._tasks_reading: dict[str, list[str]] = {}
        for task, needed in self._of_files.items():
            for need in needed:
                self._tasks_reading.setdefault(need, []).append(task)
        self._readiness = TaskReadiness(self._of_projects)
        # File tasks with new outcomes. Only a query updates the project tasks that need them, because commits are
        # frequent and queries are rare.
        self._touched_files: set[str] = set()
        self._settled_before = dict.fromkeys(self._work_by_task, 0)
        self._inputs: dict[str, Digest] = {}

    def __contains__(self, task: str) -> bool:
        """Return whether a task is a project task."""
        return task in self._work_by_task

    def project_work(self, task: str) -> ProjectWork:
        """Return the work of a project task. Raises KeyError for other tasks."""
        return self._work_by_task[task]

    def inputs_digest(self, task: str) -> Digest:
        """Return the digest of all inputs of a project task: the known outcomes of the tasks that it needs."""
        self._touch_readers()
        if task not in self._inputs:
            chains = [(shard, need) for shard in self._files for need in self._of_files[task]]
            chains += [(self._work_by_task[need].id, need) for need in self._of_projects[task]]
            self._inputs[task] = digest_pairs(
                (f"{shard}.{link.start}.{need}", link.outcome.digest)
                for shard, need in chains
                for link in self._chains.iter_links(shard, need)
            )
        return self._inputs[task]

    def mark_changed(self, task: str) -> None:
        """Record that a task has new outcomes.

        The next query recomputes the readiness of the tasks that need this task.
        """
        if task not in self._work_by_task:
            self._touched_files.add(task)
            return
        self._readiness.mark_changed(task)
        for other in self._readiness.needed_by(task):
            self._inputs.pop(other, None)
            self._readiness.mark_changed(other)

    def forget_settled_files(self) -> None:
        """Forget the shards in which file tasks are settled, because retries may have opened their work again."""
        self._settled_before = dict.fromkeys(self._work_by_task, 0)

    def is_open(self, task: str) -> bool:
        """Return whether a project task must be executed now.

        True if its outcome is missing or was made from other inputs, and all that it needs is settled.
        """
        self._update_readiness()
        return self._readiness.is_next(task) and self._are_files_ready(task)

    def take_changed(self) -> list[ProjectWork]:
        """Return the work of tasks that may have become open or settled since the last call, in plan order."""
        self._update_readiness()
        return [self._work_by_task[task] for task in self._readiness.take_changed()]

    def _touch_readers(self) -> None:
        """Mark each project task that needs a file task with new outcomes, and drop the digest of its inputs."""
        for task in self._touched_files:
            for reader in self._tasks_reading.get(task, ()):
                self._inputs.pop(reader, None)
                self._readiness.mark_changed(reader)
        self._touched_files.clear()

    def _update_readiness(self) -> None:
        self._touch_readers()
        self._readiness.update(self._is_up_to_date)

    def _is_up_to_date(self, task: str) -> bool:
        """Return whether a project task has an outcome that was made from its present inputs.

        Call this only if all project tasks that the task needs are up to date.
        """
        shard = self._work_by_task[task].id
        link = self._chains.link_at(shard, task, 0)
        return (
            link is not None
            and self._are_files_ready(task)
            and link.outcome.inputs == self.inputs_digest(task)
            and not self._chains.pending_ranges(shard, task)
        )

    def _are_files_ready(self, task: str) -> bool:
        """Return whether all file tasks that a project task needs are settled.

        Shards are tested in order. The test continues at the first shard that was not settled in the previous call.
        """
        needs = self._of_files[task]
        place = self._settled_before[task]
        while place < len(self._files) and (
            self._chains.is_covered(self._files[place], needs)
            or not any(self._chains.pending_ranges(self._files[place], need) for need in needs)
        ):
            place += 1
        self._settled_before[task] = place
        return place == len(self._files)
