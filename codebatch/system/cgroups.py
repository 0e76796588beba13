"""Limits of the control groups of this process, of both versions (cgroups(7)).

A process is in one group of each hierarchy. The limits of this group and of all groups above it apply. A hierarchy of
version 1 has the controllers that its mount options name; version 2 has one hierarchy. Both may be mounted at once.

A container may see only a part of a hierarchy: then the mount starts at a group (`root` in proc_pid_mountinfo(5)), and
/proc/self/cgroup shows paths from the top of the hierarchy, or, in a cgroup namespace, from the group of the namespace.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

_PROCESS = Path("/proc/self")
_OCTAL_ESCAPE = re.compile(r"\\([0-7]{3})")


def core_limit(process: Path = _PROCESS) -> int | None:
    """Return the lowest limit of cores, rounded up. None if there is no limit.

    `process` is the directory of the process in /proc.
    """
    cores: list[int] = []
    for group in _iter_groups(process, "cpu"):
        with contextlib.suppress(OSError, ValueError):  # Without a limit, a quota is `max`, -1 or missing.
            if (group / "cpu.max").exists():
                quota, period = map(int, (group / "cpu.max").read_text(encoding="ascii").split()[:2])
            else:
                quota, period = _read_number(group / "cpu.cfs_quota_us"), _read_number(group / "cpu.cfs_period_us")
            if quota > 0 and period > 0:
                cores.append(-(-quota // period))
    return min(cores, default=None)


def memory_left(process: Path = _PROCESS) -> int | None:
    """Return the lowest number of bytes that processes of a group can still allocate. None if there is no limit.

    File contents that the kernel can drop do not count as used.
    """
    left: list[int] = []
    for group in _iter_groups(process, "memory"):
        for limit, used, dropped in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            with contextlib.suppress(OSError, ValueError):
                free = _read_number(group / limit) - _read_number(group / used)
                left.append(max(0, free + _read_statistic(group / "memory.stat", dropped)))
    return min(left, default=None)


def _iter_groups(process: Path, controller: str) -> Iterator[Path]:
    """Yield the directories of the groups of a process that have a controller, and of those above, innermost first."""
    try:
        memberships = (process / "cgroup").read_text(encoding="utf-8").splitlines()
        mounts = (process / "mountinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for membership in memberships:
        number, _, rest = membership.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(",") or (number, controllers) == ("0", ""):
            for top, below in _iter_mounted(mounts, controller if controllers else "", path):
                group = top / below
                yield from (group, *(above for above in group.parents if above.is_relative_to(top)))


def _iter_mounted(mounts: list[str], controller: str, path: str) -> Iterator[tuple[Path, str]]:
    """Yield the mounts of a hierarchy: the directory, and the path of a group below it.

    `controller` is empty for version 2. If the mount does not show the group, the path is empty.
    """
    for line in mounts:
        mount, _, kind = line.partition(" - ")
        fields, (name, _, *options) = mount.split(), [*kind.split(), "", ""][:3]
        is_mounted = controller in "".join(options).split(",") if controller else True
        if len(fields) < 5 or name != ("cgroup" if controller else "cgroup2") or not is_mounted:
            continue
        root, directory = (_OCTAL_ESCAPE.sub(lambda match: chr(int(match[1], 8)), field) for field in fields[3:5])
        is_shown = f"{path}/".startswith(f"{root.rstrip('/')}/") and ".." not in path.split("/")
        yield Path(directory), os.path.relpath(path, root) if is_shown else ""


def _read_number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))


def _read_statistic(path: Path, name: str) -> int:
    """Return the value of a name in a file of lines `NAME VALUE`, or 0."""
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return 0
