"""Measurement of processes: the cost of one run, and sides that take turns.

Rules:

1. Sides alternate A B C A B C …, so that other load of the machine affects all sides alike. Each side first has one
unmeasured turn, which compiles bytecode and fills the page cache. No cache is dropped.
2. Ratios are taken within a turn and then ranked: the result is the median of ratios, not the ratio of medians.
3. CPU time is user and system time of the process and of all descendants that were waited for, as wait4(2) reports it.
4. Peak memory is the peak of the largest process, from the same call. A child starts as a copy of the harness, so peaks
below the harness's own peak are invisible. In separate runs, `peak_together` measures the sum over a tree of processes,
and `watch` measures the first process and its children separately.
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
    """The cost of one run of a process, including its children."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The minimum, median and maximum of repeated measurements."""

    minimum: float
    median: float
    maximum: float


def spread(values: Sequence[float]) -> Spread:
    """Return the minimum, median and maximum of some values."""
    return Spread(minimum=min(values), median=statistics.median(values), maximum=max(values))


class BrokenSideError(Exception):
    """A measured command ended with an unexpected status, so its figures are meaningless."""


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
    """Run one turn. Raises BrokenSideError if the command ends with an unexpected status."""
    side.prepare()
    began = time.perf_counter()
    process = _start(side)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    _check(side, process.returncode)
    return Usage(wall_s=wall_s, cpu_s=used.ru_utime + used.ru_stime, peak_bytes=used.ru_maxrss * _KB)


def alternate(sides: Sequence[Side], runs: int) -> list[list[Usage]]:
    """Run `runs` turns of each side after one unmeasured turn. Return a list of usages for each side, by turn."""
    for side in sides:
        run_side(side)
    turns = [[run_side(side) for side in sides] for _ in range(runs)]
    return [list(column) for column in zip(*turns, strict=True)] if turns else []


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Return the ratios of ours to theirs, turn by turn."""
    return spread([one / other for one, other in zip(ours, theirs, strict=True)])


def peak_together(side: Side) -> int:
    """Return the peak memory of a command with its descendants in bytes, by sampling /proc.

    The result is a sum of resident sets. Pages that processes share count once for each process, so it is an upper
    bound.
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
    """One run. `status` is None if the run was killed at its time limit. Peaks are resident memory.

    `peak_bytes` is the peak of the first process. `child_peak_bytes` is the peak of its largest child that lived long
    enough to be sampled.
    """

    wall_s: float
    status: int | None
    peak_bytes: int
    child_peak_bytes: int


def watch(side: Side, seconds_max: float) -> Watched:
    """Run one turn with a time limit and sample its memory. The command may fail."""
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
    for member in _family(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)


def harness_peak_bytes() -> int:
    """Return the peak memory of the harness. A smaller `Usage.peak_bytes` describes the harness, not the command."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KB


def environment() -> dict[str, str]:
    """Return the environment of every command, without the user's settings that affect codebatch, git or ruff."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_CHANGES)}
    return inherited | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}


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
    """Return a process and its living descendants."""
    family = [pid]
    for parent in family:
        family.extend(_children(parent))
    return family


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            children.extend(map(int, (thread / "children").read_text().split()))
    return children


def _peak_bytes(pid: int) -> int:
    """Return the peak resident memory of a process since its last execve, or 0 if it has ended."""
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
