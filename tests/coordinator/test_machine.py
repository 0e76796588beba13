"""Tests of memory sizes and process information read from /proc, compared with psutil."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from codebatch.system.processes import memory, proc
from tests.support.command_line import wait_until

_VARIABLE = "CODEBATCH_TEST_MARK"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems use psutil")


@contextmanager
def _sleeping(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a shell with a child."""
    process = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo; wait"],
        env={_VARIABLE: mark, "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        # During execve(2) a process has no environment.
        assert any(_is_asleep(child) for _ in range(100_000) for child in psutil.Process(process.pid).children())
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def _is_asleep(process: psutil.Process) -> bool:
    return process.name() == "sleep" and _VARIABLE in process.environ()


@pytest.fixture(params=["linux", "elsewhere"])
def _platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code for Linux, then the code for other systems, which uses psutil."""
    monkeypatch.setattr(sys, "platform", request.param)


def test_available_memory_matches_psutil() -> None:
    ours = proc.available_memory()
    assert ours == pytest.approx(psutil.virtual_memory().available, rel=0.05)
    assert ours is not None
    assert memory._available_memory() == pytest.approx(ours, rel=0.05)
    assert memory.available_memory() <= ours * 1.05


@pytest.mark.usefixtures("_platform")
@pytest.mark.parametrize("are_children_listed", [True, False])
def test_resident_sizes_match_psutil(monkeypatch: pytest.MonkeyPatch, are_children_listed: bool) -> None:
    assert proc.lists_children()
    monkeypatch.setattr(proc, "lists_children", lambda: are_children_listed)
    with _sleeping("x") as process:
        (child,) = psutil.Process(process.pid).children()
        wait_until(lambda: child.name() == "sleep", "it is what it will be")
        sizes = [psutil.Process(pid).memory_info().rss for pid in (process.pid, child.pid)]
        alone = memory.resident_bytes([process.pid], with_children=False)
        together = memory.resident_bytes([process.pid], with_children=True)
        assert alone == pytest.approx({process.pid: sizes[0]}, rel=0.5)
        assert together == pytest.approx({process.pid: sum(sizes)}, rel=0.5)
        assert together[process.pid] > alone[process.pid]


@pytest.mark.usefixtures("_platform")
def test_ended_process_has_no_size_parent_or_environment() -> None:
    with _sleeping("x") as process:
        pass
    assert proc.resident_bytes(process.pid) is None
    assert proc.parent_pid(process.pid) is None
    assert list(proc.process_environment(process.pid)) == [(b"", b"")]
    assert memory.resident_bytes([process.pid], with_children=True) == {}


@pytest.mark.usefixtures("_platform")
def test_only_marked_processes_are_killed() -> None:
    with _sleeping("mine") as mine, _sleeping("others") as others:
        assert memory.kill_marked(_VARIABLE, {"mine", "nobodys"}) == 2
        assert mine.wait() == -signal.SIGKILL
        assert others.poll() is None
        # The shell's child may take a moment to end.
        assert any(memory.kill_marked(_VARIABLE, {"mine"}) == 0 for _ in range(10_000))


@pytest.mark.parametrize("is_named_by_descriptor", [True, False])
def test_reused_process_id_is_not_killed(monkeypatch: pytest.MonkeyPatch, is_named_by_descriptor: bool) -> None:
    """A process ended and its id was reused after its mark was read. The new process must not be killed."""
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    with _sleeping("mine") as marked:
        ended = os.pidfd_open(marked.pid)
    monkeypatch.setattr(proc, "list_pids", lambda: [marked.pid])
    monkeypatch.setattr(proc, "process_environment", lambda _: iter([(_VARIABLE.encode(), b"mine")]))
    if is_named_by_descriptor:
        monkeypatch.setattr(os, "pidfd_open", lambda _: ended)
    else:
        os.close(ended)
        monkeypatch.delattr(os, "pidfd_open")
    assert memory.kill_marked(_VARIABLE, {"mine"}) == len(killed) == (not is_named_by_descriptor)


def test_missing_proc_yields_no_process_information(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "_PROC_DIRECTORY", "/nowhere")
    assert proc.available_memory() is None
    assert proc.list_pids() == []
    assert memory.resident_bytes([os.getpid()], with_children=True) == {}
    assert memory.kill_marked(_VARIABLE, {"mine"}) == 0
    assert memory.available_memory() > 0
