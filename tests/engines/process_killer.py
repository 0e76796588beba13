"""A thread that kills random processes of an engine, and a search for processes that stay behind."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

PROBLEMS = (psutil.NoSuchProcess, psutil.AccessDenied)

PAUSE_SECONDS = 0.3


def descendants_by_role(root: psutil.Process) -> dict[str, list[psutil.Process]]:
    """Return the processes below a process: `engine`, `part` (those that execute a capsule) and `analysis`.

    `analysis` has the workers that a `part` started.
    """
    roles: dict[str, list[psutil.Process]] = {"engine": [], "part": [], "analysis": []}
    role_of = {root.pid: "engine"}
    for process in _descendants(root):
        with suppress(*PROBLEMS):
            parent_role, words = role_of[process.ppid()], process.cmdline()
            role = "analysis" if parent_role != "engine" else "engine"
            if parent_role == "engine" and _is_part(words):
                role = "part"
            role_of[process.pid] = role
            if not any("resource_tracker" in word for word in words):
                roles[role].append(process)
    return roles


def _descendants(root: psutil.Process) -> list[psutil.Process]:
    try:
        return root.children(recursive=True)
    except PROBLEMS:
        return []


class ProcessKiller:
    """Kills one process after another in a thread, in a random order of roles, while there is a `part`.

    - `find_victims` returns the living processes by role. It is called until the end, and may start processes again.
    - `planned` has the number of kills of each role.
    - `count_results` returns a number that increases when results of a part arrive. After a kill that loses a part, the
      next such kill waits for results: an engine that loses each part is broken, and ends the run.
    """

    def __init__(
        self,
        find_victims: Callable[[], Mapping[str, list[psutil.Process]]],
        planned: Mapping[str, int],
        count_results: Callable[[], int],
        *,
        seed: int,
    ) -> None:
        self.kills: Counter[str] = Counter()
        self._find_victims = find_victims
        self._roles = [role for role, count in planned.items() for _ in range(count)]
        random.Random(seed).shuffle(self._roles)
        self._count_results = count_results
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._kill_all, daemon=True)

    def __enter__(self) -> ProcessKiller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _kill_all(self) -> None:
        results = -1
        while not self._is_stopped.wait(PAUSE_SECONDS):
            victims = self._find_victims()
            has_results = self._count_results() > results
            allowed = {role for role in victims if victims[role] and (role == "analysis" or has_results)}
            role = next((role for role in self._roles if role in allowed), None)
            if role is None or not victims["part"]:
                continue
            if role != "analysis":
                results = self._count_results()
            with suppress(*PROBLEMS):
                victims[role][0].kill()
                self.kills[role] += 1
                self._roles.remove(role)


def parts_by_role(name: str, value: str) -> dict[str, list[psutil.Process]]:
    """Return the processes that have an environment variable with a value, and execute parts: `part` and `analysis`.

    `engine` has the processes of an engine that wait for a part.
    """
    roles: dict[str, list[psutil.Process]] = {"engine": [], "part": [], "analysis": []}
    for process in processes_with_variable(name, value):
        with suppress(*PROBLEMS):
            parent = process.parent()
            if _is_part(process.cmdline()) and parent is not None and not _is_part(parent.cmdline()):
                roles["engine"].append(parent)
                roles["part"].append(process)
                roles["analysis"] += _descendants(process)
    return roles


def processes_with_variable(name: str, value: str) -> list[psutil.Process]:
    """Return all processes except this one that have an environment variable with a value."""
    entry = f"{name}={value}".encode()
    found = []
    for process in psutil.process_iter():
        with suppress(OSError, *PROBLEMS):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            if entry in environment and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _is_part(words: list[str]) -> bool:
    return any("capsule_process" in word for word in words)


def check_no_process_left(name: str, value: str, seconds: float = 10.0) -> None:
    """Check that within some seconds no process with an environment variable is left."""
    deadline = time.monotonic() + seconds
    while left := processes_with_variable(name, value):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
