"""The files with which the trees of a batch start: links that lead out of the trees, submodules, and links to share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from codebatch.errors import InvalidInput
from codebatch.git.linked_trees import read_commit_tree, read_link_targets
from codebatch.git.repository import GitError, find_git
from codebatch.model.entry import display_path
from codebatch.model.work.trees import TreeSettings
from codebatch.snapshotting.walk import work_tree_around
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.store.work.tree_links import LeadingLink, ProjectDirectories, leading_links_text

_NAMED_MAX = 3


class BaseFiles(NamedTuple):
    """The files with which trees start.

    - `top`: the directory of the user that they come from.
    - `paths`: their paths. `targets`: the targets of the links, by path. `submodules`: the paths of empty submodules.
    """

    top: bytes
    paths: Sequence[bytes]
    targets: Mapping[bytes, bytes]
    submodules: Sequence[bytes] = ()


def read_commit_files(trees: TreeSettings, root: bytes) -> BaseFiles:
    """Return the files of a batch's commit. If git cannot list them, return none: `root` is then their only directory.

    The worker that makes a tree checks its links again.
    """
    git = find_git()
    try:
        if git is None:
            raise GitError("git is not installed")
        tree = read_commit_tree(git, trees.repository, trees.base)
        targets = read_link_targets(git, trees.repository, tree.links) if tree.links else {}
    except GitError:
        return BaseFiles(root, (), {})
    return BaseFiles(trees.repository, tree.paths, targets, sorted(tree.submodules))


def read_snapshot_files(store: StoreDir, trees: TreeSettings, root: bytes) -> BaseFiles:
    """Return the files of a batch's snapshot. It has the files of submodules. Raises StoreError."""
    snapshot = load_snapshot(store.files, store.root, trees.snapshot)
    objects = store.objects()
    entries = snapshot.entries
    targets = {entry.path: objects.read(entry.object) for entry in entries if entry.kind == "symlink"}
    return BaseFiles(root, [entry.path for entry in entries], targets)


def check_base_files(files: BaseFiles, trees: TreeSettings, root: bytes) -> list[str]:
    """Return notes: what a task does not find in its tree, and what it shares with the user.

    Raises InvalidInput if a link leads to the project of the user, unless `links` has its path.
    """
    notes: list[str] = []
    if outside := _find_outside_links(files, trees, root):
        leads = "link leads" if len(outside) == 1 else "links lead"
        where = f"out of the trees, so changes there are not isolated: {leading_links_text(outside)}"
        notes.append(f"{len(outside):,} {leads} {where}")
    if files.submodules:
        are = "submodule is" if len(files.submodules) == 1 else "submodules are"
        notes.append(f"{len(files.submodules):,} {are} empty in the trees: {_names_text(files.submodules)}")
    prefix = b"" if root == files.top else os.path.relpath(root, files.top) + b"/"
    missing = [link for link in trees.links if not os.path.lexists(os.path.join(root, link))]
    if missing:
        notes.append(f"`link` of [trees] has no effect for {_names_text(missing)}: not found in {display_path(root)}")
    places = [prefix + link for link in trees.links]
    kept = [place for place in places if any(path.startswith(place + b"/") for path in files.paths)]
    if kept:
        notes.append(
            f"`link` of [trees] has no effect for {_names_text(kept)}: the trees have files of their own there"
        )
    return notes


def _find_outside_links(files: BaseFiles, trees: TreeSettings, root: bytes) -> list[LeadingLink]:
    """Return the links that lead out of the trees, to something that a task can change."""
    project = work_tree_around(root) or root
    directories = ProjectDirectories(project, root)
    shared = {os.path.relpath(os.path.join(root, link), files.top) for link in trees.links}
    leading: list[LeadingLink] = []
    outside: list[LeadingLink] = []
    for path, target in files.targets.items():
        if path in shared:
            continue
        if os.path.isabs(target):
            link = LeadingLink(path, os.path.realpath(target))
            if directories.has(link.place):
                leading.append(link)
            elif _is_changeable(link.place):
                outside.append(link)
        elif _leaves_top(path, target):
            outside.append(LeadingLink(path, target))
    if leading:
        raise InvalidInput(
            f"through links of {display_path(files.top)}, isolated tasks would change your own files: "
            f"{leading_links_text(leading)}",
            hint="make the links relative, so that they stay in the trees; or name them in `link` of [trees]",
        )
    return outside


def _is_changeable(place: bytes) -> bool:
    return (os.path.isfile(place) or os.path.isdir(place)) and os.access(place, os.W_OK)


def _leaves_top(path: bytes, target: bytes) -> bool:
    """Return whether a relative target leads out of the directory at the top, if other links are not followed."""
    place = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return place == b".." or place.startswith(b"../")


def _names_text(paths: Sequence[bytes]) -> str:
    more = f" and {len(paths) - _NAMED_MAX:,} more" if len(paths) > _NAMED_MAX else ""
    return ", ".join(map(display_path, paths[:_NAMED_MAX])) + more
