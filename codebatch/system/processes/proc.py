"""Memory and processes as Linux tells of them below /proc: what psutil knows too, which takes 10 ms to import.

Whatever is gone, is not ours to see, or where there is no /proc, is left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

_PROC = "/proc"
_READ_BYTES = 1 << 16


def available_memory() -> int | None:
    """Bytes that could be had without swapping; None where the kernel does not say, or says nonsense."""
    known: dict[bytes, int] = {}
    for line in _read("meminfo").splitlines():
        name, _, value = line.partition(b":")
        if name in (b"MemTotal", b"MemAvailable"):
            known[name] = int(value.split()[0]) << 10
    available = known.get(b"MemAvailable", 0)
    return available if 0 < available <= known.get(b"MemTotal", 0) else None


def processes() -> list[int]:
    """Every process of the machine."""
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return []


class ProcessStat(msgspec.Struct, frozen=True):
    """What the kernel says of a process: whether it has ended and waits to be reaped, or is stopped, be it by a tracer
    (ptrace(2)); who it was started by or left to, its session, and when it was started, in clock ticks after boot: with
    its id that names it until the machine stops.
    """

    is_zombie: bool
    is_stopped: bool
    is_traced: bool
    parent: int
    session: int
    start_ticks: int


def stat(pid: int) -> ProcessStat | None:
    """What the kernel says of a process."""
    # Its name, which may be anything, stands in brackets before.
    fields = _read(f"{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    state = fields[0]
    return ProcessStat(
        state == b"Z", state in (b"T", b"t"), state == b"t", int(fields[1]), int(fields[3]), int(fields[19])
    )


def waits_for_fifo(pid: int) -> bool:
    """Whether a process waits for another one to open a FIFO. False if the kernel does not tell, as Linux does."""
    return _read(f"{pid}/wchan") == b"wait_for_partner"


def parent(pid: int) -> int | None:
    """Who a process was started by, or was left to."""
    found = stat(pid)
    return None if found is None else found.parent


def start_ticks(pid: int) -> int | None:
    """When a process was started, in clock ticks after boot."""
    found = stat(pid)
    return None if found is None else found.start_ticks


def name(pid: int) -> str:
    """What a process is called, for people."""
    return _read(f"{pid}/comm").decode("utf-8", "replace").strip()


def lists_children() -> bool:
    """Whether the kernel lists the children of a process (proc_pid_task_children(5))."""
    return os.path.exists(f"{_PROC}/thread-self/children")


def children(pid: int) -> list[int]:
    """The processes that one has started, or that were left to it; while others end one may be missing."""
    try:
        threads = os.listdir(f"{_PROC}/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(f"{pid}/task/{thread}/children").split()]


def has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open, by whatever name it opened it."""
    try:
        wanted = os.stat(path)
        names = os.listdir(f"{_PROC}/{pid}/fd")
    except OSError:
        return False
    for each in names:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"{_PROC}/{pid}/fd/{each}"), wanted):
                return True
    return False


def resident_bytes(pid: int) -> int | None:
    """The memory that a process has resident."""
    fields = _read(f"{pid}/statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else None


def environment(pid: int) -> Iterator[tuple[bytes, bytes]]:
    """The names and values that a process was started with."""
    for variable in _read(f"{pid}/environ").split(b"\0"):
        name, _, value = variable.partition(b"=")
        yield name, value


def _read(name: str) -> bytes:
    try:
        descriptor = os.open(f"{_PROC}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = b""
            while more := os.read(descriptor, _READ_BYTES):
                found += more
            return found
        finally:
            os.close(descriptor)
    except OSError:
        return b""
