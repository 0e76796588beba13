"""The project that a command acts on, and the location of its store (SPEC.md "Projects")."""

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
from codebatch.store.batches.store_directory import looks_like_store


def find_project(start: Path | bytes) -> ProjectRoot:
    """Return the project of a directory, or of the directory that contains a file.

    The project is the git work tree around the directory. Without one, it is the nearest directory with settings or a
    store, otherwise the directory itself.

    If git ignores the directory, the nearest settings or store inside the work tree take precedence. If the work tree
    cannot hold a store, as with dotfiles in the home directory, the directory itself takes precedence.
    """
    directory = os.path.realpath(os.fsencode(start))
    if not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    top = work_tree_around(directory)
    if top is not None and not is_ignored(directory, top):
        return ProjectRoot(top, directory, "git")
    # Imported only here: in a git work tree, the usual case, settings do not determine the project.
    from codebatch.operations.project.configuration import has_settings

    parent = directory
    for parent in iter_project_directories(directory):
        if parent == top:
            return ProjectRoot(top, directory, "ignored")
        path = Path(os.fsdecode(parent))
        if has_settings(path):
            return ProjectRoot(parent, directory, "settings")
        if looks_like_store(path / layout.STORE_DIRECTORY) and not is_shared_place(parent):
            return ProjectRoot(parent, directory, "store")
    return ProjectRoot(directory, directory, "unmarked", last=parent)


def find_store(project: ProjectRoot) -> Path | None:
    """Return the project's store, or None. The store may be damaged.

    The nearest store is used, from the current directory up to the project root. If there is none, the store of the
    main work tree is used.
    """
    places = [directory for directory in iter_project_directories(project.start) if project.holds(directory)]
    if (main := main_work_tree(project.root)) is not None:
        places.append(main)
    stores = (
        Path(os.fsdecode(directory), layout.STORE_DIRECTORY) for directory in places if not is_shared_place(directory)
    )
    return next(filter(looks_like_store, stores), None)


def new_store_place(project: ProjectRoot) -> Path:
    """Return the location for a new store of the project. A linked work tree shares the store of its main work tree."""
    return Path(os.fsdecode(main_work_tree(project.root) or project.root), layout.STORE_DIRECTORY)


def find_store_above(project: ProjectRoot) -> Path | None:
    """Return the nearest store in a directory above the project, or None.

    Commands use such a store only if the user names it.
    """
    parents = Path(os.fsdecode(project.root)).parents
    return next(filter(looks_like_store, (parent / layout.STORE_DIRECTORY for parent in parents)), None)
