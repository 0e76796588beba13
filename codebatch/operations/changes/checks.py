"""The checks of `apply`: which files can be written, before the first of them is.

A file passes if it is exactly in the state that the change was made for, and if replacing it affects no other file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from codebatch.errors import ObjectMissing
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.nearest_directories import directories_above
from codebatch.model.text.quantities import human_bytes
from codebatch.operations.changes.directories import (
    TreeDirectories,
    has_name,
    is_own_file,
    read_tree_link,
    remove_temporary_files,
)
from codebatch.operations.changes.file_writes import FileWrite
from codebatch.operations.changes.hidden_files import HiddenFiles
from codebatch.operations.changes.judgement import (
    PathRefused,
    PresentFile,
    check_path,
    joint_reasons,
    judge_file,
)
from codebatch.operations.changes.link_targets import LINK_TARGET_BYTES_MAX, link_target_reason
from codebatch.system.files.tree_writer import TreeCalls

_READ_BYTES = 1 << 20
_BLOCK_BYTES = 4096
_EXECUTABLE_BITS = 0o111
_READABLE_BITS = 0o444

FileState = Literal["written", "applied", "left_out", "refused"]


class ContentReader(Protocol):
    """The contents of files, by digest."""

    def size(self, digest: Digest) -> int:
        """Return the number of bytes of a content. Raises ObjectMissing."""

    def read(self, digest: Digest) -> bytes:
        """Return a content. Its digest was verified. Raises ObjectMissing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutcome:
    """The result of one write.

    `applied`: the file already had the new content. `left_out`: it can be written, but was not. `reason` says why a
    file was left out or refused. Otherwise it is empty. `is_gated`: a gate refuses the change, so it was left out.
    """

    write: FileWrite
    state: FileState
    reason: str = ""
    is_gated: bool = False


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Facts that tell whether a file was replaced or written to since it was checked."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedWrite:
    """A write that passed all checks of its file.

    - `identity`: the file before the write, or None if it does not exist.
    - `mode`: the permissions of the new file, before the umask applies to a created file.
    - `size`: the number of bytes of the new file.
    - `device`: the number of its file system.
    - `nearest`: the path of the nearest directory above it that exists, with a slash. The root is empty.
    """

    write: FileWrite
    nearest: bytes
    identity: FileIdentity | None
    mode: int
    size: int
    device: int

    @property
    def new_directories(self) -> set[bytes]:
        """The paths of the directories above the file that are to be made."""
        return {path for path in directories_above([self.write.path]) if len(path) >= len(self.nearest)}


def file_identity(status: os.stat_result) -> FileIdentity:
    """Return the identity of a file."""
    return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def check_writes(
    calls: TreeCalls,
    root: int,
    writes: Sequence[FileWrite],
    contents: ContentReader,
    hidden: HiddenFiles | None = None,
    *,
    is_dry: bool,
) -> tuple[list[CheckedWrite], list[FileOutcome]]:
    """Check ordered writes. Return those to do, and the outcomes of the others.

    Unless `is_dry` is set, temporary files that a killed `apply` left are removed from the directories of the files.
    """
    directories = TreeDirectories(calls, root)
    checker = _WriteChecker(calls, directories, contents, hidden, writes, is_dry=is_dry)
    checked: list[CheckedWrite] = []
    outcomes: list[FileOutcome] = []
    try:
        unfit = joint_reasons(writes, directories.exists)
        for write in writes:
            try:
                if write.path in unfit:
                    raise PathRefused(unfit[write.path])
                result = checker.check(write)
            except PathRefused as error:
                outcomes.append(FileOutcome(write=write, state="refused", reason=error.reason))
                continue
            except OSError as error:
                outcomes.append(FileOutcome(write=write, state="refused", reason=f"cannot be read: {error.strerror}"))
                continue
            if result is None:
                outcomes.append(FileOutcome(write=write, state="applied"))
            else:
                checked.append(result)
        reasons = {
            **_space_reasons(calls, directories, checked),
            **_same_file_reasons(checked),
            **_equal_name_reasons(calls, directories, checked),
        }
    finally:
        directories.close()
    outcomes += [
        FileOutcome(write=each.write, state="refused", reason=reasons[each.write.path])
        for each in checked
        if each.write.path in reasons
    ]
    return [each for each in checked if each.write.path not in reasons], outcomes


class _WriteChecker:
    def __init__(
        self,
        calls: TreeCalls,
        directories: TreeDirectories,
        contents: ContentReader,
        hidden: HiddenFiles | None,
        writes: Iterable[FileWrite],
        *,
        is_dry: bool,
    ) -> None:
        self._calls = calls
        self._directories = directories
        self._contents = contents
        self._hidden = hidden
        self._is_dry = is_dry
        self._last_directory: bytes | None = None
        self._new = {write.path for write in writes if write.after is not None}
        self._above_new = directories_above(self._new)
        # Deletions that passed, or that are done already, and the directories above them.
        self._deleted: set[bytes] = set()
        self._above_deleted: set[bytes] = set()

    def check(self, write: FileWrite) -> CheckedWrite | None:
        """Return the write if it can be done, or None if the file already has the new content.

        Raises PathRefused or OSError otherwise. Deletions must be checked first.
        """
        checked = self._check(write)
        if write.after is None:
            self._deleted.add(write.path)
            if self._hidden is not None:
                self._hidden.delete(write.path)
            self._above_deleted |= directories_above([write.path])
        return checked

    def _check(self, write: FileWrite) -> CheckedWrite | None:
        check_path(write.path)
        directory, nearest = self._open_nearest(write)
        if nearest != self._last_directory:
            self._last_directory = nearest
            if not self._is_dry:
                with contextlib.suppress(OSError):  # A directory that cannot be changed is refused below.
                    remove_temporary_files(self._calls, directory)
        above, slash, name = write.path.rpartition(b"/")
        if nearest != above + slash:
            return self._check_missing(write, directory, nearest)
        try:
            status = self._calls.status(directory, name)
        except FileNotFoundError:
            return self._check_missing(write, directory, nearest)
        if stat.S_ISDIR(status.st_mode) and self._is_replaced_directory(write):
            return self._check_missing(write, self._directories.open_parent(write.path), nearest)
        return self._check_existing(write, directory, name, status)

    def _open_nearest(self, write: FileWrite) -> tuple[int, bytes]:
        """Return the open directory of a file, or the nearest one if it is to be made or removed, with its path."""
        if write.after is None:
            return self._directories.open_nearest(write.path, self._new)
        if write.before is None:
            return self._directories.open_nearest(write.path, self._deleted)
        return self._directories.open_parent(write.path), write.path[: write.path.rfind(b"/") + 1]

    def _is_replaced_directory(self, write: FileWrite) -> bool:
        """Return whether a directory in the place of a file is there because of the changes, or will be removed.

        Raises PathRefused if it has other files than those that are deleted.
        """
        if write.after is None:
            return write.path in self._above_new
        if write.before is not None or write.path not in self._above_deleted:
            return False
        if not self._directories.has_only(write.path, self._deleted, self._above_deleted):
            raise PathRefused("a directory of this name has files that are not deleted")
        return True

    def _check_missing(self, write: FileWrite, directory: int, nearest: bytes) -> CheckedWrite | None:
        if self._hidden is not None:
            self._hidden.check(write, nearest)
        if judge_file(write, None) == "done" or write.after is None:
            return None
        self._refuse(directory, [])
        self._check_target(write)
        return CheckedWrite(
            write=write,
            nearest=nearest,
            identity=None,
            mode=_READABLE_BITS | 0o222 | (_EXECUTABLE_BITS if write.executable else 0),
            size=self._new_size(write.after),
            device=self._calls.fstat(directory).st_dev,
        )

    def _check_existing(
        self, write: FileWrite, directory: int, name: bytes, status: os.stat_result
    ) -> CheckedWrite | None:
        digest: Digest | None = None
        if write.is_link and stat.S_ISLNK(status.st_mode):
            digest = digest_bytes(self._calls.read_link(directory, name))
        elif not write.is_link and stat.S_ISREG(status.st_mode):
            status, digest = self._read_digest(directory, name)
        is_link, is_file = stat.S_ISLNK(status.st_mode), stat.S_ISREG(status.st_mode)
        present = PresentFile(
            kind="link" if is_link else "file" if is_file else "other",
            is_executable=bool(status.st_mode & stat.S_IXUSR),
            has_content=digest.__eq__,
        )
        match judge_file(write, present):
            case "done":
                return None
            case "differs":
                raise PathRefused("its content is neither the old nor the new content of the change")
            case "fits":
                pass
        reasons = []
        if not is_own_file(status):
            reasons.append("it belongs to another user")
        if status.st_nlink > 1:
            reasons.append("it has several hard links")
        if not write.is_link and not (status.st_mode & stat.S_IWUSR and self._calls.can_write(directory, name)):
            reasons.append("it is read-only")
        self._refuse(directory, reasons)
        self._check_target(write)
        return CheckedWrite(
            write=write,
            nearest=write.path[: write.path.rfind(b"/") + 1],
            identity=file_identity(status),
            mode=_new_mode(status.st_mode, write.executable),
            size=0 if write.after is None else self._new_size(write.after),
            device=status.st_dev,
        )

    def _refuse(self, directory: int, reasons: list[str]) -> None:
        """Raise PathRefused if there are reasons, or if the directory cannot be changed."""
        if not self._calls.can_write(directory, b"."):
            reasons.append("its directory is read-only")
        if reasons:
            raise PathRefused("; ".join(reasons))

    def _new_size(self, digest: Digest) -> int:
        try:
            return self._contents.size(digest)
        except ObjectMissing as error:
            raise PathRefused(missing_content_reason(digest)) from error

    def _check_target(self, write: FileWrite) -> None:
        """Raise PathRefused if a new link would lead out of the tree."""
        if not write.is_link or write.after is None:
            return
        is_long = self._new_size(write.after) > LINK_TARGET_BYTES_MAX
        try:
            target = b"" if is_long else self._contents.read(write.after)
        except ObjectMissing as error:
            raise PathRefused(missing_content_reason(write.after)) from error
        read_link = partial(read_tree_link, self._calls, self._directories.root)
        reason = link_target_reason(write.path, target, read_link)
        if reason is not None:
            raise PathRefused(reason)

    def _read_digest(self, directory: int, name: bytes) -> tuple[os.stat_result, Digest]:
        """Return the status and the digest of a file. The status was read first, so a later write makes it differ."""
        fd = self._calls.open_file(directory, name)
        try:
            status = self._calls.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise PathRefused("it is not a regular file")
            hasher = hashlib.sha256()
            offset = 0
            while data := self._calls.pread(fd, _READ_BYTES, offset):
                hasher.update(data)
                offset += len(data)
            return status, Digest(hasher.hexdigest())
        finally:
            self._calls.close(fd)


def missing_content_reason(digest: Digest) -> str:
    """Return the reason why a file cannot be written if its new content is missing from the store."""
    return f"its new content, object {digest[:12]}, is missing or damaged in the store"


def _new_mode(mode: int, executable: bool | None) -> int:
    """Return the permissions of a changed file. If it becomes executable, all who may read it may execute it."""
    permissions = mode & 0o777
    if executable is None or executable == bool(permissions & stat.S_IXUSR):
        return permissions
    return permissions | (permissions & _READABLE_BITS) >> 2 if executable else permissions & ~_EXECUTABLE_BITS


def _space_reasons(calls: TreeCalls, directories: TreeDirectories, checked: Iterable[CheckedWrite]) -> dict[bytes, str]:
    """Return a reason for each file on a file system without enough free space for all its new files."""
    by_device: dict[int, list[CheckedWrite]] = defaultdict(list)
    for each in checked:
        if each.write.after is not None:
            by_device[each.device].append(each)
    reasons: dict[bytes, str] = {}
    for group in by_device.values():
        blocks = sum(-(-each.size // _BLOCK_BYTES) for each in group)
        needed = (blocks + len({path for each in group for path in each.new_directories})) * _BLOCK_BYTES
        reason = ""
        try:
            free = calls.free_bytes(directories.open_parent(group[0].nearest))
        except (OSError, PathRefused) as error:
            reason = f"the free space of its disk is unknown: {_error_text(error)}"
        else:
            if needed > free:
                reason = f"the disk is full: {human_bytes(needed)} are needed, and {human_bytes(free)} are free"
        if reason:
            reasons |= {each.write.path: reason for each in group}
    return reasons


def _error_text(error: OSError | PathRefused) -> str:
    return error.reason if isinstance(error, PathRefused) else error.strerror or str(error)


def _same_file_reasons(checked: Iterable[CheckedWrite]) -> dict[bytes, str]:
    """Return a reason for each path that leads to the same file as another path, as on a file system without case."""
    by_file: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for each in checked:
        if each.identity is not None:
            by_file[each.identity.device, each.identity.inode].append(each.write.path)
    return {
        path: "another path of the batch leads to the same file"
        for paths in by_file.values()
        if len(paths) > 1
        for path in paths
    }


def _equal_name_reasons(
    calls: TreeCalls, directories: TreeDirectories, checked: Iterable[CheckedWrite]
) -> dict[bytes, str]:
    """Return a reason for each file to be created whose name, or that of a new directory above it, is ambiguous.

    It is ambiguous if it is equal to another new name on a file system without case.
    """
    by_name: dict[str, dict[bytes, list[CheckedWrite]]] = defaultdict(dict)
    for each in checked:
        if each.identity is None:
            for path in (each.write.path, *each.new_directories):
                by_name[_folded(path)].setdefault(path, []).append(each)
    reasons: dict[bytes, str] = {}
    for files in ([*by_path.values()] for by_path in by_name.values() if len(by_path) > 1):
        reason = ""
        try:
            if _ignores_case(calls, directories.open_parent(files[0][0].nearest)):
                reason = "another path of the batch is equal if case is ignored, as here"
        except (OSError, PathRefused) as error:
            reason = f"another path of the batch is equal if case is ignored, as may be here: {_error_text(error)}"
        if reason:
            reasons |= {each.write.path: reason for group in files for each in group}
    return reasons


def _folded(path: bytes) -> str:
    return unicodedata.normalize("NFKC", path.decode("utf-8", "surrogateescape")).casefold()


def _ignores_case(calls: TreeCalls, directory: int) -> bool:
    """Return whether a directory ignores case. In a directory without names that have a case, this is unknown."""
    names = set(calls.names(directory))
    other = next((name.swapcase() for name in sorted(names) if name.swapcase() not in names), None)
    return other is not None and has_name(calls, directory, other)
