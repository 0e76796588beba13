"""An installed package with two tasks: `venom` does to its worker what the content of a file names; `symptom` needs it.

While the file `antidote` is in the home directory, `venom` is harmless. The file `plague` there kills every worker at
its start.
"""

from __future__ import annotations

import collections
import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from codebatch.model.record import Metric, Record
from codebatch.model.task import NoConfig, TaskDeclaration
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.syntax.source import SourceFile

ORPHAN_SECONDS_FILE = "orphan_seconds"
"""File in the home directory with the number of seconds that orphaned children sleep.

Each test process uses its own number, and finds its orphans by the number in their command lines.
"""

VENOM = TaskDeclaration(
    name="venom", version="1", summary="does what the file says", implementation="venom:create", records=("metric",)
)
SYMPTOM = TaskDeclaration(
    name="symptom",
    version="1",
    summary="needs venom",
    implementation="venom:create_symptom",
    records=("metric",),
    needs=("venom",),
)

HOME = Path(os.environ.get("HOME", "/"))


class Unpicklable(Exception):
    """An exception that can be neither pickled nor printed."""

    def __init__(self) -> None:
        super().__init__("\udcff", lambda: None)

    def __str__(self) -> str:
        raise ValueError("\udcff")


def segfault() -> None:
    ctypes.string_at(0)


def exit_at_once() -> None:
    os._exit(7)


def leave() -> None:
    sys.exit("leaving")


def loop() -> None:
    collections.deque(itertools.repeat(0), maxlen=0)


def hang() -> None:
    while True:
        signal.pause()


def memory() -> None:
    hoard = []
    while True:
        hoard.append(b"x" * (16 << 20))


def descriptors() -> None:
    while True:
        os.open(os.devnull, os.O_RDONLY)


def _orphan_seconds() -> str:
    return (Path.home() / ORPHAN_SECONDS_FILE).read_text(encoding="ascii")


def child() -> None:
    subprocess.Popen(["sleep", _orphan_seconds()], start_new_session=True)
    os._exit(8)


def fork() -> None:
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", _orphan_seconds()])
    if os.fork() == 0:
        time.sleep(float(_orphan_seconds()))
    os._exit(9)


def flood() -> None:
    for _ in range(1600):
        os.write(2, b"x" * 65535 + b"\n")
    raise RuntimeError("flooded")


def unpicklable() -> None:
    raise Unpicklable


def recursion() -> None:
    recursion()


def memory_of_a_child() -> None:
    subprocess.run([sys.executable, "-c", "x = [b'x' * (16 << 20) for _ in range(10**6)]"], check=True)


def leave_a_child() -> None:
    subprocess.Popen(["sleep", _orphan_seconds()], start_new_session=True)


def detach() -> None:
    """Start a daemon by a double fork, without any environment variable of codebatch."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", _orphan_seconds()], {})
        os._exit(0)
    os.wait()


def leak() -> None:
    for _ in range(20):
        os.open(os.devnull, os.O_RDONLY)


def _is_first(times: int = 1) -> bool:
    """Return whether this is one of the first `times` calls, counted over all processes."""
    with (HOME / "asked").open("a+") as counter:
        counter.write("x")
        return counter.tell() <= times


def die_before_the_links() -> None:
    """Make the worker die in its commit, twice. The current file did not cause the death, so it must not fail."""
    if _is_first(2):
        OutcomeRegisters.publish_commit = lambda *_: os._exit(11)  # type: ignore[method-assign]


def die_behind_the_links() -> None:
    """Make the worker die once after its commit, before it reports the commit."""
    if _is_first():
        commit = OutcomeRegisters.publish_commit
        OutcomeRegisters.publish_commit = lambda *arguments: os._exit(12 + len(commit(*arguments)))  # type: ignore[method-assign]


def crash_then_loop() -> None:
    """Crash the first time, hang from then on."""
    if _is_first():
        os._exit(13)
    loop()


def ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    loop()


def slow() -> None:
    time.sleep(0.2)


DEEDS = {
    deed.__name__: deed
    for deed in (
        segfault,
        exit_at_once,
        leave,
        loop,
        hang,
        memory,
        memory_of_a_child,
        descriptors,
        child,
        fork,
        flood,
        unpicklable,
        recursion,
        leave_a_child,
        detach,
        leak,
        die_before_the_links,
        die_behind_the_links,
        crash_then_loop,
        ignore_sigterm,
        slow,
    )
}


class Venom:
    """The task `venom`."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """Execute the deed that the file names. Return the size of the file, if the process survives."""
        deed = DEEDS.get(file.content.decode().strip())
        if deed is not None and not (HOME / "antidote").exists():
            deed()
        path, path_b64 = file.path_fields
        return [Metric(path=path, path_b64=path_b64, metric="bytes", value=len(file.content))]


def create(environment: TaskEnvironment[NoConfig]) -> Venom:
    """Create the task `venom`."""
    if (HOME / "plague").exists():
        os._exit(1)
    return Venom()


class Symptom:
    """The task `symptom`, which needs `venom`."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """Return the size of the file."""
        path, path_b64 = file.path_fields
        return [Metric(path=path, path_b64=path_b64, metric="bytes", value=len(file.content))]


def create_symptom(environment: TaskEnvironment[NoConfig]) -> Symptom:
    """Create the task `symptom`."""
    return Symptom()
