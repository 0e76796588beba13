"""The machine on which figures were measured. Absolute figures hold only for this machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import msgspec


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine and the state in which it measured. `load` is the one-minute load before the first measurement."""

    cores: int
    processor: str
    memory_bytes: int
    kernel: str
    python: str
    git: str
    load: float

    def describe(self) -> str:
        """Return a one-line description for people."""
        busy = "" if self.load < 0.2 * self.cores else " (busy: trust ratios of CPU time only)"
        memory = f"{self.memory_bytes / 2**30:.0f} GiB"
        return (
            f"{self.cores} cores, {self.processor}, {memory}, Linux {self.kernel}, Python {self.python}, "
            f"{self.git}, load {self.load:.2f}{busy}"
        )


def this_machine() -> Machine:
    """Return a description of this machine, as far as it is readable without privileges."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=platform.release(),
        python=platform.python_version(),
        git=_git(),
        load=os.getloadavg()[0],
    )


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _git() -> str:
    try:
        return subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except FileNotFoundError:
        return "no git"
