"""Verification that a store that the user did not name was created by this user at this place.

See SPEC.md "Threat model". A source tree from elsewhere may contain a store with forged answers. So each store has a
symbolic link, the witness, which is created with the store and never changed. store.json records the inode and the
ctime of this link. No clone, copy or archive preserves them: the kernel assigns both, and no program can set a ctime.
The witness is a link because recursive changes of a directory (chmod -R) do not change the ctime of a link. It is never
followed.

git overwrites ignored files without a warning. So git may still write into a store that was created here. Therefore no
file of the store may be tracked.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
from pathlib import Path
from typing import BinaryIO

import msgspec

from codebatch.errors import StoreUntrusted
from codebatch.store import layout
from codebatch.system.files.files import StoreFiles

_GITFILE_PREFIX = b"gitdir: "
_GITFILE_BYTES_MAX = 8192
_NAME_LENGTH_MAX = 0xFFF


class StoreOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a store's witness: its inode and its ctime in nanoseconds."""

    inode: int
    changed_ns: int


def make_origin(files: StoreFiles, root: Path, document: str) -> StoreOrigin:
    """Create the witness of a new store and return the witness's identity.

    If another process, which creates the same store, has already created the witness, return the identity of that
    witness. Raises StoreUntrusted if the name of the witness is taken by another file.
    """
    with contextlib.suppress(FileExistsError):
        files.make_link(document, root / layout.CREATED_HERE_FILE)
    origin = _current_origin(files, root)
    if origin is None:
        raise StoreUntrusted(
            f"cannot create a store: {root / layout.CREATED_HERE_FILE} already exists",
            hint="choose another location with --store",
        )
    return origin


def check_origin(files: StoreFiles, root: Path, origin: StoreOrigin, document: str) -> None:
    """Raise StoreUntrusted if a store was not created at this place by this user, or if git tracks a file of it."""
    for path in (root, root / document):
        status = files.stat(path)
        if status is None or status.st_uid != os.geteuid():
            raise _untrusted_store(root, "belongs to another user")
    if _current_origin(files, root) != origin:
        raise _untrusted_store(root, "was not created here: it was cloned, copied or unpacked")
    refuse_tracked_root(root)


def refuse_linked_root(root: Path) -> None:
    """Raise StoreUntrusted if `root` is a symbolic link. codebatch found `root` and takes it for a store."""
    if root.is_symlink():
        raise _untrusted_store(root, "is a symbolic link")


def refuse_tracked_root(root: Path) -> None:
    """Raise StoreUntrusted if git tracks anything at or below the path of a store, even if the store does not exist."""
    if _git_tracks(root):
        untrack = f"git -C {shlex.quote(str(root.parent))} rm -r --cached {shlex.quote(root.name)}"
        raise StoreUntrusted(
            f"git tracks files of the store {root}, so it is not trusted",
            hint="if you trust this store, give its path with --store or CODEBATCH_STORE; otherwise untrack the store: "
            f"{untrack}",
        )


def _current_origin(files: StoreFiles, root: Path) -> StoreOrigin | None:
    status = files.stat(root / layout.CREATED_HERE_FILE)
    if status is None or not stat.S_ISLNK(status.st_mode):
        return None
    return StoreOrigin(inode=status.st_ino, changed_ns=status.st_ctime_ns)


def _untrusted_store(root: Path, problem: str) -> StoreUntrusted:
    return StoreUntrusted(
        f"the store {root} {problem}, so it is not trusted",
        hint="if you trust this store, give its path with --store or CODEBATCH_STORE; "
        "otherwise use another store: --store PATH",
    )


def _git_tracks(root: Path) -> bool:
    """Return whether the index of the nearest git work tree contains a path of the store.

    First search the bytes of the git index. Run git itself only if these bytes may contain a path of the store, or if
    the index does not store whole paths.
    """
    top = next((directory for directory in root.parents if os.path.lexists(directory / ".git")), None)
    if top is None:
        return False
    path = os.fsencode(root.relative_to(top))
    try:
        is_indexed = is_in_index(top / ".git", path)
    except (OSError, ValueError):
        is_indexed = None
    if is_indexed is False:
        return False
    from codebatch.git.repository import GitError, find_git, is_tracked  # Rarely needed, and imports subprocess.

    # If git cannot read the repository (a submodule mounted without its parent), use the result of the search.
    git = find_git()
    try:
        return is_tracked(git, os.fsencode(top), path) if git is not None else bool(is_indexed)
    except GitError:
        return bool(is_indexed)


def is_in_index(git: Path, path: bytes) -> bool | None:
    """Return whether the git index may contain a path or a path below it.

    None if the index does not store whole paths. `git` is the path of `.git`. Raises OSError or ValueError if the index
    cannot be read.
    """
    if not git.is_dir():
        with _open_regular(git) as file:
            link = file.read(_GITFILE_BYTES_MAX)
        if not link.startswith(_GITFILE_PREFIX):
            return None
        git = git.parent / os.fsdecode(link.removeprefix(_GITFILE_PREFIX).rstrip(b"\n"))
    names = os.listdir(git)
    if "index" not in names:
        return False
    if any(name.startswith("sharedindex.") for name in names):
        return None
    with _open_regular(git / "index") as file:
        index = file.read()
    if index[:4] != b"DIRC" or int.from_bytes(index[4:8], "big") not in (2, 3):
        return None
    # The index is searched, not parsed: the length of an entry depends on the hash algorithm of the repository.
    return any(_is_index_name(index, match.start()) for match in re.finditer(re.escape(path) + rb"[/\0]", index))


def _is_index_name(index: bytes, start: int) -> bool:
    """Return whether the name of an entry may begin at the position `start` of a git index.

    True if the length of the name is in the two bytes before `start`. In an entry with extended flags, the length is in
    the two bytes before these flags (gitformat-index).
    """
    length = min(index.find(b"\0", start) - start, _NAME_LENGTH_MAX)
    lengths = (
        int.from_bytes(index[start - distance : start - distance + 2], "big") & _NAME_LENGTH_MAX for distance in (2, 4)
    )
    return length in lengths


def _open_regular(path: Path) -> BinaryIO:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError(f"{path} is not a regular file")
    return open(fd, "rb")
