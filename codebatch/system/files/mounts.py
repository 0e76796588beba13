"""On what kind of file system something lies: as the kernel tells of mounts (proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(rb"\\([0-7]{3})")
_FAR = re.compile(r"(?:nfs|cifs|smb|afs|ceph|lustre|gluster|beegfs|gpfs|ocfs|gfs|9p|davfs|fuse)")
"""How the kinds begin that other machines may write to, or that a process of some user serves."""


def far_kind(path: Path) -> str | None:
    """The kind of the network or FUSE file system that a path lies on; None where it is local, or not known."""
    try:
        told = _MOUNTS.read_bytes()
    except OSError:
        return None
    kind = kind_at(told, os.fsencode(os.path.realpath(path)))
    return kind if kind is not None and _FAR.match(kind) else None


def kind_at(mounts: bytes, path: bytes) -> str | None:
    """The kind of file system that holds an absolute path, of mounts as the kernel tells them; the last one counts."""
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        about, _, behind = line.partition(b" - ")
        fields, kinds = about.split(), behind.split()
        if len(fields) < 5 or not kinds:
            continue
        top = _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), fields[4]).rstrip(b"/") + b"/"
        if (path.rstrip(b"/") + b"/").startswith(top) and (found is None or len(top) >= found[0]):
            found = (len(top), kinds[0].decode("ascii", "replace"))
    return found[1] if found else None
