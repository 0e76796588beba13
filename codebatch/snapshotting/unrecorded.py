"""Entries of a tree that a change set cannot record (SPEC.md "Trees").

Everything in a tree is either among its recorded files and links, or reported here with the reason. Two things are
neither: `.git` at the top, because only files count, and empty directories, which git does not record either.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping

from codebatch.errors import SourceUnreadable
from codebatch.git.checkout import is_submodule_clean
from codebatch.git.repository import GitError, find_git
from codebatch.model.change import UnrecordedPath
from codebatch.model.nearest_directories import directories_above
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.listing import ListedTree
from codebatch.snapshotting.stat_cache import MODE_WALK
from codebatch.snapshotting.walk import GitIgnore, is_git_directory, list_directory


def find_unrecorded(
    root: bytes,
    directories: DirectoryDescriptors,
    tree: ListedTree,
    recorded: Collection[bytes],
    submodules: Mapping[bytes, str],
    links: Collection[bytes],
) -> list[UnrecordedPath]:
    """Return the entries of a tree that are not recorded, sorted by path. A directory stands for all that it contains.

    - `tree`: all that was listed. Other files are ignored.
    - `recorded`: the paths of the recorded files and links.
    - `submodules`: the commits of the submodules that were in the tree when its command began, by path.
    - `links`: links to directories of the user, which are left out.

    Raises SourceUnreadable.
    """
    changed = [path for path, commit in submodules.items() if not _is_unchanged(root, tree, path, commit)]
    others = {directory for directory, _, _ in tree.listings if directory} | tree.worktrees
    inventory = _Inventory(root, directories, tree, recorded, {*others, *submodules}, links)
    found = [
        *(UnrecordedPath(path=path, reason="submodule") for path in changed),
        *(UnrecordedPath(path=path, reason="repository") for path in others - submodules.keys()),
        *inventory.iter_unrecorded(),
    ]
    return sorted(found)


def _is_unchanged(root: bytes, tree: ListedTree, path: bytes, commit: str) -> bool:
    """Return whether a submodule is as it was, or was checked out and has no changes."""
    git = find_git()
    place = os.path.join(root, path)
    if git is None or not os.path.isdir(place) or os.path.islink(place):
        return False
    prefix = path + b"/"
    try:
        return is_submodule_clean(
            git, root, path, commit, [listed.removeprefix(prefix) for listed in tree.stats if listed.startswith(prefix)]
        )
    except GitError:
        return False


class _Inventory:
    """A walk through all directories that have recorded files, and through those that have no files at all."""

    def __init__(
        self,
        root: bytes,
        directories: DirectoryDescriptors,
        tree: ListedTree,
        recorded: Collection[bytes],
        repositories: Collection[bytes],
        links: Collection[bytes],
    ) -> None:
        self._root = root
        self._directories = directories
        self._special = tree.special
        # A walk finds all special files. git lists none, so they are known only in directories with other files.
        self._knows_special = all(mode == MODE_WALK for _, mode, _ in tree.listings)
        self._recorded = recorded
        self._skipped = {*repositories, *links}
        self._parents = directories_above((*recorded, *repositories))

    def iter_unrecorded(self) -> Iterator[UnrecordedPath]:
        """Yield what is neither recorded nor in another repository."""
        pending = [b""]
        while pending:
            for path, kind in self._entries(pending.pop()):
                if path in self._recorded or path in self._skipped or path == b".git":
                    continue
                if kind == "directory" and path in self._parents:
                    pending.append(path)
                elif is_git_directory(os.path.basename(path)):
                    yield UnrecordedPath(path=path, reason="reserved")
                elif kind == "directory":
                    yield from self._unlisted(path)
                else:
                    yield UnrecordedPath(path=path, reason="special" if path in self._special else "ignored")

    def _unlisted(self, top: bytes) -> Iterator[UnrecordedPath]:
        """Yield what is in a directory without recorded files: it is ignored, or has only special files, or nothing."""
        special = []
        pending = [top]
        while pending:
            try:
                entries = self._entries(pending.pop())
            except SourceUnreadable:  # If git or the walk had tried to read it, they would have reported this.
                entries = [(top, "file")]
            for path, kind in entries:
                if is_git_directory(name := os.path.basename(path)) and name != b".git":
                    yield UnrecordedPath(path=path, reason="reserved")
                elif kind == "directory":
                    pending.append(path)
                elif kind == "special":
                    special.append(path)
                else:
                    yield UnrecordedPath(path=top, reason="ignored")
                    return
        if special:
            with GitIgnore(self._root, self._root) as ignore:
                for path in special:
                    is_special = path in self._special or (
                        not self._knows_special
                        and ignore.rule_for(os.path.join(self._root, path), is_directory=False) is None
                    )
                    yield UnrecordedPath(path=path, reason="special" if is_special else "ignored")

    def _entries(self, directory: bytes) -> list[tuple[bytes, str]]:
        """Return the paths in a directory with their kinds. Raises SourceUnreadable."""
        prefix = directory + b"/" if directory else b""
        return [(prefix + name, kind) for name, kind in list_directory(self._directories, directory) or ()]
