"""Tests of workers that are stopped or traced: they are continued, or killed if that does not help."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codebatch.coordinator.work.interfaces import StoppedWorker
from codebatch.coordinator.work.stopped_workers import (
    CHECK_INTERVAL_NS,
    CONTINUES_MAX,
    STOPPED_CHECKS_MAX,
    StoppedWorkerWatch,
    WatchedWorker,
)
from codebatch.model.outcome import HolderId
from codebatch.system.processes import proc, processes
from codebatch.system.processes.processes import reap_killed

HOLDER = HolderId("a" * 32)
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17
_TRACER = """
import ctypes, sys, time
print(ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), None, None), flush=True)
time.sleep(1000)
"""
_ptrace = ctypes.CDLL(None, use_errno=True).ptrace

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")


class _StopWatch:
    """A worker process, and checks of it that are a second apart."""

    def __init__(self, file: Path) -> None:
        file.touch()
        with open(file, "rb") as inherited:
            self.process = subprocess.Popen(["sleep", "1000"], pass_fds=[inherited.fileno()])
        self.worker = WatchedWorker(HOLDER, self.process.pid, file)
        self._workers = StoppedWorkerWatch()
        self._now_ns = 0

    def look(self) -> list[StoppedWorker]:
        self._now_ns += CHECK_INTERVAL_NS
        return self._workers.check(self._now_ns, [self.worker])

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: self.is_stopped)

    @property
    def is_stopped(self) -> bool:
        status = proc.process_stat(self.process.pid)
        return status is not None and status.is_stopped

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.001)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[_StopWatch]:
    stop_watch = _StopWatch(tmp_path / "holder")
    yield stop_watch
    stop_watch.process.kill()
    stop_watch.process.wait()


def test_stopped_worker_is_continued(watch: _StopWatch) -> None:
    assert watch.look() == []
    watch.stop()
    assert watch.look() == [StoppedWorker(HOLDER, watch.process.pid, is_traced=False, is_killed=False)]
    watch.wait_until(lambda: not watch.is_stopped)
    assert watch.look() == []


def test_repeatedly_stopped_worker_is_killed(watch: _StopWatch) -> None:
    for _ in range(CONTINUES_MAX):
        watch.stop()
        assert [stopped.is_killed for stopped in watch.look()] == [False]
        watch.wait_until(lambda: not watch.is_stopped)
        watch.look()
    watch.stop()
    assert [stopped.is_killed for stopped in watch.look()] == [True]
    assert watch.process.wait() == -signal.SIGKILL


def test_reused_worker_id_is_not_signalled(watch: _StopWatch, tmp_path: Path) -> None:
    (tmp_path / "another").touch()
    watch.worker = watch.worker._replace(file=tmp_path / "another")
    watch.stop()
    assert [watch.look() for _ in range(STOPPED_CHECKS_MAX)] == [[]] * STOPPED_CHECKS_MAX
    assert watch.is_stopped


@contextlib.contextmanager
def _traced(pid: int) -> Iterator[None]:
    if _ptrace(_PTRACE_ATTACH, pid, None, None) != 0:
        pytest.skip("this system forbids tracing")
    try:
        yield
    finally:
        _ptrace(_PTRACE_DETACH, pid, None, None)


def test_permanently_traced_worker_is_killed_without_waiting_for_its_tracer(
    watch: _StopWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tracer may be a debugger in a terminal that is left open."""
    monkeypatch.setattr(processes, "REAP_SECONDS", 0.0)
    tracer = subprocess.Popen([sys.executable, "-c", _TRACER, str(watch.process.pid)], stdout=subprocess.PIPE)
    try:
        assert tracer.stdout is not None
        if tracer.stdout.readline() != b"0\n":
            pytest.skip("this system forbids tracing")
        watch.wait_until(lambda: watch.is_stopped)
        assert [[stopped.is_killed for stopped in watch.look()] for _ in range(STOPPED_CHECKS_MAX)] == [[]] * (
            STOPPED_CHECKS_MAX - 1
        ) + [[True]]
        reap_killed(watch.process)
        assert watch.process.returncode == -signal.SIGKILL
    finally:
        tracer.kill()
        tracer.communicate()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(watch.process.pid, 0)


def test_briefly_traced_worker_is_left_alone(watch: _StopWatch) -> None:
    for _ in range(2 * CONTINUES_MAX):
        with _traced(watch.process.pid):
            watch.wait_until(lambda: watch.is_stopped)
            assert watch.look() == []
        watch.wait_until(lambda: not watch.is_stopped)
        assert watch.look() == []
