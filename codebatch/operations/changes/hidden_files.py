"""Files of a git repository that its work tree does not show, which `apply` must not replace.

They are outside of a sparse checkout, or in a submodule that is not checked out: nothing exists at their paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codebatch.git.ancestry import Repository
from codebatch.git.new_commits import find_prefix, read_hidden_entries, read_tree
from codebatch.git.repository import GitError, find_git
from codebatch.operations.changes.file_writes import FileWrite
from codebatch.operations.changes.judgement import PathRefused
from codebatch.operations.changes.planned_tree import PlannedTree
from codebatch.snapshotting.walk import work_tree_around


class HiddenFiles:
    """The files that a work tree may not show: those that its index marks, and those of a commit.

    A commit counts only for files that are created, because a missing file of a commit was usually deleted.
    """

    def __init__(self, indexed: PlannedTree, committed: PlannedTree) -> None:
        self._indexed = indexed
        self._committed = committed

    def check(self, write: FileWrite, nearest: bytes) -> None:
        """Raise PathRefused if a hidden file is at the path of a write, whose file is missing, or in its way.

        `nearest` is the nearest directory above the path that exists, with a slash. The root is empty.
        """
        self._indexed.check_submodules(write.path)
        if write.before is None:
            for tree in (self._indexed, self._committed):
                tree.check_free(write.path, nearest)
        elif self._indexed.find(write.path) is not None:
            raise PathRefused(f"it is in {self._indexed.name}, but not in the work tree")

    def delete(self, path: bytes) -> None:
        """Take a file for deleted."""
        self._indexed.put(path, None)
        self._committed.put(path, None)


def read_hidden_files(
    root: bytes, commit: str, writes: Sequence[FileWrite], note: Callable[[str], None]
) -> HiddenFiles | None:
    """Return the hidden files below a directory, or None if it is in no git repository, or no write depends on them.

    `commit` is the commit of the changes, or empty. `note` prints a warning if git cannot read the files.
    """
    git = find_git()
    if all(write.before and write.after for write in writes) or work_tree_around(root) is None:
        return None
    if git is None:
        note("files that git does not check out are not known: git is not installed")
        return None
    repository = Repository(git, root)
    try:
        prefix = find_prefix(repository)
        indexed = read_hidden_entries(repository)
    except GitError as error:
        note(f"files that git does not check out are not known: {error}")
        return None
    committed = {}
    if commit and any(write.before is None for write in writes):
        try:
            committed = read_tree(repository, commit)
        except GitError as error:
            note(f"new files are not compared with commit {commit[:12]}, which git cannot read: {error}")
    return HiddenFiles(
        PlannedTree(indexed, "the index of git"), PlannedTree(committed, f"commit {commit[:12]}", prefix)
    )
