"""The identity of this machine, which leases record, and the number of cores that this process may use."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

import msgspec


class HostBoot(msgspec.Struct, frozen=True, kw_only=True):
    """A machine since its last boot. `boot` is the boot ID of the kernel, or empty if the kernel has none."""

    name: str
    boot: str


@functools.cache
def this_host() -> HostBoot:
    """Return the identity of this machine since its last boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return HostBoot(name=os.uname().nodename, boot=boot)


def is_this_machine(host: HostBoot) -> bool:
    """Return whether a host is the kernel on which this process runs.

    Then flocks of its processes are visible to this process. Boot IDs are compared, because containers on one kernel
    have different names.
    """
    this = this_host()
    return host.boot == this.boot and (bool(host.boot) or host.name == this.name)


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    It is the lower one of the CPU affinity and the cgroup limit `cpu.max`.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    quota = _cgroup_cores()
    return max(1, min(cores, quota) if quota else cores)


def _cgroup_cores() -> int | None:
    """Return the lowest core limit of this process's cgroups (v2), rounded up. None if there is no limit."""
    cores: list[int] = []
    for text in cgroup_texts("cpu.max"):
        with contextlib.suppress(ValueError):
            quota, period = text.split()[:2]
            cores.append(-(-int(quota) // int(period)))
    return min(cores, default=None)


def cgroup_texts(name: str) -> list[str]:
    """Return the contents of a cgroup v2 file for this process's group and its ancestors, innermost first."""
    try:
        line = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()[-1]
        group = line.split(":", 2)[2].lstrip("/")
    except (OSError, IndexError):
        return []
    top = Path("/sys/fs/cgroup")
    own_group = top / group
    texts: list[str] = []
    for directory in (own_group, *own_group.parents):
        if top not in (directory, *directory.parents):
            break
        with contextlib.suppress(OSError):
            texts.append((directory / name).read_text(encoding="ascii"))
    return texts
