"""Writing changes to the files of a tree (SPEC.md "Changes").

Everything is checked before anything is written (checks.py). Then each new content is written to a temporary file in
the directory of its file, and all of them are made durable at once. At last each file is checked again, and replaced by
one rename. So each file has its old or its new content at all times, also after a power loss. If `apply` is killed,
the same call completes it: files that already have the new content count as applied, and temporary files are removed.

Files are deleted first. Then the directories that are empty by this are removed. So a file can take the place of a
directory, or a directory that of a file. Missing directories are made with the temporary files. If a file is still in
the place of a directory, the temporary file is in the directory above, and moves at the end.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Sequence, Set
from dataclasses import dataclass

from codebatch.errors import InvalidInput, ObjectMissing, StoreInUse, StoreUnwritable
from codebatch.model.entry import display_path
from codebatch.model.nearest_directories import directories_above
from codebatch.operations.changes.checks import (
    CheckedWrite,
    ContentReader,
    FileOutcome,
    check_writes,
    file_identity,
    missing_content_reason,
)
from codebatch.operations.changes.directories import (
    TreeDirectories,
    has_name,
    new_temporary_name,
)
from codebatch.operations.changes.file_writes import FileWrite, order_writes
from codebatch.operations.changes.hidden_files import HiddenFiles
from codebatch.operations.changes.judgement import PathRefused
from codebatch.system.files.os_errors import fix_hint
from codebatch.system.files.tree_writer import TreeCalls

_PRIVATE_MODE = 0o600
_NO_LINK_ERRORS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_CHANGED_REASON = "it changed while apply was running"
_LEFT_OUT_REASON = "other files were refused"
_DRY_REASON = "nothing is written with --dry-run"


@dataclass(frozen=True, slots=True)
class _StagedWrite:
    """A checked write and the path of the temporary file that has its new content. None: the file is to be deleted."""

    checked: CheckedWrite
    temporary: bytes | None


def apply_writes(
    calls: TreeCalls,
    root: bytes,
    writes: Sequence[FileWrite],
    contents: ContentReader,
    hidden: HiddenFiles | None = None,
    *,
    is_dry: bool = False,
    is_partial: bool = False,
) -> list[FileOutcome]:
    """Write changes to the files of the tree at `root`. Return the outcome of each write, sorted by path.

    `hidden` are the files of the repository that the tree does not show. None: there are none.
    If a file is refused, nothing is written, unless `is_partial` is set. With `is_dry`, nothing is written at all. On
    return, the new contents are on disk. Raises InvalidInput if the root cannot be opened, StoreInUse if another
    `apply` writes to this tree, and StoreUnwritable if the disk refuses a write. Then no file was replaced.
    """
    try:
        root_fd = calls.open_root(root)
    except OSError as error:
        hint = "name the directory of the files with --root DIR"
        raise InvalidInput(f"cannot open {display_path(root)}: {error.strerror}", hint=hint) from error
    try:
        _lock(calls, root, root_fd)
        checked, outcomes = check_writes(calls, root_fd, order_writes(writes), contents, hidden, is_dry=is_dry)
        is_blocked = not is_partial and any(outcome.state == "refused" for outcome in outcomes)
        if is_dry or is_blocked:
            reason = _LEFT_OUT_REASON if is_blocked else _DRY_REASON
            outcomes += [FileOutcome(write=each.write, state="left_out", reason=reason) for each in checked]
        else:
            possible = [
                *(each.write for each in checked),
                *(each.write for each in outcomes if each.state == "applied"),
            ]
            deleted = {write.path for write in possible if write.after is None}
            outcomes += _TreeWriter(calls, root_fd, contents, deleted).write(checked, is_partial=is_partial)
    finally:
        calls.close(root_fd)
    return sorted(outcomes, key=lambda outcome: (outcome.write.path, outcome.write.task))


def _lock(calls: TreeCalls, root: bytes, root_fd: int) -> None:
    try:
        is_locked = calls.try_lock(root_fd)
    except OSError as error:
        raise InvalidInput(
            f"cannot lock {display_path(root)}: {error.strerror}",
            hint="print the changes with `codebatch changes --patch`, and apply them with `git apply`",
        ) from error
    if not is_locked:
        raise StoreInUse(
            f"another `codebatch apply` writes to {display_path(root)}",
            hint="run the same command again when it has ended",
        )


class _TreeWriter:
    """Writes of one call of `apply_writes`: temporary files, and the outcomes of files."""

    def __init__(self, calls: TreeCalls, root: int, contents: ContentReader, deleted: Set[bytes]) -> None:
        """`deleted` are the paths of the files that are deleted now, or were before."""
        self._calls = calls
        self._directories = TreeDirectories(calls, root)
        self._contents = contents
        self._deleted = deleted
        self._staged: list[_StagedWrite] = []
        self._outcomes: list[FileOutcome] = []

    def write(self, checked: Sequence[CheckedWrite], *, is_partial: bool) -> list[FileOutcome]:
        """Do all writes, deletions first, and return their outcomes. Raises StoreUnwritable."""
        emptied = directories_above(self._deleted)
        try:
            for each in checked:
                self._stage(each)
            if self._outcomes and not is_partial:
                self._outcomes += [
                    FileOutcome(write=staged.checked.write, state="left_out", reason=_LEFT_OUT_REASON)
                    for staged in self._staged
                ]
                return self._outcomes
            if self._staged:
                self._calls.sync()
            self._directories.close()
            while self._staged and self._staged[0].temporary is None:
                self._finish(self._staged.pop(0))
            self._directories.remove_empty(emptied)
            while self._staged:
                self._finish(self._staged[0])
                self._staged.pop(0)
            return self._outcomes
        finally:
            self._remove_temporary_files()
            self._directories.remove_empty(self._directories.made)
            self._directories.close()

    def _stage(self, checked: CheckedWrite) -> None:
        """Write the new content of a file to a temporary file. A file that cannot be written is refused."""
        write = checked.write
        if write.after is None:
            self._staged.append(_StagedWrite(checked, None))
            return
        try:
            content = self._contents.read(write.after)
            directory, prefix = self._directories.open_nearest(write.path, self._deleted, make=True)
            temporary = new_temporary_name()
            self._staged.append(_StagedWrite(checked, prefix + temporary))
            self._write_temporary_file(checked, directory, temporary, content)
        except ObjectMissing:
            self._refuse(write, missing_content_reason(write.after))
        except (PathRefused, FileNotFoundError) as error:
            if self._staged and self._staged[-1].checked is checked:
                self._remove_staged(self._staged.pop())
            # Without a reason, another process has removed the directory.
            self._refuse(write, error.reason if isinstance(error, PathRefused) else _CHANGED_REASON)
        except OSError as error:
            raise StoreUnwritable(
                f"cannot write {display_path(write.path)}: {error.strerror}; no file was changed",
                hint=f"{fix_hint(error)}, then run the same command again",
            ) from error

    def _write_temporary_file(self, checked: CheckedWrite, directory: int, temporary: bytes, content: bytes) -> None:
        if checked.write.is_link:
            self._calls.symlink(directory, content, temporary)
            return
        is_new = checked.identity is None
        fd = self._calls.create(directory, temporary, checked.mode if is_new else _PRIVATE_MODE)
        try:
            view = memoryview(content)
            while view:
                view = view[self._calls.write(fd, view) :]
            if not is_new:
                self._copy_status(checked, directory, fd)
        finally:
            self._calls.close(fd)

    def _copy_status(self, checked: CheckedWrite, directory: int, target: int) -> None:
        """Give a temporary file the status of the file that it replaces. Raises PathRefused if the file is gone."""
        name = checked.write.path.rpartition(b"/")[2]
        try:
            source = self._calls.open_file(directory, name)
        except OSError as error:
            raise PathRefused(_CHANGED_REASON) from error
        try:
            self._calls.copy_status(source, target, checked.mode)
        finally:
            self._calls.close(source)

    def _finish(self, staged: _StagedWrite) -> None:
        """Check a file for the last time, and replace, create or delete it."""
        checked = staged.checked
        name = checked.write.path.rpartition(b"/")[2]
        try:
            directory = self._directories.open_parent(checked.write.path, make=checked.identity is None)
            if checked.identity is None:
                assert staged.temporary is not None, "a file that does not exist is not deleted"
                self._create(staged.temporary, directory, name)
            elif file_identity(self._calls.status(directory, name)) != checked.identity:
                raise PathRefused(_CHANGED_REASON)
            elif staged.temporary is None:
                self._calls.unlink(directory, name)
            else:
                self._calls.rename(directory, staged.temporary.rpartition(b"/")[2], directory, name)
        except PathRefused as error:
            self._remove_staged(staged)
            self._refuse(checked.write, error.reason)
        except FileNotFoundError:
            self._remove_staged(staged)
            self._refuse(checked.write, _CHANGED_REASON)
        except OSError as error:
            self._remove_staged(staged)
            self._refuse(checked.write, f"cannot be written: {error.strerror}")
        else:
            self._outcomes.append(FileOutcome(write=checked.write, state="written"))

    def _create(self, path: bytes, directory: int, name: bytes) -> None:
        """Give the temporary file at a path its name in an open directory, unless a file has this name by now."""
        temporary = path.rpartition(b"/")[2]
        source = self._directories.open_above(path)
        try:
            self._calls.link(source, temporary, directory, name)
        except FileExistsError as error:
            raise PathRefused("a file of this name was created while apply was running") from error
        except OSError as error:
            # A file system without hard links.
            if error.errno not in _NO_LINK_ERRORS:
                raise
            if has_name(self._calls, directory, name):
                raise PathRefused("a file of this name was created while apply was running") from error
            self._calls.rename(source, temporary, directory, name)
        else:
            self._calls.unlink(source, temporary)

    def _refuse(self, write: FileWrite, reason: str) -> None:
        self._outcomes.append(FileOutcome(write=write, state="refused", reason=reason))

    def _remove_temporary_files(self) -> None:
        for staged in self._staged:
            self._remove_staged(staged)

    def _remove_staged(self, staged: _StagedWrite) -> None:
        if staged.temporary is not None:
            with contextlib.suppress(PathRefused, OSError):
                directory = self._directories.open_parent(staged.temporary)
                self._calls.unlink(directory, staged.temporary.rpartition(b"/")[2])
