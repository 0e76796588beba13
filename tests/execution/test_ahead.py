"""A function that another process calls ahead: the same answer, whatever becomes of that process."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from codebatch.system.processes.background_fork import BackgroundFork, has_other_processor


class Answer(msgspec.Struct, frozen=True):
    by: int
    text: bytes = b""


def test_answer_is_another_process_s_and_may_fill_a_pipe() -> None:
    answer = BackgroundFork(lambda: Answer(os.getpid(), b"x" * 1_000_000)).wait(Answer)
    assert answer.by != os.getpid()
    assert answer.text == b"x" * 1_000_000


def test_what_was_changed_meanwhile_is_not_seen_by_it() -> None:
    known = [b"before"]
    ahead = BackgroundFork(lambda: Answer(0, known[0]))
    known[0] = b"after"
    assert ahead.wait(Answer).text == b"before"


def _is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raises() -> None:
    raise ValueError


@pytest.mark.parametrize("end", [_is_killed, _raises, lambda: os._exit(1)])
def test_where_it_dies_or_raises_the_function_is_called_here(end: Callable[[], None]) -> None:
    here = os.getpid()

    def function() -> Answer:
        if os.getpid() != here:
            end()
        return Answer(os.getpid())

    assert BackgroundFork(function).wait(Answer).by == here


def test_what_it_raises_is_raised() -> None:
    with pytest.raises(ValueError, match=r"^$"):
        BackgroundFork(_raises).wait(type(None))


def test_where_no_process_can_be_made_the_function_is_called_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refuse)
    opened = len(os.listdir("/proc/self/fd"))
    assert BackgroundFork(lambda: Answer(os.getpid())).wait(Answer).by == os.getpid()
    assert len(os.listdir("/proc/self/fd")) == opened


def test_where_no_pipe_can_be_made_the_function_is_called_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pipe", refuse)
    assert BackgroundFork(lambda: Answer(os.getpid())).wait(Answer).by == os.getpid()


def test_it_ends_where_who_wanted_its_answer_has_gone() -> None:
    """Goal: an answer that fills a pipe is no process for ever. Method: all that could be left hold a pipe of ours."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        BackgroundFork(lambda: Answer(0, b"x" * 1_000_000))
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    assert select.select([reading], [], [], 60)[0]
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_ctrl_c_ends_it_at_once_and_without_a_word() -> None:
    code = """
import os, signal
from codebatch.system.processes.background_fork import BackgroundFork
signal.signal(signal.SIGINT, signal.default_int_handler)  # Who started us may have it ignored.
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
print(BackgroundFork(os.getpid).wait(int) == os.getpid())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert (ended.stdout, ended.stderr) == (b"True\n", b"")


def test_whoever_reads_what_we_write_does_not_wait_for_it() -> None:
    """Goal: `codebatch … | head` ends when the command does. Method: standard output is a pipe of ours meanwhile."""
    reading, writing = os.pipe()
    release, hold = os.pipe()
    before = os.dup(1)
    os.dup2(writing, 1)
    os.close(writing)
    try:
        ahead = BackgroundFork(lambda: Answer(len(os.read(release, 1))))
    finally:
        os.dup2(before, 1)
        os.close(before)
    began = time.monotonic()
    assert os.read(reading, 1) == b""
    assert time.monotonic() - began < 60
    os.write(hold, b".")
    assert ahead.wait(Answer).by == 1
    for descriptor in (reading, release, hold):
        os.close(descriptor)


def test_none_is_left_behind() -> None:
    children = Path("/proc/thread-self/children")
    before = children.read_text(encoding="ascii")
    BackgroundFork(lambda: Answer(1)).wait(Answer)
    assert children.read_text(encoding="ascii") == before


def test_one_processor_has_no_other() -> None:
    able = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(able)})
        assert not has_other_processor()
    finally:
        os.sched_setaffinity(0, able)
    assert has_other_processor() == (len(able) > 1)
