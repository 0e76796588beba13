"""Whether a store that was found, and that nobody named, was made by us and where it lies (SPEC.md "Threat model").

Whoever sends a tree may send a store in it, whose answers are what he likes. So a store holds a symbolic link that is
made with it and never touched, and its document says that link's inode and time of change (ctime). No clone, copy or
archive brings these along: the kernel gives them, and nobody can set a ctime. It is a link because what people do to
whole directories (chmod -R) leaves a link's ctime alone; it is never followed.

What lies here may still be a store of ours that git wrote into: it overwrites ignored files without a word. So nothing
in it may be tracked.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

import msgspec

from codebatch.errors import StoreUntrusted
from codebatch.store import layout
from codebatch.system.files.files import Files

_GITFILE = b"gitdir: "
_GITFILE_BYTES_MAX = 8192
_NAME_LENGTH_MAX = 0xFFF


class StoreOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel says of a store's witness: its inode, and its time of change in nanoseconds."""

    inode: int
    changed_ns: int


def make_origin(files: Files, root: Path, document: str) -> StoreOrigin:
    """Make the witness, or take the one that another maker of the same store made; what it says.

    Raises StoreUntrusted where its name is another's.
    """
    with contextlib.suppress(FileExistsError):
        files.make_link(document, root / layout.WITNESS)
    origin = _origin(files, root)
    if origin is None:
        raise StoreUntrusted(
            f"cannot create a store: {root / layout.WITNESS} already exists",
            hint="choose another location with --store",
        )
    return origin


def check_origin(files: Files, root: Path, origin: StoreOrigin, document: str) -> None:
    """Refuse a store that was found where it was not made, or that another user or git had a hand in.

    Raises StoreUntrusted.
    """
    for path in (root, root / document):
        found = files.stat(path)
        if found is None or found.st_uid != os.geteuid():
            raise _foreign(root, "belongs to another user")
    if _origin(files, root) != origin:
        raise _foreign(root, "was not created here: it was cloned, copied or unpacked")
    refuse_tracked(root)


def refuse_link(root: Path) -> None:
    """Raise StoreUntrusted where what was found for a store is a symbolic link."""
    if root.is_symlink():
        raise _foreign(root, "is a symbolic link")


def refuse_tracked(root: Path) -> None:
    """Raise StoreUntrusted where git tracks anything below a place that was found for a store, be it there or not."""
    if _git_tracks(root):
        import shlex  # for a hint, as wherever it is named

        top = "" if root.parent == Path.cwd() else f" -C {shlex.quote(os.path.relpath(root.parent))}"
        raise StoreUntrusted(
            f"git tracks files of the store {root}, so it is not trusted",
            hint="if you trust it, give it with --store or CODEBATCH_STORE; otherwise untrack it: "
            f"git{top} rm -r --cached {shlex.quote(root.name)}",
        )


def _origin(files: Files, root: Path) -> StoreOrigin | None:
    found = files.stat(root / layout.WITNESS)
    if found is None or not stat.S_ISLNK(found.st_mode):
        return None
    return StoreOrigin(inode=found.st_ino, changed_ns=found.st_ctime_ns)


def _foreign(root: Path, problem: str) -> StoreUntrusted:
    return StoreUntrusted(
        f"the store {root} {problem}, so it is not trusted",
        hint="if you trust it, give it with --store or CODEBATCH_STORE; otherwise use another store: --store PATH",
    )


def _git_tracks(root: Path) -> bool:
    """Whether the nearest work tree's index holds anything of the store.

    git itself is asked only where the index may hold it, or is of a kind whose paths do not stand in it as they are.
    """
    top = next((directory for directory in root.parents if os.path.lexists(directory / ".git")), None)
    if top is None:
        return False
    path = os.fsencode(root.relative_to(top))
    try:
        seen = is_in_index(top / ".git", path)
    except (OSError, ValueError):
        seen = None
    if seen is False:
        return False
    from codebatch.git.repository import GitError, find_git, is_tracked  # brings subprocess, and is hardly ever needed

    # A repository that git cannot read, as a submodule's that is mounted alone, is not one that it wrote from.
    git = find_git()
    try:
        return is_tracked(git, os.fsencode(top), path) if git is not None else bool(seen)
    except GitError:
        return bool(seen)


def is_in_index(git: Path, path: bytes) -> bool | None:
    """Whether a path, or one below it, may stand in the index; None where the index does not hold paths as they are.

    Raises OSError, ValueError.
    """
    if not git.is_dir():
        with _open_plain(git) as file:
            link = file.read(_GITFILE_BYTES_MAX)
        if not link.startswith(_GITFILE):
            return None
        git = git.parent / os.fsdecode(link.removeprefix(_GITFILE).rstrip(b"\n"))
    names = os.listdir(git)
    if "index" not in names:
        return False
    if any(name.startswith("sharedindex.") for name in names):
        return None
    with _open_plain(git / "index") as file:
        index = file.read()
    if index[:4] != b"DIRC" or int.from_bytes(index[4:8], "big") not in (2, 3):
        return None
    # Not entry by entry, for how long one is depends on the repository's hash. 10 MB take 15 ms.
    return any(_is_name(index, found.start()) for found in re.finditer(re.escape(path) + rb"[/\0]", index))


def _is_name(index: bytes, start: int) -> bool:
    """Whether an entry's name may begin there: its length stands before it, or before more flags (gitformat-index)."""
    length = min(index.find(b"\0", start) - start, _NAME_LENGTH_MAX)
    lengths = (int.from_bytes(index[start - back : start - back + 2], "big") & _NAME_LENGTH_MAX for back in (2, 4))
    return length in lengths


def _open_plain(path: Path) -> BinaryIO:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError(f"{path} is not a regular file")
    return open(fd, "rb")
