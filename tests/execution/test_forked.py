"""Tests of a function that runs in several processes: answers come in order, even if a process dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from codebatch.system.processes.forks import ForkFailure, call_isolated, map_forked


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    text: str = ""


def twice(number: int) -> Answer:
    return Answer(number=2 * number)


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_answers_are_in_the_order_of_the_arguments(processes: int) -> None:
    with map_forked(twice, range(100), processes, Answer) as answers:
        assert list(answers) == [twice(number) for number in range(100)]


def test_large_answers_wait_for_their_reader() -> None:
    with map_forked(lambda n: Answer(number=n, text="x" * 100_000), range(40), 2, Answer) as answers:
        assert sum(len(answer.text) for answer in answers if isinstance(answer, Answer)) == 40 * 100_000


def test_killed_process_loses_only_its_current_answer() -> None:
    def deadly(number: int) -> Answer:
        if number in (0, 17, 18, 39):
            os.kill(os.getpid(), signal.SIGKILL)
        return twice(number)

    with map_forked(deadly, range(40), 2, Answer) as answers:
        results = list(answers)
    lost = ForkFailure("its process ended (killed by SIGKILL)")
    assert results == [lost if number in (0, 17, 18, 39) else twice(number) for number in range(40)]


def test_exception_in_a_process_is_raised_by_the_caller() -> None:
    def refuse(number: int) -> Answer:
        if number == 20:
            raise ValueError(f"no {number}")
        return twice(number)

    with pytest.raises(ValueError, match="no 20"), map_forked(refuse, range(40), 2, Answer) as answers:
        list(answers)


def test_unfinished_iteration_leaves_no_process() -> None:
    before = psutil.Process().children()  # Another test in this process may have left a child.
    with map_forked(twice, range(10_000), 2, Answer) as answers:
        next(answers)
        assert len(psutil.Process().children()) >= 2
    assert set(psutil.Process().children()) <= set(before)


@pytest.mark.parametrize("processes", [1, 2])
def test_answer_that_times_out_is_a_failure_and_others_follow(processes: int) -> None:
    def slow(number: int) -> Answer:
        while number == 3:
            signal.pause()
        return twice(number)

    with map_forked(slow, range(20), processes, Answer, seconds=0.2) as answers:
        results = list(answers)
    assert results == [
        ForkFailure("it took longer than 0.2 s") if number == 3 else twice(number) for number in range(20)
    ]


def test_isolated_calls_answer_in_order_and_share_state() -> None:
    numbers: list[int] = []

    def count(number: int) -> Answer:
        numbers.append(number)
        return Answer(number=len(numbers))

    with call_isolated(count, range(3), Answer, seconds=60) as answers:
        assert list(answers) == [Answer(number=1), Answer(number=2), Answer(number=3)]
    assert numbers == []


def fork_and_leave() -> None:
    if os.fork():
        os._exit(0)


def fork_twice() -> None:
    fork_and_leave()
    fork_and_leave()


def write_everywhere(data: bytes) -> None:
    for descriptor in range(3, 4096):
        with contextlib.suppress(OSError):
            os.write(descriptor, data)


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda: os._exit(0), "its process ended (exit status 0)"),
        (sys.exit, "its process ended (exit status 1)"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "its process ended (killed by SIGSEGV)"),
        (lambda: os.execv("/bin/false", ["false"]), "its process ended (exit status 1)"),
        (fork_and_leave, "its process ended (exit status 0)"),
        (fork_twice, "its process ended (exit status 0)"),
        (lambda: os.closerange(3, 4096), "its process ended (exit status 1)"),
        (lambda: 1 / 0, "it raised an exception without a text"),
        (lambda: write_everywhere(b"\0\1\0\0\0\xff"), "it wrote to file descriptors that it does not own"),
        (lambda: write_everywhere(b"\0\xff\xff\xff\xff"), "it wrote to file descriptors that it does not own"),
    ],
)
def test_end_of_an_isolated_process_is_a_failure(act: Callable[[], object], reason: str) -> None:
    def answer(number: int) -> Answer:
        if number == 1:
            act()
        return twice(number)

    with call_isolated(answer, range(3), Answer, seconds=60) as answers:
        assert list(answers) == [twice(0), ForkFailure(reason)]


def test_isolated_process_inherits_no_descriptor_handler_or_terminal() -> None:
    reading, writing = os.pipe()
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))
    try:

        def look(_: int) -> tuple[bool, bool, bool, bool]:
            with contextlib.suppress(OSError):
                os.fstat(writing)
                return (False,) * 4
            is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            return (
                is_default,
                not signal.pthread_sigmask(signal.SIG_BLOCK, ()),
                os.getsid(0) == os.getpid(),
                not os.read(0, 1),
            )

        with call_isolated(look, (0,), tuple[bool, bool, bool, bool], seconds=60) as answers:
            assert list(answers) == [(True, True, True, True)]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGTERM, before)
        os.close(reading)
        os.close(writing)


def test_isolated_process_takes_its_children_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "open")

    def start(_: int) -> int:
        return subprocess.Popen(f"exec > {tmp_path}/open; sleep 60; echo late", shell=True).pid

    with call_isolated(start, (0,), int, seconds=60) as answers:
        assert isinstance(next(answers), int)
        reading = os.open(tmp_path / "open", os.O_RDONLY)  # From now on the program has the pipe open, too.
    with open(reading, "rb") as still_open:
        assert still_open.read() == b""


def test_output_of_an_isolated_process_is_sent_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    def tell(_: int) -> int:
        print("one", end="")
        os.write(1, b"two")
        os.system("echo three")
        return 0

    with call_isolated(tell, (0,), int, seconds=60) as answers:
        assert list(answers) == [0]
    out, err = capfd.readouterr()
    assert out == ""
    assert sorted(err.replace("two", " two ").replace("three", " three ").split()) == ["one", "three", "two"]
