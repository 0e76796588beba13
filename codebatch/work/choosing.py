"""Which tasks of a list are to run: those that are asked for, with what they need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codebatch.engine.lifecycle import CommandState
from codebatch.errors import InvalidInput, NothingToDo
from codebatch.model.command import CommandId
from codebatch.model.work import WorkEdge
from codebatch.work.defining import Task
from codebatch.work.files import file_hint
from codebatch.work.settings import WorkOptions
from codebatch.work.validating import like_id

_NAMES_SHOWN_MAX = 10

Former = Callable[[str, bytes], Mapping[CommandId, CommandState]]
"""Where the tasks of a former batch stand, by its source and its root; empty where there is none."""


class Chosen(NamedTuple):
    """Ids of tasks, and what people are to be told of how they were chosen."""

    ids: Collection[CommandId]
    notes: list[str]


class Choice:
    """What may be chosen of: tasks and groups of a list, and what needs what."""

    def __init__(
        self,
        tasks: Sequence[Task],
        edges: Sequence[WorkEdge],
        groups: Mapping[str, Mapping[str, CommandId]],
        source: str,
        here: Path,
    ) -> None:
        self._tasks = tasks
        self._edges = edges
        self._groups = groups
        self._source = source
        self._here = here

    def choose(self, options: WorkOptions, former: Mapping[CommandId, CommandState]) -> Chosen:
        """Those that options ask for. Raises InvalidInput for one that is not there, NothingToDo where none is left."""
        ids = self._named(options.tasks) if options.tasks else {task.id for task in self._tasks}
        if options.tags:
            ids &= self._tagged(options.tags)
        met: set[CommandId] = set()
        if options.is_of_former:
            met = {task for task, state in former.items() if state is CommandState.DONE}
            wanted = {task for task, state in former.items() if state is CommandState.BLOCKED}
            ids = ids & wanted if options.blocked else ids - met
            if not ids:
                what = "waits for an answer" if options.blocked else "is left"
                raise NothingToDo(f"nothing of {self._source} {what}")
        if not ids:
            raise NothingToDo(f"no task of {self._source} was asked for")
        whole = ids if options.only else self._with_needs(ids, met)
        lacks = {edge.on for edge in self._edges if edge.kind == "needs" and edge.task in whole} - whole
        why = "only what is named runs" if options.only else "they are done"
        notes = [f"taken as met, for {why}: {names_shown(sorted(lacks))}"] if lacks else []
        return Chosen(whole, notes)

    def _named(self, words: Sequence[str]) -> set[CommandId]:
        ids = {task.id for task in self._tasks}
        named: set[CommandId] = set()
        for word in words:
            if word in self._groups:
                named |= {*self._groups[word].values()}
            elif word in ids:
                named.add(CommandId(word))
            else:
                hint = file_hint([word], self._here) or like_id(word, [*ids, *self._groups])
                raise InvalidInput(f"there is no task {word!r} in {self._source}", hint=hint)
        return named

    def _tagged(self, tags: Sequence[str]) -> set[CommandId]:
        known = {tag for task in self._tasks for tag in task.tags}
        for tag in tags:
            if tag not in known:
                raise InvalidInput(f"no task of {self._source} has the tag {tag!r}", hint=like_id(tag, known))
        return {task.id for task in self._tasks if not {*tags}.isdisjoint(task.tags)}

    def _with_needs(self, ids: set[CommandId], met: Collection[CommandId]) -> set[CommandId]:
        """Some tasks, and all that they need, directly or not, but what is met."""
        needs: dict[CommandId, list[CommandId]] = {}
        for edge in self._edges:
            if edge.kind == "needs" and edge.on not in met:
                needs.setdefault(edge.task, []).append(edge.on)
        found = set(ids)
        pending = list(ids)
        while pending:
            new = set(needs.get(pending.pop(), ())) - found
            found |= new
            pending += new
        return found


def names_shown(ids: Sequence[str]) -> str:
    """The first of some ids, and how many more there are."""
    more = [f"and {len(ids) - _NAMES_SHOWN_MAX:,} more"] if len(ids) > _NAMES_SHOWN_MAX else []
    return ", ".join([*ids[:_NAMES_SHOWN_MAX], *more])
