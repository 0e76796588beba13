"""The project that a command acts on, and where its store lies (SPEC.md "Projects")."""

from __future__ import annotations

import os
from pathlib import Path

from codebatch.git.worktrees import main_work_tree
from codebatch.model.project import ProjectRoot
from codebatch.snapshotting.projects import (
    is_ignored,
    is_shared_place,
    iter_project_directories,
    work_tree_around,
)
from codebatch.store import layout
from codebatch.store.batches.store import looks_like_store


def find_project(start: Path | bytes) -> ProjectRoot:
    """Return the project of a directory, or of the directory that a file lies in.

    It is the git work tree around it; else the nearest directory with settings or a store; else the directory itself.
    In a directory that git ignores, settings or a store go before the work tree, as does the directory itself if the
    work tree is one that holds no store (dotfiles in the home directory).
    """
    directory = os.path.realpath(os.fsencode(start))
    if not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    top = work_tree_around(directory)
    if top is not None and not is_ignored(directory, top):
        return ProjectRoot(top, directory, "git")
    # In a git work tree, the usual case, settings make no difference.
    from codebatch.operations.project.configuration import has_settings

    each = directory
    for each in iter_project_directories(directory):
        if each == top:
            return ProjectRoot(top, directory, "ignored")
        path = Path(os.fsdecode(each))
        if has_settings(path):
            return ProjectRoot(each, directory, "settings")
        if looks_like_store(path / layout.STORE_DIRECTORY) and not is_shared_place(each):
            return ProjectRoot(each, directory, "store")
    return ProjectRoot(directory, directory, "unmarked", last=each)


def find_store(project: ProjectRoot) -> Path | None:
    """Return the project's store: the nearest one from where the user stands up to the top, else the main work tree's.

    It may be one that cannot be opened. None if there is none.
    """
    places = [each for each in iter_project_directories(project.start) if project.holds(each)]
    if (main := main_work_tree(project.root)) is not None:
        places.append(main)
    stores = (Path(os.fsdecode(each), layout.STORE_DIRECTORY) for each in places if not is_shared_place(each))
    return next(filter(looks_like_store, stores), None)


def new_store_place(project: ProjectRoot) -> Path:
    """Return where the project's store is made. A linked work tree shares that of its main work tree."""
    return Path(os.fsdecode(main_work_tree(project.root) or project.root), layout.STORE_DIRECTORY)


def find_store_above(project: ProjectRoot) -> Path | None:
    """Return the nearest store above the project, which commands use only if it is named."""
    parents = Path(os.fsdecode(project.root)).parents
    return next(filter(looks_like_store, (each / layout.STORE_DIRECTORY for each in parents)), None)
