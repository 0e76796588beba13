"""Changes in the trees of commands: those of needed tasks are written, those of the command are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from codebatch.model.change import ListedChange, TreeChange, UnrecordedPath
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import Entry, display_path
from codebatch.store.reserved_names import find_repositories, has_reserved_name
from codebatch.system.files.writable_tree import TreeFileContent, WritableTree

CONFLICTS_SHOWN_MAX = 20

ContentMerge = Callable[[bytes, bytes, bytes], bytes | None]
"""A function that returns the merge of the present, the earlier and the new content, or None if they conflict."""


class NeededChangesConflict(Exception):
    """The error that the changes of needed tasks conflict. The message names paths and tasks."""


class NeededChangesWriter:
    """A writer that applies the change sets of needed tasks to a tree, one after the other."""

    def __init__(self, tree: WritableTree, read: Callable[[Digest], bytes], merge: ContentMerge) -> None:
        """`read` returns the content of an object."""
        self._tree = tree
        self._read = read
        self._merge = merge
        self._tasks: dict[bytes, list[str]] = {}
        self._conflicts: list[str] = []

    @property
    def paths(self) -> frozenset[bytes]:
        """The paths of all changes that were applied."""
        return frozenset(self._tasks)

    def apply(self, task: str, changes: Iterable[ListedChange]) -> None:
        """Apply the change set of a task. Conflicts are collected for `check`."""
        # Deletions come first: a file may replace a directory, or the other way round.
        for listed in sorted(changes, key=lambda listed: listed.change.after is not None):
            change = listed.change
            if has_reserved_name(change.path):
                self._conflicts.append(
                    f"{display_path(change.path)}, changed by {task}: it belongs to git or codebatch"
                )
                continue
            try:
                is_applied = self._apply_change(change)
            except OSError:  # A directory is in the place of a file, or the other way round.
                is_applied = False
            tasks = self._tasks.setdefault(change.path, [])
            if not is_applied:
                others = f"it was changed by {_join(tasks)} too" if tasks else "it is not as that task found it"
                self._conflicts.append(f"{display_path(change.path)}, changed by {task}: {others}")
            tasks.append(task)

    def check(self) -> None:
        """Raise NeededChangesConflict if a change could not be applied, or if git would trust its directory."""
        for directory in sorted(find_repositories(self._tasks, (), self._tree.exists)):
            name = f"directory {display_path(directory)}" if directory else "the root"
            self._conflicts.append(f"{name} would be a git repository of its own")
        if self._conflicts:
            shown = self._conflicts[:CONFLICTS_SHOWN_MAX]
            more = len(self._conflicts) - len(shown)
            lines = "".join(f"\n  {line}" for line in shown) + (f"\n  and {more:,} more" if more else "")
            raise NeededChangesConflict(f"changes of needed tasks conflict:{lines}")

    def _apply_change(self, change: TreeChange) -> bool:
        """Apply a change. Return whether this was possible."""
        present = self._tree.read(change.path)
        digest = None if present is None else digest_bytes(present.content)
        if change.after is None:
            if digest == change.before:
                self._tree.remove(change.path)
            return digest in (change.before, None)
        content = self._new_content(change, present, digest)
        if content is None:
            return False
        is_executable = change.executable
        if present is not None and change.executable == change.was_executable:
            is_executable = present.is_executable
        file = TreeFileContent(content, change.kind == "link", is_executable and change.kind == "file")
        if file != present:
            self._tree.write(change.path, file)
        return True

    def _new_content(self, change: TreeChange, present: TreeFileContent | None, digest: Digest | None) -> bytes | None:
        """Return the content of a file after a change, or None if the change conflicts with the present file."""
        if change.after is None or digest in (change.before, change.after):
            return None if change.after is None else self._read(change.after)
        if present is None or change.before is None or present.is_link or change.kind == "link":
            return None
        if change.before == change.after:
            return present.content
        return self._merge(present.content, self._read(change.before), self._read(change.after))


def list_changes(
    before: Mapping[bytes, Entry], after: Mapping[bytes, Entry]
) -> tuple[list[TreeChange], list[UnrecordedPath]]:
    """Return the changes between two states of a tree, and the paths whose changes cannot be recorded.

    Both are sorted by path.
    """
    changes: list[TreeChange] = []
    unrecorded: list[UnrecordedPath] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        last = new or old
        if last is None or old == new:
            continue
        change = TreeChange(
            path=path,
            kind="link" if last.kind == "symlink" else "file",
            before=None if old is None else old.object,
            after=None if new is None else new.object,
            was_executable=old is not None and old.executable,
            executable=new is not None and new.executable,
        )
        if old is not None and new is not None and old.kind != new.kind and change.before == change.after:
            unrecorded.append(UnrecordedPath(path=path, reason="type"))
        elif change.before != change.after or change.was_executable != change.executable:
            changes.append(change)
    return changes, unrecorded


def _join(tasks: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(tasks))
