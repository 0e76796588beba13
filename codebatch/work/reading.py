"""A work list: what files say is to be run, as far as it was chosen, ready to be made into a batch."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from codebatch.errors import NothingToDo
from codebatch.model.command import Command
from codebatch.model.work import NO_POLICY, InferredEdge, LeftOut, Work, WorkEdge
from codebatch.system.collector import collector_paused
from codebatch.work.checking import TableChecker
from codebatch.work.choosing import Choice, Former, names_shown
from codebatch.work.defining import Definer, Task, programs_not_found
from codebatch.work.expanding import Expander
from codebatch.work.files import WorkFile, no_task_hint
from codebatch.work.including import read_files
from codebatch.work.problems import Problems
from codebatch.work.settings import Settings, WorkOptions, settings_of
from codebatch.work.validating import check_circles, check_done, check_ids, check_pools, edges_of


@dataclass(frozen=True, slots=True)
class WorkList:
    """Commands in the order of the files, what else a batch of them is, and what people are to be told of them.

    `left_out` was inferred under `auto`, and is no edge.
    """

    commands: tuple[Command, ...]
    work: Work
    notes: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


def read_work_files(
    paths: Sequence[Path],
    *,
    overrides: WorkOptions | None = None,
    here: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    former: Former = lambda _source, _root: {},
) -> WorkList:
    """What some files list; where none is named, `[work]` of the project that `here` is in, or its work.toml.

    `here` is the current directory, which paths are relative to. Nothing is written, and nothing but files read. Raises
    InvalidConfiguration: InvalidWork has all that is wrong. NothingToDo where there is no file, or no task in any;
    InvalidInput for a task that is chosen and not there. `former` says where tasks stood before.
    """
    with collector_paused():
        return _read(paths, overrides or WorkOptions(), here or Path.cwd(), environ, former)


def _read(
    paths: Sequence[Path], options: WorkOptions, here: Path, environ: Mapping[str, str], former: Former
) -> WorkList:
    problems = Problems()
    files = read_files(
        paths, options.tasks, here, problems, is_each_line=options.each_line, is_recursive=options.is_recursive
    )
    checker = TableChecker(problems, environ)
    settings, tables = settings_of(files, options, checker, problems, here)
    definer = Definer(problems, checker, options, Expander(settings.root, problems, settings.notes), settings.notes)
    tasks = [task for file, table in zip(files, tables, strict=True) for task in definer.tasks(file, table)]
    definer.tell_unknown()
    source = ", ".join(_as_text(file.name) for file in files)
    finished = [task for file in files for task in file.done]
    check_done(finished, tasks, problems)
    done = {*(task.name for task in finished), *(id_ for file in files for id_ in file.unread)}
    if not tasks:
        problems.raise_any()
        raise _nothing(files, source, done, definer)
    check_ids(tasks, problems)
    check_pools(tasks, settings.pools, problems)
    edges = edges_of(tasks, definer.groups, done, problems)
    check_circles(edges, problems)
    problems.raise_any()
    if done:
        settings.notes.append(f"done by hand, and not run: {names_shown(sorted(done))}")
    inferred: list[InferredEdge] = []
    left_out: list[LeftOut] = []
    if settings.strategy == "auto" and options.infer:
        from codebatch.work.inferring import with_inferred  # 60 ms, of patterns

        edges, inferred, left_out = with_inferred(tasks, edges, definer.groups, settings, options)
    before = former(source, os.fsencode(settings.root)) if options.is_of_former else {}
    chosen = Choice(tasks, edges, definer.groups, source, here).choose(options, before)
    settings.notes.extend(chosen.notes)
    tasks = [task for task in tasks if task.id in chosen.ids]
    edges = [edge for edge in edges if edge.task in chosen.ids and edge.on in chosen.ids]
    listed = _listed(tasks, edges, settings, source, environ.get("PATH"))
    taken = tuple(each for each in inferred if each.task in chosen.ids and each.on in chosen.ids)
    work = msgspec.structs.replace(listed.work, inferred=taken)
    return replace(listed, work=work, left_out=tuple(left_out))


def _nothing(files: Sequence[WorkFile], source: str, done: Collection[str], definer: Definer) -> NothingToDo:
    if done:
        return NothingToDo(f"all tasks of {source} are done by hand: {names_shown(sorted(done))}")
    if definer.groups:
        return NothingToDo(f"there is no task in {source}: what its `each` is for is not there")
    return NothingToDo(f"there is no task in {source}", hint=no_task_hint(files[0].path, files[0].name))


def _listed(
    tasks: Sequence[Task], edges: Sequence[WorkEdge], settings: Settings, source: str, path: str | None
) -> WorkList:
    notes = list(settings.notes)
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
        notify=settings.notify,
        on_blocked=settings.on_blocked,
        answering=settings.answering,
        start_every_seconds=settings.start_every_seconds,
        timeout_seconds=settings.timeout_seconds,
        halt=settings.halt,
    )
    return WorkList(commands, work, (*notes, *programs_not_found(commands, path)))


def _as_text(name: str) -> str:
    """A path as JSON can hold it: what is no UTF-8 as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
