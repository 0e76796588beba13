"""Symbolic links that lead out of the tree of an isolated command (SPEC.md "Trees").

Through such a link, a command could change files of the user. So a link must not lead to the project, to a directory
above it, or to the tree of another command. Directories are compared by device and inode, so another path to the same
directory, such as a bind mount, is recognised.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codebatch.git.worktrees import common_directory, main_work_tree
from codebatch.model.entry import display_path
from codebatch.store.work.trees import is_tree_name

_LINKS_NAMED_MAX = 5


class LeadingLink(NamedTuple):
    """A link, by its path, and the path that it leads to."""

    path: bytes
    place: bytes

    def __str__(self) -> str:
        return f"{display_path(self.path)} -> {display_path(self.place)}"


class ProjectDirectories:
    """The directories of the user's project, to which no link of a tree may lead."""

    def __init__(self, project: bytes, *others: bytes) -> None:
        """`project` is the absolute path of a directory: the top of a git work tree, or a directory without git.

        If it is a work tree, its git directory and the main work tree of the repository are directories too.
        """
        directories = [project, *others, *filter(None, (common_directory(project), main_work_tree(project)))]
        above = [list(_iter_identities(os.path.realpath(directory))) for directory in directories]
        self._directories = {identities[0] for identities in above if identities}
        self._above = {identity for identities in above for identity in identities[1:]}

    def has(self, place: bytes) -> bool:
        """Return whether a path is in one of the directories or above one. `place` has no links; it may not exist."""
        if not self._directories.isdisjoint(_iter_identities(place)):
            return True
        return os.path.lexists(place) and next(_iter_identities(place), None) in self._above

    def find_leading_links(self, tree: bytes, paths: Iterable[bytes]) -> list[LeadingLink]:
        """Return those links of a tree that lead to a directory of the project, or to another tree.

        `paths` are the paths of the links. The tree is in the directory of a batch, which is in that of a store.
        """
        inside = os.path.join(os.path.realpath(tree), b"")
        trees = os.path.join(os.path.dirname(os.path.dirname(inside[:-1])), b"")
        leading = []
        for path in paths:
            place = os.path.realpath(os.path.join(tree, path))
            if not _is_below(place, inside) and (_leads_to_tree(place, trees) or self.has(place)):
                leading.append(LeadingLink(path, place))
        return leading


def leading_links_text(links: list[LeadingLink]) -> str:
    """Return the first links as text, followed by the number of further links."""
    more = f" and {len(links) - _LINKS_NAMED_MAX:,} more" if len(links) > _LINKS_NAMED_MAX else ""
    return ", ".join(map(str, links[:_LINKS_NAMED_MAX])) + more


def _is_below(place: bytes, directory: bytes) -> bool:
    """Return whether a path is a directory, whose path ends with `/`, or below it."""
    return os.path.join(place, b"").startswith(directory)


def _leads_to_tree(place: bytes, trees: bytes) -> bool:
    """Return whether a path leads to a tree, which may be made later, or to something else that is beside trees."""
    if not _is_below(place, trees):
        return False
    _batch, _, below = place[len(trees) :].partition(b"/")
    return os.path.lexists(place) or is_tree_name(os.fsdecode(below.partition(b"/")[0]))


def _iter_identities(path: bytes) -> Iterator[tuple[int, int]]:
    """Yield the device and inode of a path, then of each directory above it. What does not exist is skipped."""
    while True:
        try:
            status = os.stat(path)
        except OSError:
            pass
        else:
            yield status.st_dev, status.st_ino
        above = os.path.dirname(path)
        if above == path:
            return
        path = above
