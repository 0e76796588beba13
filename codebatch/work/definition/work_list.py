"""A task list, ready to be stored as a batch: the selected commands of work files."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import UNSET

from codebatch.errors import NothingToDo
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.limits import NO_LIMITS
from codebatch.model.work.work_batch import DEFAULT_POLICY, InferredEdge, ListOrigin, RejectedEdge, Work, WorkEdge
from codebatch.system.processes.garbage_collector import collector_paused
from codebatch.work.definition.additions import ExtendedBatch
from codebatch.work.definition.commands import DefinedTask, TaskDefiner, missing_program_notes
from codebatch.work.definition.definitions import TaskDefinition, explicit_needs
from codebatch.work.definition.environment import read_env_variables
from codebatch.work.definition.expansion import GroupExpander
from codebatch.work.definition.includes import read_files
from codebatch.work.definition.limits import check_list_limits
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.selection import ListIdentity, PreviousTasksReader, TaskSelection, abbreviated_ids
from codebatch.work.definition.settings import BatchSettings, WorkOptions, merge_batch_settings
from codebatch.work.definition.table_checks import TableChecker
from codebatch.work.definition.task_outputs import connect_outputs
from codebatch.work.definition.trees import make_tree_settings
from codebatch.work.definition.validation import (
    check_cycles,
    check_done_tasks,
    check_task_ids,
    check_task_pools,
    early_member_notes,
    resolve_edges,
)
from codebatch.work.definition.work_files import STANDARD_INPUT_NAME, WorkFile, no_task_hint


@dataclass(frozen=True, slots=True)
class WorkList:
    """The commands of a task list in file order, the other settings of their batch, and remarks for users.

    `warnings` say what was left out, ignored or replaced by a default. `notes` are other remarks.
    `rejected_edges` are the edges that the strategy `auto` rejected. `definitions` has the definitions of all tasks of
    the files, selected or not. `choice` is the selection from these tasks.
    """

    commands: tuple[Command, ...]
    work: Work
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    definitions: Mapping[CommandId, TaskDefinition]
    choice: TaskSelection = field(compare=False)
    rejected_edges: tuple[RejectedEdge, ...] = ()

    @property
    def identity(self) -> ListIdentity:
        """The identity of the task list. It is equal for all batches of the list."""
        return list_identity(self.work)


def list_identity(work: Work) -> ListIdentity:
    """Return the identity of the task list of a batch. It is equal for all batches of the list."""
    return ListIdentity(work.source, work.root, work.origin.files)


def read_work_files(
    paths: Sequence[Path],
    *,
    here: Path,
    overrides: WorkOptions | None = None,
    environ: Mapping[str, str] = os.environ,
    read_previous: PreviousTasksReader = lambda _identity, _definitions: {},
    extended: ExtendedBatch | None = None,
) -> WorkList:
    """Read a task list, or with `extended`, tasks for a batch that exists.

    If no file is named, the default file of `here` is read: the `[work]` of its project, or the nearest work.toml.
    `here` is the absolute directory of the user; paths are relative to it. `read_previous` returns the outcomes of
    tasks in earlier batches. Nothing is written.

    Raises InvalidConfiguration; its subclass InvalidWork has all errors. Raises NothingToDo if there is no file or no
    task, and InvalidInput if a named task does not exist.
    """
    with collector_paused():
        return _read_list(paths, overrides or WorkOptions(), here, environ, read_previous, extended)


def _read_list(
    paths: Sequence[Path],
    options: WorkOptions,
    cwd: Path,
    environ: Mapping[str, str],
    previous: PreviousTasksReader,
    extended: ExtendedBatch | None,
) -> WorkList:
    problems = DefinitionProblems()
    files = read_files(paths, options, cwd, problems, () if extended is None else extended.files)
    variables = read_env_variables(files, environ, problems)
    first_checker = TableChecker(problems, variables, cwd)
    settings, tables = merge_batch_settings(files, options, first_checker, problems, cwd)
    if extended is not None:
        settings = extended.settings(files, settings, problems)
    checker = TableChecker(problems, variables, settings.root)
    expander = GroupExpander(settings.root, problems, settings.warnings)
    definer = TaskDefiner(problems, checker, options, expander, settings)
    tasks = [task for file, table in zip(files, tables, strict=True) for task in definer.iter_tasks(file, table)]
    definer.warn_about_unknown_keys()
    settings.notes.extend(dict.fromkeys([*first_checker.notes, *checker.notes]))
    source = ", ".join(_as_text(_name_below(settings.root, file)) for file in files)
    finished = [task for file in files for task in file.done]
    check_done_tasks(finished, tasks, problems)
    done = {*(task.name for task in finished), *(id_ for file in files for id_ in file.unread)}
    if not tasks:
        problems.raise_any()
        raise _nothing_to_do_error(files, source, done, definer)
    groups, ended = definer.groups, done
    if extended is not None:
        groups, ended = extended.join(tasks, groups, done, problems)
    check_task_ids(tasks, problems)
    check_task_pools(tasks, settings.pools, settings.limits, problems)
    has_costs = [task.policy.has_cost or task.command is None for task in tasks]
    check_list_limits(settings.limits, has_costs, files[0].table_location(), problems)
    edges = resolve_edges(tasks, groups, ended, problems)
    tasks = connect_outputs(tasks, groups, ended, edges, problems)
    check_cycles(edges, problems)
    commands_with_trees = [task.command for task in tasks if extended is None]
    trees = make_tree_settings(settings, files[0], cwd, commands_with_trees, environ, problems)
    problems.raise_any()
    if done:
        settings.notes.append(f"marked as done and not run: {abbreviated_ids(sorted(done))}")
    written = [edge for edge in edges if edge.kind == "needs"]
    definitions = _task_definitions(tasks, edges)
    inferred: list[InferredEdge] = []
    rejected: list[RejectedEdge] = []
    if settings.strategy == "auto" and options.infer:
        from codebatch.work.definition.inferred_edges import add_inferred_edges  # It compiles many patterns.

        edges, inferred, rejected = add_inferred_edges(tasks, edges, definer.groups, settings, options)
    settings.warnings.extend(early_member_notes(tasks, edges))
    origin = _make_origin(files, options, cwd)
    identity = ListIdentity(source, os.fsencode(settings.root), origin.files)
    choice = TaskSelection(tasks, edges, definer.groups, identity, cwd)
    chosen = choice.choose(options, previous(identity, definitions) if options.uses_previous_batches else {})
    settings.notes.extend(chosen.notes)
    settings.warnings.extend(chosen.warnings)
    tasks = [task for task in tasks if task.id in chosen.ids]
    edges = [edge for edge in edges if edge.task in chosen.ids and edge.on in chosen.ids]
    commands, work, notes = _build_work(tasks, edges, settings, source, environ.get("PATH"))
    work = msgspec.structs.replace(
        work,
        trees=trees if any(command.isolation is not UNSET for command in commands) else UNSET,
        inferred=tuple(edge for edge in inferred if edge.task in chosen.ids and edge.on in chosen.ids),
        satisfied_needs=tuple(edge for edge in written if edge.task in chosen.ids and edge.on not in chosen.ids),
        origin=origin,
        left_out=chosen.left_out or UNSET,
    )
    return WorkList(commands, work, tuple(settings.warnings), notes, definitions, choice, tuple(rejected))


def _task_definitions(tasks: Sequence[DefinedTask], edges: Sequence[WorkEdge]) -> dict[CommandId, TaskDefinition]:
    needs = explicit_needs(edges)
    commands = {task.id: task.command for task in tasks if task.command is not None}
    return {id_: TaskDefinition(command, needs.get(id_, frozenset())) for id_, command in commands.items()}


def _make_origin(files: Sequence[WorkFile], options: WorkOptions, cwd: Path) -> ListOrigin:
    """Return the arguments of `read_work_files`, with which the list can be read again."""
    named = [file for file in files if file.included_by is None]
    paths = [
        STANDARD_INPUT_NAME if file.name == STANDARD_INPUT_NAME else os.path.abspath(cwd / file.path) for file in named
    ]
    return ListOrigin(
        directory=os.fsencode(cwd), files=tuple(map(os.fsencode, paths)), options=options.changed_options()
    )


def _nothing_to_do_error(
    files: Sequence[WorkFile], source: str, done: Collection[str], definer: TaskDefiner
) -> NothingToDo:
    if done:
        return NothingToDo(f"all tasks of {source} are marked as done: {abbreviated_ids(sorted(done))}")
    if definer.groups:
        return NothingToDo(f"no tasks in {source}: `each` matches nothing")
    return NothingToDo(f"no tasks in {source}", hint=no_task_hint(files[0].path, files[0].name))


def _build_work(
    tasks: Sequence[DefinedTask], edges: Sequence[WorkEdge], settings: BatchSettings, source: str, path: str | None
) -> tuple[tuple[Command, ...], Work, tuple[str, ...]]:
    notes = list(settings.notes)
    if settings.on_failure == "continue" and any(edge.kind == "needs" for edge in edges):
        notes.append("`on_failure` is 'continue': tasks run even if a dependency failed")
    commands = tuple(task.command for task in tasks if task.command is not None)
    work = Work(
        source=source,
        root=os.fsencode(settings.root),
        order=tuple(command.id for command in commands),
        edges=tuple(edges),
        titles={command.id: command.title for command in commands if command.title},
        policies={task.id: task.policy for task in tasks if task.policy is not DEFAULT_POLICY},
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
        limits=UNSET if settings.limits is NO_LIMITS else settings.limits,
    )
    return commands, work, (*notes, *missing_program_notes(commands, path))


def _name_below(root: Path, file: WorkFile) -> str:
    """Return the path of a file relative to the root. Standard input is `-`."""
    return file.name if file.name == STANDARD_INPUT_NAME else os.path.relpath(os.path.realpath(file.path), root)


def _as_text(name: str) -> str:
    """Return a path as valid UTF-8 text. Bytes that are not UTF-8 are escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
