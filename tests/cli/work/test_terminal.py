"""A work batch on a user's terminal: the user presses Ctrl-C, and answers questions before the start."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import termios
import time
from collections.abc import Iterator

import psutil
import pytest

from codebatch.errors import NothingToDo
from tests.cli.work.test_attempts import until
from tests.cli.work.test_work import line, make_list, status
from tests.support.command_line import DEADLINE_SECONDS, SCRIPT, CommandLine, wait_until, write
from tests.support.resources import is_readable

__all__ = ["line"]

CTRL_C = b"\x03"


class Terminal:
    """A separate terminal that runs one command line as its foreground job."""

    def __init__(self, line: CommandLine) -> None:
        self._line = line
        self.shown = b""

    def start(self, *arguments: str) -> None:
        self._controller, terminal = os.openpty()
        self._process = subprocess.Popen(
            [SCRIPT, *arguments],
            cwd=self._line.directory,
            env={**self._line.environment, "TERM": "xterm", "NO_COLOR": "1"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509 (no thread is here that could hold a lock)
        )
        os.close(terminal)

    def press(self, keys: bytes) -> None:
        os.write(self._controller, keys)

    def read_until(self, text: str) -> None:
        """Wait until a text is shown. The output up to then is in `shown`."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while text.encode() not in self.shown:
            assert time.monotonic() < deadline, self.shown.decode()
            assert self._read(), self.shown.decode()

    def end(self) -> int:
        """Wait for the end of the command and return its exit status."""
        while self._read():
            pass
        return self._process.wait(DEADLINE_SECONDS)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._controller)

    def _read(self) -> bool:
        """Read output, and return whether the other end is still open."""
        if not is_readable(self._controller, 1):
            return self._process.poll() is None
        try:
            piece = os.read(self._controller, 65536)
        except OSError:  # EIO: the last process that had the terminal open has closed it.
            return False
        self.shown += piece
        return bool(piece)


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(line: CommandLine) -> Iterator[Terminal]:
    made = Terminal(line)
    yield made
    made.close()


def test_each_ctrl_c_escalates_and_announces_the_next_step(line: CommandLine, terminal: Terminal) -> None:
    """The third Ctrl-C kills a command that ignores SIGTERM, long before its grace period is over."""
    stubborn = "trap '' TERM; echo $$ >one.began; while :; do sleep 0.05; done"
    make_list(line, {"one": f"run = {json.dumps(stubborn)}\ngrace_seconds = 3000"})
    terminal.start("work", "run")
    began = line.directory / "one.began"
    terminal.read_until("one")
    wait_until(lambda: began.exists() and began.read_text() != "", "the command begins")
    terminal.press(CTRL_C)
    terminal.read_until("(press Ctrl-C again to stop them)")
    terminal.press(CTRL_C)
    terminal.read_until("(press Ctrl-C again to kill)")
    pid = int(began.read_text())
    assert psutil.pid_exists(pid)
    terminal.press(CTRL_C)
    assert terminal.end() == 128 + signal.SIGINT
    wait_until(lambda: not psutil.pid_exists(pid), "the command ends")
    assert status(line)["status"] == "RUNNING"


def test_declined_prompt_writes_and_runs_nothing(line: CommandLine, terminal: Terminal) -> None:
    tasks = {"two": {"run": "touch ran"}, "one": {"run": "touch ran", "text": "After two is done."}}
    write(line.directory / "a list.json", json.dumps({"strategy": "auto", "tasks": tasks}))
    before = sorted(line.directory.rglob("*"))
    terminal.start("work", "run", "-f", "a list.json")
    terminal.read_until("Run with these dependencies?")
    terminal.press(b"n\n")
    assert terminal.end() == NothingToDo.exit_status
    shown = " ".join(terminal.shown.decode().split())
    assert "see where they come from with: codebatch work analyze --file 'a list.json'; write `needs`" in shown
    assert sorted(line.directory.rglob("*")) == before


def test_blocked_task_is_not_counted_as_done(line: CommandLine, terminal: Terminal) -> None:
    """This holds for `follow` and `work run`. The time of an answer is unknown."""
    tasks = {
        "asks": "run = 'codebatch ask --wait What?'",
        "behind": 'run = "true"\nneeds = ["asks"]\nexpected_seconds = 60',
        "ends": 'run = "true"',
    }
    make_list(line, tasks, "max_parallel = 2")
    running = line.start("work", "run")
    until(line, "asks", "BLOCKED", running)
    terminal.start("follow")
    terminal.read_until("1 of 3 tasks")
    terminal.read_until("left once questions are answered")
    assert "once questions are answered" in line("status").text
    line("work", "answer", "asks", "that")
    assert terminal.end() == 0
    assert "2 of 3 tasks" not in terminal.shown.decode().split("answered asks")[0]
    assert "asks waits for an answer: codebatch work questions --batch" in line.finish(running).notes


def test_resume_reports_the_open_question_of_a_task_that_still_runs(line: CommandLine, terminal: Terminal) -> None:
    make_list(line, {"asks": "run = 'codebatch ask --wait What?'"})
    running = line.start("work", "run", "-q")
    until(line, "asks", "BLOCKED", running)
    running.kill()
    running.wait()  # Its worker still holds the pipes.
    terminal.start("resume")
    terminal.read_until("asks waits for an answer: codebatch work questions --batch")
    line("work", "answer", "asks", "that")
    assert terminal.end() == 0
    line.finish(running, status=-signal.SIGKILL)


def test_resume_reports_a_question_about_a_cap_once_for_all_tasks(line: CommandLine, terminal: Terminal) -> None:
    tasks = dict.fromkeys(("one", "two", "three", "four"), "run = 'true'")
    make_list(line, tasks, 'attempts_max = 1\non_cap = "ask"\non_blocked = "wait"')
    running = line.start("work", "run", "-q")
    until(line, "two", "BLOCKED", running)
    running.kill()
    running.communicate()
    terminal.start("resume")
    terminal.read_until("waits for an answer: codebatch work questions --batch")
    line("work", "answer", "two", "4")
    assert terminal.end() == 0
    assert terminal.shown.count(b"waits for an answer") == 1
