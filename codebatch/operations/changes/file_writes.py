"""The writes that changes consist of: which content each file has before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codebatch.errors import InvalidInput
from codebatch.model.change import ProposedChange, TreeChange
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text

_CONFLICTS_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    """The replacement of the content of one file.

    - `before`, `after`: the digests of its content. None: the file does not exist then.
    - `executable`: whether the file is executable afterwards. None: its permissions stay as they are.
    - `is_link`: the file is a symbolic link.
    """

    path: bytes
    task: str
    before: Digest | None
    after: Digest | None
    executable: bool | None = None
    is_link: bool = False


def plan_writes(proposed: Iterable[ProposedChange], *, is_reversed: bool = False) -> list[FileWrite]:
    """Return the writes of changes, sorted by path. If `is_reversed` is set, they undo the changes."""
    writes = [plan_write(change.change, change.task, is_reversed=is_reversed) for change in proposed]
    return sorted(writes, key=lambda write: (write.path, write.task))


def plan_write(change: TreeChange, task: str, *, is_reversed: bool = False) -> FileWrite:
    """Return the write of a change, or the one that undoes it."""
    before, after = (change.after, change.before) if is_reversed else (change.before, change.after)
    is_executable = change.was_executable if is_reversed else change.executable
    # The mode of a file that exists before and after is only set if it is a part of the change.
    keeps_mode = before is not None and change.executable == change.was_executable
    return FileWrite(
        path=change.path,
        task=task,
        before=before,
        after=after,
        executable=None if after is None or keeps_mode else is_executable,
        is_link=change.kind == "link",
    )


def order_writes(writes: Iterable[FileWrite]) -> list[FileWrite]:
    """Return writes in the order in which they are made: deletions first, sorted by path.

    So a file can take the place of a directory, or a directory that of a file.
    """
    return sorted(writes, key=lambda write: (write.after is not None, write.path, write.task))


def refuse_conflicts(proposed: Sequence[ProposedChange]) -> None:
    """Raise InvalidInput if two tasks change the same file. The message names the tasks and files."""
    tasks_by_path: dict[bytes, set[str]] = {}
    for change in proposed:
        tasks_by_path.setdefault(change.change.path, set()).add(change.task)
    conflicts = {path: sorted(tasks) for path, tasks in sorted(tasks_by_path.items()) if len(tasks) > 1}
    if not conflicts:
        return
    shown = [
        f"{display_path(path)} ({', '.join(tasks)})" for path, tasks in list(conflicts.items())[:_CONFLICTS_SHOWN_MAX]
    ]
    more = f" and {len(conflicts) - len(shown):,} more" if len(conflicts) > len(shown) else ""
    raise InvalidInput(
        f"several tasks change {count_text(len(conflicts), 'file')}: {'; '.join(shown)}{more}",
        hint="name one of the tasks, apply and commit its changes, then run the other task again",
    )
