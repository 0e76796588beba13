"""The identity of this machine, which leases record, and the number of cores that this process may use."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import msgspec

from codebatch.system.cgroups import core_limit


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

    It is the lower one of the CPU affinity and the limit of control groups.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return max(1, min(cores, core_limit() or cores))
