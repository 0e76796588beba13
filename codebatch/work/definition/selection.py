"""Selection of the tasks of a list to run: the requested tasks, and all tasks that they need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from codebatch.errors import BatchIncomplete, BatchRunning, InvalidInput, NothingLeft, NothingToDo
from codebatch.model.graph import find_reachable
from codebatch.model.work.command import CommandId
from codebatch.model.work.task_patterns import has_wildcard, matching_ids
from codebatch.model.work.work_batch import LeftOutTask, TaskSuccess, WorkEdge
from codebatch.scheduling.lifecycle import CommandState
from codebatch.work.definition.commands import DefinedTask
from codebatch.work.definition.definitions import TaskDefinition
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.validation import similar_id_hint
from codebatch.work.definition.work_files import file_hint

_NAMES_SHOWN_MAX = 10


class ListIdentity(NamedTuple):
    """The identity of a task list: its root, and the files that the user named.

    If the files are unknown, `source` identifies the list instead.
    """

    source: str
    root: bytes
    files: tuple[bytes, ...]


HeldReason = Literal["", "active", "interrupted"]
"""The reason why a task must not start in another batch, or empty.

- `active`: a batch is running the task or will run it.
- `interrupted`: the task was interrupted, and its policy allows no other start.
"""


class PreviousTask(NamedTuple):
    """The outcome of a task in the latest batch of its list that contains the task.

    - `definition`: the digest of the definition that the task had, if the task is done; otherwise empty.
    - `is_current`: the definition is unchanged.
    - `has_answer`: the task was answered and has not run since.
    - `batch`: the ID of the batch.
    - `is_named_batch`: the batch was named with `--of`.
    - `held`: the reason why `--unfinished` leaves out the task. It could otherwise run twice.
    - `success`: its last success, or None if a later attempt did not succeed.
    """

    state: CommandState
    definition: str
    is_current: bool
    has_answer: bool
    batch: str
    is_named_batch: bool
    held: HeldReason = ""
    success: TaskSuccess | None = None


PreviousTasks = Mapping[CommandId, PreviousTask]
PreviousTasksReader = Callable[[ListIdentity, Mapping[CommandId, TaskDefinition]], PreviousTasks]
"""A function that returns the outcomes of a list's tasks in earlier batches.

Its arguments are the identity of the list and the definitions of its tasks.
"""


class SelectedTasks(NamedTuple):
    """IDs of the selected tasks, notes about the selection, and tasks that were left out, with warnings about them."""

    ids: Collection[CommandId]
    notes: list[str]
    warnings: list[str]
    left_out: tuple[LeftOutTask, ...] = ()


class TaskSelection:
    """The tasks, groups and edges of a list, from which tasks are selected."""

    def __init__(
        self,
        tasks: Sequence[DefinedTask],
        edges: Sequence[WorkEdge],
        groups: Mapping[str, Mapping[str, CommandId]],
        identity: ListIdentity,
        cwd: Path,
    ) -> None:
        self._tasks = tasks
        self._edges = edges
        self._groups = groups
        self._source = identity.source
        self._root = identity.root
        self._cwd = cwd

    def choose(self, options: WorkOptions, former: PreviousTasks) -> SelectedTasks:
        """Return the tasks that the options select, and notes about the selection.

        Raises InvalidInput for an unknown task, and NothingToDo if no task is selected.
        """
        ids = self._named_tasks(options.tasks) if options.tasks else {task.id for task in self._tasks}
        if options.tags:
            ids &= self._tagged_tasks(options.tags)
        done: set[CommandId] = set()
        if options.uses_previous_batches:
            done = {id_ for id_, task in former.items() if task.state is CommandState.DONE and task.is_current}
            ids -= done
            if options.of is not None:
                ids &= {id_ for id_, task in former.items() if task.is_named_batch}
            if options.blocked:
                ids &= {id_ for id_, task in former.items() if task.state is CommandState.BLOCKED}
            if not ids and options.blocked:
                raise NothingToDo(f"no task of {self._source} waits for an answer")
            if not ids:
                batch = max(task.batch for task in former.values())
                raise NothingLeft(f"all selected tasks of {self._source} are done", root=self._root, batch=batch)
        if not ids:
            raise NothingToDo(f"no task of {self._source} matches the selection")
        selected = ids if options.only else self._with_needs(ids, done)
        held_notes: list[str] = []
        left_out: list[LeftOutTask] = []
        if options.unfinished:
            left_out, held_notes = self._find_held(selected, former, {*options.tasks})
            selected -= {each.task for each in left_out}
        lacks = {edge.on for edge in self._edges if edge.kind == "needs" and edge.task in selected} - selected
        why = "only the given tasks run" if options.only else "they are done"
        notes = [f"dependencies not run, because {why}: {abbreviated_ids(sorted(lacks))}"] if lacks else []
        if options.unfinished and not former:
            notes.append(f"no batch of {self._source} yet: no task is done")
        return SelectedTasks(
            selected,
            [*notes, *_previous_task_notes({id_: former[id_] for id_ in sorted(selected & former.keys())})],
            held_notes,
            tuple(left_out),
        )

    def _find_held(
        self, selected: set[CommandId], former: PreviousTasks, named: Collection[str]
    ) -> tuple[list[LeftOutTask], list[str]]:
        """Return the selected tasks that are held, and those that need them, with warnings about them.

        A task that the user names is run although it was interrupted. Raises BatchRunning or BatchIncomplete if no task
        is left.
        """
        held = {id_: former[id_] for id_ in sorted(selected & former.keys()) if former[id_].held}
        held = {id_: task for id_, task in held.items() if task.held == "active" or id_ not in named}
        warnings: list[str] = []
        for batch in dict.fromkeys(task.batch for task in held.values() if task.held == "active"):
            ids = [id_ for id_, task in held.items() if task.held == "active" and task.batch == batch]
            warnings.append(f"left out, because batch {batch} is running them or will: {abbreviated_ids(ids)}")
        if interrupted := [id_ for id_, task in held.items() if task.held == "interrupted"]:
            warnings.append(
                f"left out, because they were interrupted and may not start again: {abbreviated_ids(interrupted)}; "
                "to run such a task, name it"
            )
        dependents: dict[CommandId, list[CommandId]] = {}
        for edge in self._edges:
            dependents.setdefault(edge.on, []).append(edge.task)
        above = (set(find_reachable(held, lambda id_: dependents.get(id_, ()))) - held.keys()) & selected
        if above:
            warnings.append(f"left out, because they depend on these: {abbreviated_ids(sorted(above))}")
        if selected <= held.keys() | above:
            message = f"no task of {self._source} is run: {'; '.join(warnings)}"
            raise BatchRunning(message) if not interrupted else BatchIncomplete(message)
        left_out = [
            LeftOutTask(task=id_, reason=task.held, batch=task.batch if task.held == "active" else "")
            for id_, task in held.items()
            if task.held
        ]
        return [*left_out, *(LeftOutTask(task=id_, reason="needs") for id_ in sorted(above))], warnings

    def _named_tasks(self, words: Sequence[str]) -> set[CommandId]:
        ids = {task.id for task in self._tasks}
        named: set[CommandId] = set()
        for word in words:
            if word in self._groups:
                named |= {*self._groups[word].values()}
            elif word in ids:
                named.add(CommandId(word))
            elif has_wildcard(word) and (matches := matching_ids(word, ids)):
                named.update(matches)
            else:
                hint = file_hint([word], self._cwd) or similar_id_hint(word, [*ids, *self._groups])
                raise InvalidInput(f"no task {word!r} in {self._source}", hint=hint)
        return named

    def _tagged_tasks(self, tags: Sequence[str]) -> set[CommandId]:
        known = {tag for task in self._tasks for tag in task.tags}
        for tag in tags:
            if tag not in known:
                raise InvalidInput(f"no task of {self._source} has the tag {tag!r}", hint=similar_id_hint(tag, known))
        return {task.id for task in self._tasks if not {*tags}.isdisjoint(task.tags)}

    def _with_needs(self, ids: set[CommandId], met: Collection[CommandId]) -> set[CommandId]:
        """Return the given tasks, and all tasks that they need directly or indirectly.

        Tasks in `met` are left out, with the tasks that only they need.
        """
        needs: dict[CommandId, list[CommandId]] = {}
        for edge in self._edges:
            if edge.kind == "needs" and edge.on not in met:
                needs.setdefault(edge.task, []).append(edge.on)
        return set(find_reachable(ids, lambda id_: needs.get(id_, ())))


def _previous_task_notes(chosen: PreviousTasks) -> Iterator[str]:
    """Yield notes about tasks that run again because their definition changed, and about answers that are not used."""
    changed = [id_ for id_, task in chosen.items() if task.state is CommandState.DONE and not task.is_current]
    if changed:
        yield f"rerun, because the definitions have changed since the last run: {abbreviated_ids(changed)}"
    for batch in dict.fromkeys(task.batch for task in chosen.values() if task.has_answer):
        answered = [id_ for id_, task in chosen.items() if task.has_answer and task.batch == batch]
        names = abbreviated_ids(answered)
        yield f"answers in batch {batch} are not used here: {names}; to use them: codebatch resume --batch {batch}"


def abbreviated_ids(ids: Sequence[str]) -> str:
    """Return the first IDs as text. If there are more, the text ends with their number."""
    more = [f"and {len(ids) - _NAMES_SHOWN_MAX:,} more"] if len(ids) > _NAMES_SHOWN_MAX else []
    return ", ".join([*ids[:_NAMES_SHOWN_MAX], *more])
