"""The project that a command acts on, and the location of its store (SPEC.md "Projects")."""

from __future__ import annotations

import os
from pathlib import Path

from codebatch.git.worktrees import linked_common_directory, main_work_tree, unconfirmed_link
from codebatch.model.entry import display_path
from codebatch.model.project import ProjectRoot
from codebatch.snapshotting.projects import (
    is_ignored,
    is_shared_place,
    iter_project_directories,
    shared_place_reason,
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
        if looks_like_store(store_place_in(parent)) and not is_shared_place(parent):
            return ProjectRoot(parent, directory, "store")
    return ProjectRoot(directory, directory, "unmarked", last=parent)


def find_store(project: ProjectRoot) -> Path | None:
    """Return the project's store, or None. The store may be damaged.

    The nearest store below the top of the project is used. If there is none, a linked work tree uses the store that all
    work trees of its repository share, if it belongs to the user. Otherwise, the store at the top is used.
    """
    directories = [directory for directory in iter_project_directories(project.start) if project.holds(directory)]
    stores = [store_place_in(directory) for directory in directories if not is_shared_place(directory)]
    shared = shared_store_place(project)
    if shared is not None and not is_shared_place(os.fsencode(shared.parent)) and _belongs_to_user(shared):
        stores.insert(len(stores) - (stores[-1:] == [store_place_in(project.root)]), shared)
    return next(filter(looks_like_store, stores), None)


def find_unused_store(project: ProjectRoot) -> Path | None:
    """Return the store at the top of a linked work tree that uses the shared store instead, or None."""
    own = store_place_in(project.root)
    return own if looks_like_store(own) and find_store(project) == shared_store_place(project) else None


def shared_store_place(project: ProjectRoot) -> Path | None:
    """Return the place of the store that a linked work tree shares with all work trees of its repository.

    It is in the main work tree, or in the git directory if the repository has none or does not name it. Return None if
    the project is not a linked work tree.
    """
    directory = main_work_tree(project.root) or linked_common_directory(project.root)
    return None if directory is None else store_place_in(directory)


def new_store_place(project: ProjectRoot) -> tuple[Path, str]:
    """Return the location for a new store of the project, and a note about it, which may be empty.

    A linked work tree shares a store, unless the user may not write there or another user owns the place.
    """
    own, shared = store_place_in(project.root), shared_store_place(project)
    if shared is not None:
        problem = _sharing_problem(project.root, shared)
        note = f"this work tree gets a store of its own, because the shared place {shared} {problem}" if problem else ""
        return own if problem else shared, note
    if (common := unconfirmed_link(project.root)) is not None:
        is_bare = os.path.basename(common) != b".git"
        place = display_path(common if is_bare else os.path.dirname(common))
        problem = "git lists this work tree at another path" if os.path.isdir(common) else f"{place} does not exist"
        return own, (
            f"this work tree does not share the store of {place}, because {problem}; "
            "if one of them was moved, run there: git worktree repair"
        )
    return own, ""


def _sharing_problem(top: bytes, shared: Path) -> str:
    """Return why the work tree at `top` gets a store of its own instead of a new shared store, or an empty string."""
    if (reason := shared_place_reason(os.fsencode(shared.parent))) is not None:
        return f"is not used without --store: {reason}"
    try:
        users = {os.geteuid(), os.stat(top).st_uid}
        if os.path.lexists(shared) or os.stat(shared.parent).st_uid not in users:
            return "belongs to another user"
    except OSError as error:
        return f"cannot be examined: {error.strerror}"
    return "" if os.access(shared.parent, os.W_OK) else "cannot be written"


def _belongs_to_user(path: Path) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False


def store_place_in(directory: bytes) -> Path:
    """Return the place of a store in a directory. In a bare git directory, its name is not hidden."""
    is_git_directory = os.path.isfile(os.path.join(directory, b"HEAD")) and all(
        os.path.isdir(os.path.join(directory, name)) for name in (b"objects", b"refs")
    )
    name = layout.BARE_STORE_DIRECTORY if is_git_directory else layout.STORE_DIRECTORY
    return Path(os.fsdecode(directory), name)


def find_store_above(project: ProjectRoot) -> Path | None:
    """Return the nearest store in a directory above the project, or None.

    Commands use such a store only if the user names it.
    """
    parents = Path(os.fsdecode(project.root)).parents
    return next(filter(looks_like_store, (parent / layout.STORE_DIRECTORY for parent in parents)), None)
