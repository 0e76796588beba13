"""Explanations of why a path is in a snapshot or not: the deciding rule and the listing mode (`files --why`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codebatch.model.entry import display_path
from codebatch.model.nearest_directories import innermost_directory, parent_directory
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.listing import TreeLister
from codebatch.snapshotting.roots import SourceRoots, resolve_sources, store_below
from codebatch.snapshotting.selection import SelectionRules, SourceRules, path_and_parents
from codebatch.snapshotting.stat_cache import MODE_GIT, is_special
from codebatch.snapshotting.walk import GitIgnore, ignored_by, is_git_directory
from codebatch.snapshotting.worktrees import LinkedWorktrees


class PathExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation for one path.

    `rule` is `file:line:pattern` or a sentence. `mode` is `git`, `walk`, `named` or empty.
    """

    included: bool
    rule: str
    mode: str


def explain_path(
    roots: Sequence[Path], path: Path, rules: SourceRules, *, store_root: Path | None = None
) -> PathExplanation:
    """Return whether a snapshot of the roots would include a path, and the rule that decides this.

    No object is read or written.
    """
    sources = resolve_sources(roots, store_root)
    parent, name = os.path.split(os.path.abspath(os.fsencode(path)))
    target = os.path.join(parent, name)
    relative = _below_roots(sources, target)
    if relative is None:
        return PathExplanation(included=False, rule="it is outside the given paths", mode="")
    with DirectoryDescriptors(sources.base) as directories:
        store = None if store_root is None else store_below(sources.base, store_root)
        selection = SelectionRules(rules, directories, store)
        with TreeLister(sources, directories, selection) as lister:
            tree = lister.list_all()
            mode = "named" if relative in sources.files else _containing_listing(tree.listings, relative)[1]
            status = tree.stats.get(relative)
        if status is not None and not is_special(status.mode) and status.mode:
            return PathExplanation(included=True, rule=_INCLUDED_REASONS[mode], mode=mode)
        rule = _exclusion_reason(selection, directories, _IgnoreRules(sources, tree.listings), relative)
        return PathExplanation(included=False, rule=rule, mode=mode)


_INCLUDED_REASONS = {
    MODE_GIT: "tracked by git, or untracked and not ignored",
    "walk": "no rule excludes it",
    "named": "it was given explicitly",
}


_DIRECTORY_REASON = "it is a directory; only files are included"


def _exclusion_reason(
    rules: SelectionRules, directories: DirectoryDescriptors, ignored: _IgnoreRules, path: bytes
) -> str:
    """Return the first reason why a path is excluded, or an empty string.

    Its parents are tested from the outermost one inwards.
    """
    if not path:
        return _DIRECTORY_REASON
    if any(map(is_git_directory, path.split(b"/"))):
        return "it is in .git, which is always excluded"
    verdict = rules.exclusion_reason(path)
    if verdict is not None:
        return verdict.rule
    for part in path_and_parents(path):
        directory, _, name = part.rpartition(b"/")
        try:
            mode = os.stat(name, dir_fd=directories.open_directory(directory), follow_symlinks=False).st_mode
        except OSError as error:
            return f"it does not exist: {error.strerror}"
        if part != path and stat.S_ISLNK(mode):
            return f"{os.fsdecode(part)} is a symbolic link, and links are not followed"
        if part == path and is_special(mode):
            return "it is a fifo, socket or device"
        is_directory = stat.S_ISDIR(mode)
        if is_directory and part not in ignored.listed and ignored.worktrees.has(part):
            return f"{display_path(part)} is a linked work tree of this repository"
        rule = ignored.rule_for(part, is_directory=is_directory)
        if rule is not None:
            return rule
        if part == path and is_directory:
            return _DIRECTORY_REASON
    return "it is not in the list of files"


class _IgnoreRules:
    """The .gitignore rules of the tree. Each listing has the rules that apply to its paths."""

    def __init__(self, sources: SourceRoots, listings: list[tuple[bytes, str, bytes]]) -> None:
        self._base = sources.base
        self._listings = listings
        self.worktrees = LinkedWorktrees(sources.base)
        self.listed = {directory for directory, _, _ in listings}

    def rule_for(self, path: bytes, *, is_directory: bool) -> str | None:
        """Return the pattern that ignores a path below the base, or None. Raises SourceUnreadable.

        The caller has tested that no parent of the path is ignored.
        """
        listing, mode = _containing_listing(self._listings, parent_directory(path))
        target = os.path.join(self._base, path)
        if mode == MODE_GIT:
            return ignored_by(target, self._base, is_directory=is_directory)
        with GitIgnore(os.path.join(self._base, listing).rstrip(b"/") or b"/", self._base) as ignore:
            return ignore.rule_for(target, is_directory=is_directory)


def _below_roots(sources: SourceRoots, target: bytes) -> bytes | None:
    """Return a path relative to the base if it is one of the roots or below one. Otherwise return None."""
    real = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
    for candidate in (target, real):
        for root in sources.roots:
            if candidate == root or candidate.startswith(root.rstrip(b"/") + b"/"):
                return os.path.relpath(candidate, sources.base) if candidate != sources.base else b""
    return None


def _containing_listing(listings: list[tuple[bytes, str, bytes]], path: bytes) -> tuple[bytes, str]:
    """Return the innermost listing that contains a path, and its mode. Both are empty if no listing contains it."""
    modes = {directory: mode for directory, mode, _ in listings}
    listing = innermost_directory(modes, path)
    return (b"", "") if listing is None else (listing, modes[listing])
