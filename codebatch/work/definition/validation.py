"""Checks across tasks: IDs, dependencies, cycles and pools."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from codebatch.model.graph import find_reachable, strong_components
from codebatch.model.text.suggestions import closest_word
from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import WorkLimits, open_minutes
from codebatch.model.work.pattern_overlap import FilePatterns
from codebatch.model.work.placeholders import PlaceholderError
from codebatch.model.work.work_batch import COMMANDS_MAX, EdgeKind, WorkEdge
from codebatch.work.definition.commands import DefinedTask, check_id
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.work_files import TaskSource

_NAMES_SHOWN_MAX = 20
_SIMILAR_COMPARED_MAX = 2_000
_SIMILAR_SHOWN_MAX = 5
EDGES_MAX = 1_000_000
_CYCLE_SEARCH_STEPS_MAX = 200_000
"""Maximum number of edges to visit in the search for the shortest cycle."""


def check_task_ids(tasks: Sequence[DefinedTask], problems: DefinitionProblems) -> None:
    """Report equal IDs, and IDs that differ only in case, because some file systems ignore case."""
    tasks_by_id: dict[str, DefinedTask] = {}
    for task in tasks:
        other = tasks_by_id.setdefault(task.id.lower(), task)
        if other is task:
            continue
        if other.id == task.id:
            message = f"{task.id!r} is defined twice: in {other.place} and in {task.place}"
            problems.add(message, "change one of the ids")
        else:
            message = f"ids in {other.place} and {task.place} differ only in case"
            problems.add(message, "logs are named after ids, and some file systems ignore case")
    if len(tasks) > COMMANDS_MAX:
        problems.add(f"{len(tasks):,} tasks, more than {COMMANDS_MAX:,}", "split them into several batches")


def check_done_tasks(done: Sequence[TaskSource], tasks: Sequence[DefinedTask], problems: DefinitionProblems) -> None:
    """Report tasks that are marked as done and have an invalid ID, or the ID of another task in `tasks`."""
    places = {task.group or task.id: task.place for task in tasks}
    for task in done:
        check_id(task.name, task.place, problems)
        other = places.setdefault(CommandId(task.name), task.place)
        if other is not task.place:
            message = f"{task.name!r} is defined twice: in {other}, and marked as done in {task.place}"
            problems.add(message, "change one of the ids")


def check_task_pools(
    tasks: Sequence[DefinedTask], pools: Mapping[str, int], limits: WorkLimits, problems: DefinitionProblems
) -> None:
    """Report tasks that take more tokens of a pool than it has, or that can never start because of hours."""
    _check_task_hours(tasks, limits, problems)
    for task in tasks:
        for pool, amount in task.pools.items():
            message = f"{task.place.file}: {task.group or task.id!r} takes"
            if pool not in pools:
                suggestion = closest_word(pool, pools)
                hint = f"set its size: [pools] {pool} = …" if suggestion is None else f"did you mean {suggestion!r}?"
                problems.add(f"{message} tokens of pool {pool!r}, which is not defined", hint)
            elif amount > pools[pool]:
                problems.add(f"{message} {amount} tokens of pool {pool!r}, which has {pools[pool]}")


def _check_task_hours(tasks: Sequence[DefinedTask], limits: WorkLimits, problems: DefinitionProblems) -> None:
    """Report the first task of each set of pools whose hours and those of the list have no minute in common."""
    first = {frozenset(task.pools.keys() & limits.pool_hours): task for task in reversed(tasks)}
    for pools, task in first.items():
        hours = {f"of pool {pool!r}": limits.pool_hours[pool] for pool in sorted(pools)}
        hours = {"of the list": limits.hours, **hours}
        if not set.intersection(*({*open_minutes(text)} for text in hours.values())):
            named = " and ".join(f"`hours` {whose} ({text})" for whose, text in hours.items() if text)
            message = f"{task.place.file}: {task.group or task.id!r} could never start: {named} do not overlap"
            problems.add(message, "change the hours, or the pools of the task")


def resolve_edges(
    tasks: Sequence[DefinedTask],
    groups: Mapping[str, Mapping[str, CommandId]],
    done: Collection[str],
    problems: DefinitionProblems,
) -> list[WorkEdge]:
    """Return the edges between tasks in the order of the file, at most one for each pair of tasks.

    If a pair has `needs` and `after`, the edge is `needs`. `groups` maps groups to their members. `done` has the IDs of
    tasks that the list marks as done. A dependency on one of them is satisfied, so it gives no edge.
    """
    references = TaskNameResolver(tasks, groups, done, problems)
    edges: list[WorkEdge] = []
    for task in tasks:
        pairs: dict[CommandId, EdgeKind] = {}
        for on in dict.fromkeys(task.after):
            pairs.update(dict.fromkeys(references.resolve_name(task, on, "after"), "after"))
        for on in dict.fromkeys(task.needs):
            pairs.update(dict.fromkeys(references.resolve_name(task, on, "needs"), "needs"))
        edges += [WorkEdge(task.id, on, kind) for on, kind in pairs.items()]
        if len(edges) > EDGES_MAX:
            message = f"more than {EDGES_MAX:,} dependencies between tasks"
            problems.add(message, "add a task that depends on all of them, and depend on that")
            return []
    return edges


def early_member_notes(tasks: Sequence[DefinedTask], edges: Iterable[WorkEdge]) -> list[str]:
    """Return a note for each group whose members may be incomplete.

    The members are determined before any task runs. So files that a needed task writes get no members.
    """
    writers = {task.id: task for task in tasks if task.outputs}
    groups = {task.group: task for task in tasks if task.listed} if writers else {}
    if not groups:
        return []
    needs: dict[CommandId, list[CommandId]] = {}
    for edge in edges:
        needs.setdefault(edge.task, []).append(edge.on)
    notes = []
    for group, member in groups.items():
        listed = FilePatterns(member.listed)
        for on in find_reachable(needs.get(member.id, ()), lambda id_: needs.get(id_, ())):
            if on in writers and (path := listed.shared_pattern(FilePatterns(writers[on].outputs))) is not None:
                writer = writers[on].group or on
                note = f"{member.place.file_and_line}: {group!r} does not include files that {writer!r} will write"
                notes.append(f"{note} ({path!r}): members are determined before {writer!r} runs")
                break
    return notes


class TaskNameResolver:
    """A resolver of the names in `needs` and `after`, and in placeholders for outputs."""

    def __init__(
        self,
        tasks: Sequence[DefinedTask],
        groups: Mapping[str, Mapping[str, CommandId]],
        done: Collection[str],
        problems: DefinitionProblems,
    ) -> None:
        self._ids = {task.id for task in tasks}
        self._groups = groups
        self._by_value = {(task.group, task.pair_values["each"]): task.id for task in tasks if task.pair_values}
        self._done = done
        self._problems = problems
        self._names = list(dict.fromkeys(task.group or task.id for task in tasks))
        self._by_prefix: dict[str, list[str]] | None = None

    def resolve_name(self, task: DefinedTask, on: str, kind: EdgeKind) -> Iterable[CommandId]:
        """Return the tasks that a name in `needs` or `after` refers to. If there are none, report an error."""
        name = on.removesuffix("/*")
        if name != on and name in self._groups:
            return self._member_with_same_key(task, name, kind)
        if on in self._ids:
            return (CommandId(on),)
        if on in self._groups:
            return self._groups[on].values()
        name, _, value = on.partition("/")
        if value and name in self._groups and (pair := self._member_with_value(task, name, value, kind)) is not None:
            return pair
        if on in self._done:
            return ()
        begun = self._ids_with_prefix(on)
        if len(begun) == 1:
            return self.resolve_name(task, begun[0], kind)
        verb = "needs" if kind == "needs" else "runs after"
        message = f"{task.place.file_and_line}: {task.group or task.id!r} {verb} {on!r}"
        if begun:
            candidates_text = (
                f"{', '.join(begun[:_SIMILAR_SHOWN_MAX])}{' …' if len(begun) > _SIMILAR_SHOWN_MAX else ''}"
            )
            self._problems.add(f"{message}, which is ambiguous: {candidates_text}")
        else:
            self._problems.add(f"{message}, which does not exist", functools.partial(similar_id_hint, on, self._names))
        return ()

    def _member_with_same_key(self, task: DefinedTask, group: str, kind: EdgeKind) -> Iterable[CommandId]:
        """Return the member of a group that has the same key as the task.

        If no member has this key, report an error.
        """
        if task.key in self._groups[group]:
            return (self._groups[group][task.key],)
        message = f"{task.place.file_and_line}: {task.id!r} {'needs' if kind == 'needs' else 'runs after'} '{group}/*'"
        if task.group:
            self._problems.add(
                f"{message}, but {group!r} has no member {task.key!r}",
                f"give {task.group!r} and {group!r} the same `each`",
            )
        else:
            self._problems.add(f"{message}, but has no `each`", f'to depend on all members: needs = ["{group}"]')
        return ()

    def _member_with_value(
        self, task: DefinedTask, group: str, value: str, kind: EdgeKind
    ) -> Iterable[CommandId] | None:
        """Return the member of a group for a value, in which placeholders stand for the values of the task.

        If no member has this value, report an error. Without placeholders, return None in this case.
        """
        place, verb = task.place.file_and_line, "needs" if kind == "needs" else "runs after"
        try:
            text = task.expand_need(value)
        except PlaceholderError as error:
            hint = f"placeholders: {', '.join(f'{{{name}}}' for name in task.pair_values)}"
            hint = hint if task.pair_values else "only a task with `each` can use placeholders here"
            self._problems.add(f"{place}: {task.group or task.id!r} {verb} {f'{group}/{value}'!r}: {error}", hint)
            return ()
        id_ = self._by_value.get((group, text)) or self._groups[group].get(text)
        if id_ is not None:
            return (id_,)
        if text == value:
            return None
        near = closest_word(
            text, sorted(each for name, each in self._by_value if name == group)[:_SIMILAR_COMPARED_MAX]
        )
        suggestion = None if near is None else f"did you mean {near!r}?"
        message = f"{place}: {task.id!r} {verb} {f'{group}/{value}'!r}, but {group!r} has no member for {text!r}"
        self._problems.add(message, suggestion)
        return ()

    def _ids_with_prefix(self, word: str) -> list[str]:
        """Return the IDs that begin with a word and a dash. Example: `task` gives `task-2`."""
        if self._by_prefix is None:
            self._by_prefix = {}
            for name in (*self._names, *self._done):
                for at, character in enumerate(name):
                    if character == "-":
                        self._by_prefix.setdefault(name[:at], []).append(name)
        return self._by_prefix.get(word, [])


def similar_id_hint(word: str, ids: Iterable[str]) -> str | None:
    """Return a hint with the most similar ID, or None.

    Only IDs with the same first letter and a similar length are compared.
    """
    near = [id_ for id_ in ids if id_[:1].lower() == word[:1].lower() and abs(len(id_) - len(word)) <= _NAMES_SHOWN_MAX]
    suggestion = closest_word(word, sorted(near)[:_SIMILAR_COMPARED_MAX])
    return None if suggestion is None else f"did you mean {suggestion!r}?"


def check_cycles(edges: Iterable[WorkEdge], problems: DefinitionProblems) -> None:
    """Report dependency cycles: for each strongly connected component, a shortest cycle."""
    graph: dict[CommandId, list[CommandId]] = {}
    for edge in edges:
        graph.setdefault(edge.task, []).append(edge.on)
        graph.setdefault(edge.on, [])
    for component in strong_components(graph):
        if len(component) == 1 and component[0] not in graph[component[0]]:
            continue
        cycle = _shortest_cycle(graph, frozenset(component))
        if len(cycle) == 1:
            # `needs` is written in the table of the group, so the message names the group instead of the member.
            problems.add(f"the task {cycle[0].partition('/')[0]!r} depends on itself")
            continue
        displayed_cycle = [
            *cycle[:_NAMES_SHOWN_MAX],
            *([f"… ({len(cycle):,} in total)"] if len(cycle) > _NAMES_SHOWN_MAX else []),
        ]
        problems.add(f"tasks depend on one another in a cycle: {' → '.join((*displayed_cycle, cycle[0]))}")


def _shortest_cycle(graph: Mapping[CommandId, Sequence[CommandId]], within: frozenset[CommandId]) -> list[CommandId]:
    """Return a shortest cycle in a component. It starts at its task that comes first in the files.

    The search is breadth first from each task. After `_CYCLE_SEARCH_STEPS_MAX` edges, the best cycle found so far is
    returned.
    """
    best: list[CommandId] = []
    steps = 0
    for start in graph:
        if start not in within:
            continue
        before: dict[CommandId, CommandId] = {}
        pending = deque([(start, 1)])
        while pending:
            node, length = pending.popleft()
            if best and length >= len(best):
                break
            steps += len(graph[node])
            if start in graph[node]:
                best = _path_between(before, start, node)
                break
            for other in graph[node]:
                if other in within and other not in before:
                    before[other] = node
                    pending.append((other, length + 1))
        if len(best) == 1 or (best and steps > _CYCLE_SEARCH_STEPS_MAX):
            break
    return best


def _path_between(before: Mapping[CommandId, CommandId], start: CommandId, end: CommandId) -> list[CommandId]:
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
