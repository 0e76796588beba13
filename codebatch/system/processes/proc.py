"""Memory and processes as Linux reports them in /proc. psutil has the same data but takes longer to import.

If a value cannot be read, it is omitted or None: the process has ended or is not visible, or there is no /proc.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

_PROC_DIRECTORY = "/proc"
_READ_BYTES = 1 << 16


def available_memory() -> int | None:
    """Return the bytes available without swapping, or None if the kernel reports no plausible value."""
    sizes: dict[bytes, int] = {}
    for line in _read_proc_file("meminfo").splitlines():
        name, _, value = line.partition(b":")
        if name in (b"MemTotal", b"MemAvailable"):
            sizes[name] = int(value.split()[0]) << 10
    available = sizes.get(b"MemAvailable", 0)
    return available if 0 < available <= sizes.get(b"MemTotal", 0) else None


def list_pids() -> list[int]:
    """Return the pids of all processes of the machine."""
    try:
        return [int(name) for name in os.listdir(_PROC_DIRECTORY) if name.isdigit()]
    except OSError:
        return []


class ProcessStat(msgspec.Struct, frozen=True):
    """The kernel's state of a process.

    - `is_zombie`: it has ended but is not reaped.
    - `is_stopped`: it is stopped, by a signal or, if `is_traced`, by a tracer (ptrace(2)).
    - `parent_pid`: the pid of its current parent.
    - `process_start_ticks`: its start time in clock ticks after boot. With the pid, it identifies a process until a
      reboot.
    """

    is_zombie: bool
    is_stopped: bool
    is_traced: bool
    parent: int
    session: int
    start_ticks: int


def process_stat(pid: int) -> ProcessStat | None:
    """Return the state of a process, or None if it cannot be read."""
    # The name before the fields is in parentheses and may contain any characters.
    fields = _read_proc_file(f"{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    state = fields[0]
    return ProcessStat(
        state == b"Z", state in (b"T", b"t"), state == b"t", int(fields[1]), int(fields[3]), int(fields[19])
    )


def waits_for_fifo(pid: int) -> bool:
    """Return whether a process waits in open(2) until another process opens the same FIFO.

    False if the kernel does not report it.
    """
    return _read_proc_file(f"{pid}/wchan") == b"wait_for_partner"


def parent_pid(pid: int) -> int | None:
    """Return the pid of a process's current parent."""
    process = process_stat(pid)
    return None if process is None else process.parent


def process_start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks after boot."""
    process = process_stat(pid)
    return None if process is None else process.start_ticks


def process_name(pid: int) -> str:
    """Return the name of a process, for people."""
    return _read_proc_file(f"{pid}/comm").decode("utf-8", "replace").strip()


def lists_children() -> bool:
    """Return whether the kernel lists the children of a process (proc_pid_task_children(5))."""
    return os.path.exists(f"{_PROC_DIRECTORY}/thread-self/children")


def child_pids(pid: int) -> list[int]:
    """Return the pids of a process's children, including adopted ones.

    If a child ends during the call, others may be missing.
    """
    try:
        threads = os.listdir(f"{_PROC_DIRECTORY}/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read_proc_file(f"{pid}/task/{thread}/children").split()]


def has_file_open(pid: int, path: Path) -> bool:
    """Return whether a process has a file open, by the path `path` or by another hard link to the same file."""
    try:
        status = os.stat(path)
        names = os.listdir(f"{_PROC_DIRECTORY}/{pid}/fd")
    except OSError:
        return False
    for descriptor in names:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"{_PROC_DIRECTORY}/{pid}/fd/{descriptor}"), status):
                return True
    return False


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process in bytes."""
    fields = _read_proc_file(f"{pid}/statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else None


def process_environment(pid: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the names and values of a process's initial environment."""
    for variable in _read_proc_file(f"{pid}/environ").split(b"\0"):
        name, _, value = variable.partition(b"=")
        yield name, value


def _read_proc_file(name: str) -> bytes:
    try:
        descriptor = os.open(f"{_PROC_DIRECTORY}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = b""
            while block := os.read(descriptor, _READ_BYTES):
                data += block
            return data
        finally:
            os.close(descriptor)
    except OSError:
        return b""
