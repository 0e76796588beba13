"""A work list: what files say is to be run, as far as it was chosen, ready to be made into a batch."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codebatch.errors import InvalidInput, NothingToDo
from codebatch.model.command import Command, CommandId
from codebatch.model.work import NO_POLICY, Work, WorkEdge
from codebatch.work.checking import TableChecker
from codebatch.work.defining import Definer, Task, programs_not_found
from codebatch.work.files import nothing_hint, read_files
from codebatch.work.problems import Problems
from codebatch.work.settings import Settings, WorkOptions, settings_of
from codebatch.work.validating import check_circles, check_ids, check_pools, edges_of, like_id

_NAMES_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True)
class WorkList:
    """Commands in the order of the files, what else a batch of them is, and what people are to be told of them."""

    commands: tuple[Command, ...]
    work: Work
    notes: tuple[str, ...]


def read_work_files(
    paths: Sequence[Path],
    *,
    overrides: WorkOptions | None = None,
    here: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> WorkList:
    """What some files list; where none is named, `[work]` of the project that `here` is in, or its work.toml.

    `here` is the current directory, which paths are relative to. Nothing is written, and nothing but files read. Raises
    InvalidConfiguration: InvalidWork has all that is wrong. NothingToDo where there is no file, or no task in any;
    InvalidInput for a task that is chosen and not there.
    """
    with _without_collections():
        return _read(paths, overrides or WorkOptions(), here or Path.cwd(), environ)


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Of a large file a million objects are made, and stay: a sixth of the time would go into looking for others."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(paths: Sequence[Path], options: WorkOptions, here: Path, environ: Mapping[str, str]) -> WorkList:
    files = read_files(paths, here)
    problems = Problems()
    checker = TableChecker(problems, environ)
    settings, tables = settings_of(files, options, checker, problems)
    definer = Definer(problems, checker, options)
    tasks = [task for file, table in zip(files, tables, strict=True) for task in definer.tasks(file, table)]
    source = ", ".join(_as_text(file.name) for file in files)
    if not tasks:
        problems.raise_any()
        raise NothingToDo(f"there is no task in {source}", hint=nothing_hint())
    check_ids(tasks, problems)
    check_pools(tasks, settings.pools, problems)
    edges = edges_of(tasks, problems)
    check_circles(edges, problems)
    problems.raise_any()
    return _chosen(tasks, edges, settings, source, options, environ.get("PATH"))


def _chosen(
    tasks: Sequence[Task],
    edges: Sequence[WorkEdge],
    settings: Settings,
    source: str,
    options: WorkOptions,
    path: str | None,
) -> WorkList:
    """Those tasks that were asked for, and what they need."""
    notes = list(settings.notes)
    if options.tasks:
        ids = _asked({task.id for task in tasks}, options.tasks, source)
        if options.only:
            met = sorted({edge.on for edge in edges if edge.kind == "needs" and edge.task in ids} - ids)
            notes += [f"taken as met, for only what is named runs: {_names(met)}"] if met else []
        else:
            ids = _with_needs(ids, edges)
        tasks = [task for task in tasks if task.id in ids]
        edges = [edge for edge in edges if edge.task in ids and edge.on in ids]
    if settings.on_failure == "continue" and any(edge.kind == "needs" for edge in edges):
        notes.append("on_failure is 'continue': tasks run even if what they need has failed")
    commands = tuple(task.command for task in tasks if task.command is not None)
    work = Work(
        source=source,
        root=os.fsencode(settings.root),
        order=tuple(command.id for command in commands),
        edges=tuple(edges),
        titles={command.id: command.title for command in commands if command.title},
        policies={task.id: task.policy for task in tasks if task.policy is not NO_POLICY},
        strategy=settings.strategy,
        max_parallel=settings.max_parallel,
        on_failure=settings.on_failure,
        failures_max=settings.failures_max,
        pools=dict(settings.pools),
        on_blocked=settings.on_blocked,
        answering=settings.answering,
    )
    return WorkList(commands, work, (*notes, *programs_not_found(commands, path)))


def _asked(ids: set[CommandId], tasks: Sequence[str], source: str) -> set[CommandId]:
    for task in tasks:
        if task not in ids:
            raise InvalidInput(f"there is no task {task!r} in {source}", hint=like_id(task, ids))
    return {CommandId(task) for task in tasks}


def _with_needs(ids: set[CommandId], edges: Sequence[WorkEdge]) -> set[CommandId]:
    needs: dict[CommandId, list[CommandId]] = {}
    for edge in edges:
        if edge.kind == "needs":
            needs.setdefault(edge.task, []).append(edge.on)
    found = set(ids)
    pending = list(ids)
    while pending:
        new = set(needs.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return found


def _names(ids: Sequence[str]) -> str:
    more = [f"and {len(ids) - _NAMES_SHOWN_MAX:,} more"] if len(ids) > _NAMES_SHOWN_MAX else []
    return ", ".join([*ids[:_NAMES_SHOWN_MAX], *more])


def _as_text(name: str) -> str:
    """A path as JSON can hold it: what is no UTF-8 as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
