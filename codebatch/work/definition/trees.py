"""The settings `[trees]` of a task list, for tasks that work in trees of their own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import UNSET, UnsetType

from codebatch.model.entry import display_path, is_safe_path
from codebatch.model.work.command import Command
from codebatch.model.work.trees import TreeSettings
from codebatch.snapshotting.walk import work_tree_around
from codebatch.store.reserved_names import has_reserved_name
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.settings import BatchSettings
from codebatch.work.definition.table_checks import TableLocation
from codebatch.work.definition.tables import TreesTable
from codebatch.work.definition.work_files import WorkFile

CACHE_DIRECTORY = Path("codebatch", "trees")
"""The default directory of trees, below the directory of caches of the user."""


def make_tree_settings(
    settings: BatchSettings,
    file: WorkFile,
    cwd: Path,
    commands: Iterable[Command | None],
    environ: Mapping[str, str],
    problems: DefinitionProblems,
) -> TreeSettings | UnsetType:
    """Return the settings of the trees, or UNSET if no command is isolated.

    `file` is the file whose settings apply. A relative directory is below the directory of the file, or below `cwd` if
    the file has no settings. A command is None if its task is invalid. The result has neither a commit nor a
    snapshot: they are added when the batch is made. Errors are added to the problems.
    """
    table = TreesTable() if settings.trees is UNSET else settings.trees
    place = file.table_location("trees", table=file.settings.get("trees"))
    links = _valid_links(table.link, place, problems)
    if all(command is None or command.isolation is UNSET for command in commands):
        if settings.trees is not UNSET:
            settings.notes.append("`[trees]` has no effect: no task sets `isolation`")
        return UNSET
    given = table.directory
    home = file.path.parent if file.document is not None else cwd
    directory = Path(os.path.realpath(home / os.path.expanduser(given))) if given else _default_directory(environ)
    project = work_tree_around(os.fsencode(settings.root)) or os.fsencode(settings.root)
    if directory.is_relative_to(os.fsdecode(project)):
        is_given = f"sets `directory` to {str(directory)!r}" if given else f"uses the default directory {directory}"
        problems.add(
            f"{place} {is_given}, which is inside the project {display_path(project)}",
            'set `directory` to a directory outside of the project, for example directory = "~/trees"',
        )
    return TreeSettings(directory=os.fsencode(directory), links=links, keep=table.keep)


def _default_directory(environ: Mapping[str, str]) -> Path:
    """Return the default directory of trees. A relative `XDG_CACHE_HOME` is ignored, as its specification demands."""
    caches = environ.get("XDG_CACHE_HOME", "")
    base = Path(caches) if os.path.isabs(caches) else Path(environ.get("HOME") or Path.home(), ".cache")
    return Path(os.path.realpath(base / CACHE_DIRECTORY))


def _valid_links(given: Sequence[str], place: TableLocation, problems: DefinitionProblems) -> tuple[bytes, ...]:
    """Return the paths of links without repetitions. A path that is not below the root, or in another, is reported."""
    links = tuple(dict.fromkeys(os.fsencode(link.rstrip("/")) for link in given))
    for link in links:
        name = display_path(link)
        if not is_safe_path(link) or has_reserved_name(link):
            hint = 'name a directory below `root`, for example link = ["node_modules"]'
            problems.add(f"{place} has {name!r} in `link`, which is not the path of a directory of the project", hint)
        elif any(link.startswith(b"%b/" % other) for other in links):
            problems.add(f"{place} has {name!r} in `link`, which is inside another link", f"remove {name!r}")
    return links
