"""Measuring processes: what one run costs, and sides that take turns.

Rules:
1. Sides alternate A B C A B C …, so that what else the machine does strikes all alike; each has one unmeasured turn
   first, which compiles bytecode and fills the page cache. Nothing is dropped from it.
2. Ratios are taken within a turn and then ranked: the median of ratios, not the ratio of medians.
3. CPU time is user and system time of the process and of all descendants that were waited for: wait4(2) hands it up.
4. Peak memory is that of the largest process, from the same call. It cannot be seen below the harness's own peak: a
   child starts as a copy of it. `peak_together` finds the sum over a tree of processes, `watch` what the first process
   and those it started had each, in runs of their own.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

_SAMPLE_SECONDS = 0.02
_KB = 1024
_CHANGES = ("GIT_", "CODEBATCH_", "RUFF_", "PYTHONDONTWRITEBYTECODE")


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a process cost, its children included."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Several measurements of one thing."""

    minimum: float
    median: float
    maximum: float


def spread(values: Sequence[float]) -> Spread:
    """The ends and the middle of some values."""
    return Spread(minimum=min(values), median=statistics.median(values), maximum=max(values))


class BrokenSideError(Exception):
    """A measured command did not end as it should: its figures would mean nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One command of a comparison. `prepare` runs before each turn and is not measured."""

    name: str
    command: Sequence[str]
    cwd: Path | None = None
    prepare: Callable[[], None] = lambda: None
    environment: Mapping[str, str] = field(default_factory=dict)
    statuses: tuple[int, ...] = (0,)


def run_side(side: Side) -> Usage:
    """One turn. Raises BrokenSideError where the command ends with a status that it should not."""
    side.prepare()
    began = time.perf_counter()
    process = _start(side)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    _check(side, process.returncode)
    return Usage(wall_s=wall_s, cpu_s=used.ru_utime + used.ru_stime, peak_bytes=used.ru_maxrss * _KB)


def alternate(sides: Sequence[Side], runs: int) -> list[list[Usage]]:
    """`runs` turns of each side, after one that does not count; a list for each side, by turn."""
    for side in sides:
        run_side(side)
    turns = [[run_side(side) for side in sides] for _ in range(runs)]
    return [list(column) for column in zip(*turns, strict=True)] if turns else []


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ours to theirs, turn by turn."""
    return spread([one / other for one, other in zip(ours, theirs, strict=True)])


def peak_together(side: Side) -> int:
    """The most memory that a command and its descendants held at one time, in bytes, by sampling /proc.

    The sum of resident sets: pages that processes share count once for each, so it errs upwards.
    """
    side.prepare()
    process = _start(side)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(_resident_bytes(pid) for pid in _family(process.pid)))
        time.sleep(_SAMPLE_SECONDS)
    _check(side, process.returncode)
    return peak


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `status` is None where it had to be killed for its time. Peaks are resident memory by itself.

    `child_peak_bytes` is that of the largest process that the first one started and that lived for a while.
    """

    wall_s: float
    status: int | None
    peak_bytes: int
    child_peak_bytes: int


def watch(side: Side, seconds_max: float) -> Watched:
    """One turn that may fail, looked at from outside, with its time limited."""
    side.prepare()
    began = time.monotonic()
    process = _start(side)
    peak = child_peak = 0
    while process.poll() is None:
        if time.monotonic() - began > seconds_max:
            kill_family(process.pid)
            process.wait()
            return Watched(wall_s=seconds_max, status=None, peak_bytes=peak, child_peak_bytes=child_peak)
        peak = max(peak, _peak_bytes(process.pid))
        child_peak = max([child_peak, *map(_peak_bytes, _children(process.pid))])
        time.sleep(_SAMPLE_SECONDS)
    wall_s = time.monotonic() - began
    return Watched(wall_s=wall_s, status=process.returncode, peak_bytes=peak, child_peak_bytes=child_peak)


def kill_family(pid: int) -> None:
    """Kill a process and all its descendants."""
    for each in _family(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def harness_peak_bytes() -> int:
    """Below this, `Usage.peak_bytes` tells of the harness and not of the command."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KB


def environment() -> dict[str, str]:
    """What every command inherits: nothing of the user's that changes what codebatch, git or ruff do."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_CHANGES)}
    return kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}


def _start(side: Side) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(side.command),
        cwd=side.cwd,
        env={**environment(), **side.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _check(side: Side, status: int) -> None:
    if status not in side.statuses:
        raise BrokenSideError(f"{side.name} ended with status {status}: {' '.join(side.command)[:300]}")


def _family(pid: int) -> list[int]:
    """A process and its descendants, those that still are."""
    found = [pid]
    for parent in found:
        found.extend(_children(parent))
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found.extend(map(int, (thread / "children").read_text().split()))
    return found


def _peak_bytes(pid: int) -> int:
    """What a process has had resident since it became what it is; 0 where it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KB
    return 0


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
