"""Memory of the machine and of processes, for limits. Also kills processes that have a mark in their environment.

On Linux the values come from /proc (proc.py), on other systems from psutil. psutil is imported only where it is used,
so that a run without work does not wait for the import.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Set
from pathlib import Path
from typing import TYPE_CHECKING

from codebatch.system.cgroups import memory_left
from codebatch.system.processes import proc

if TYPE_CHECKING:
    from psutil import Process

_POLL_SECONDS = 0.1


def available_memory() -> int:
    """Return the bytes available without swapping: the lower one of the machine's and the control groups' value."""
    available = proc.available_memory() or _available_memory()
    left = memory_left()
    return available if left is None else min(available, left)


def _available_memory() -> int:
    import psutil

    try:
        return int(psutil.virtual_memory().available)
    except OSError:  # There is no /proc.
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def oom_kills() -> int:
    """Return the number of processes that the kernel's OOM killer has killed since boot, or 0 if unknown."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def resident_bytes(pids: Collection[int], *, with_children: bool) -> dict[int, int]:
    """Map each pid to its resident memory in bytes. Processes that have ended are omitted.

    If `with_children` is set, the memory of all descendants is added. If the kernel does not list children, every
    process of the machine is read to find them.
    """
    children_of = _children_finder() if with_children else _no_children
    resident: dict[int, int] = {}
    for root in pids:
        tree = [root]
        for pid in tree:
            tree += children_of(pid)
            size = _resident_bytes(pid)
            if size is not None:
                resident[root] = resident.get(root, 0) + size
    return resident


def kill_marked(variable: str, values: Collection[str]) -> int:
    """Kill every process of this user whose environment sets `variable` to one of `values`.

    Return the number of killed processes.
    """
    if sys.platform == "linux":
        marks = {(variable.encode(), value.encode()) for value in values}
        return sum(_kill_if_marked(pid, marks) for pid in proc.list_pids())
    import psutil

    killed = 0
    for process in _list_processes():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(variable) in values:
                # psutil compares the start time first, so it does not kill another process with the same pid.
                process.kill()
                killed += 1
    return killed


def end_marked(variable: str, value: str, seconds: float) -> None:
    """Wait at most `seconds` until no process of this user has a mark, then kill those that have it (Linux).

    On other systems, they are killed at once.
    """
    mark = (variable.encode(), value.encode())
    deadline = time.monotonic() + seconds
    while sys.platform == "linux" and time.monotonic() < deadline:
        if not any(mark in proc.process_environment(pid) for pid in proc.list_pids()):
            return
        time.sleep(_POLL_SECONDS)
    kill_marked(variable, {value})


def _kill_if_marked(pid: int, marks: Set[tuple[bytes, bytes]]) -> bool:
    """Kill a process if its environment has one of the marks. Return whether it was killed.

    If the system has pidfd, another process that got the same pid in the meantime is not killed.
    """
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):  # The kernel or this Python has no pidfd, so only the pid identifies the process.
        process = None
    try:
        if marks.isdisjoint(proc.process_environment(pid)):
            return False
        if process is None:
            os.kill(pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError:
        return False
    finally:
        if process is not None:
            os.close(process)
    return True


def _no_children(_pid: int) -> list[int]:
    return []


def _children_finder() -> Callable[[int], list[int]]:
    if proc.lists_children():
        return proc.child_pids
    children: dict[int, list[int]] = {}
    for pid, parent in _iter_parent_ids():
        children.setdefault(parent, []).append(pid)
    return lambda pid: children.get(pid, [])


def _iter_parent_ids() -> Iterator[tuple[int, int]]:
    if sys.platform == "linux":
        for pid in proc.list_pids():
            parent = proc.parent_pid(pid)
            if parent is not None:
                yield pid, parent
        return
    import psutil

    for process in _list_processes():
        with contextlib.suppress(psutil.Error):
            yield process.pid, process.ppid()


def _resident_bytes(pid: int) -> int | None:
    if sys.platform == "linux":
        return proc.resident_bytes(pid)
    import psutil

    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return None


def _list_processes() -> list[Process]:
    """Return every process of the machine, or none if there is no /proc."""
    import psutil

    try:
        return list(psutil.process_iter())
    except (OSError, IndexError):
        return []
