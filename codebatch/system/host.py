"""What this machine is: its identity for leases, and how many cores we may use."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

import msgspec


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A machine since its last boot. `boot` is the boot ID of the kernel, or empty if the kernel has none."""

    name: str
    boot: str


@functools.cache
def this_host() -> Host:
    """The identity of this machine since its last start."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return Host(name=os.uname().nodename, boot=boot)


def is_here(host: Host) -> bool:
    """Whether it has our kernel, so that its processes' flocks can be asked for; containers give it several names."""
    mine = this_host()
    return host.boot == mine.boot and (bool(host.boot) or host.name == mine.name)


def usable_cores() -> int:
    """The cores this process may use: affinity and the cgroup's `cpu.max`, whichever is less; at least 1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    quota = _cgroup_cores()
    return max(1, min(cores, quota) if quota else cores)


def _cgroup_cores() -> int | None:
    """Whole cores that cgroup v2 grants on the way to the root, rounded up; None where it sets no limit."""
    cores: list[int] = []
    for text in cgroup_texts("cpu.max"):
        with contextlib.suppress(ValueError):
            quota, period = text.split()[:2]
            cores.append(-(-int(quota) // int(period)))
    return min(cores, default=None)


def cgroup_texts(name: str) -> list[str]:
    """What a file of cgroup v2 says in this process's group and in those above it, from the inside out."""
    try:
        line = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()[-1]
        group = line.split(":", 2)[2].lstrip("/")
    except (OSError, IndexError):
        return []
    top = Path("/sys/fs/cgroup")
    here = top / group
    texts: list[str] = []
    for directory in (here, *here.parents):
        if top not in (directory, *directory.parents):
            break
        with contextlib.suppress(OSError):
            texts.append((directory / name).read_text(encoding="ascii"))
    return texts
