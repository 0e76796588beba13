"""Types of mounted file systems, from the kernel's list of mounts (proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MOUNTS_FILE = Path("/proc/self/mountinfo")
_OCTAL_ESCAPE = re.compile(rb"\\([0-7]{3})")
_REMOTE_KIND_PREFIXES = re.compile(r"(?:nfs|cifs|smb|afs|ceph|lustre|gluster|beegfs|gpfs|ocfs|gfs|9p|davfs|fuse)")
"""Prefixes of the names of file system types that are not local.

Other machines may write to such a file system, or a user process implements it.
"""


def remote_file_system_kind(path: Path) -> str | None:
    """Return the type of the file system that holds a path if it is a network or FUSE file system.

    Otherwise return None.
    """
    try:
        mounts_text = _MOUNTS_FILE.read_bytes()
    except OSError:
        return None
    kind = file_system_kind_at(mounts_text, os.fsencode(os.path.realpath(path)))
    return kind if kind is not None and _REMOTE_KIND_PREFIXES.match(kind) else None


def file_system_kind_at(mounts: bytes, path: bytes) -> str | None:
    """Return the type of the file system that contains an absolute path, or None. `mounts` is the content of mountinfo.

    If several file systems are mounted at the same place, the last one counts.
    """
    longest: tuple[int, str] | None = None
    for line in mounts.splitlines():
        mount_part, _, type_part = line.partition(b" - ")
        fields, types = mount_part.split(), type_part.split()
        if len(fields) < 5 or not types:
            continue
        mount_point = _OCTAL_ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), fields[4]).rstrip(b"/") + b"/"
        if (path.rstrip(b"/") + b"/").startswith(mount_point) and (longest is None or len(mount_point) >= longest[0]):
            longest = (len(mount_point), types[0].decode("ascii", "replace"))
    return longest[1] if longest else None
