"""Progress on standard error: live where that is a terminal, plain lines elsewhere, never on standard output."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import struct
import subprocess
import termios

import pytest

from codebatch.coordinator import progress
from codebatch.coordinator.score import Progress

from .process import DEADLINE_SECONDS, SCRIPT, CommandLine, make_many

TASKS = ("parse", "analyze", "symbols", "lint")
ESCAPE = "\x1b["


def on_a_terminal(codebatch: CommandLine, *arguments: str, columns: int = 100, **environment: str) -> tuple[str, str]:
    """Standard output, which is a pipe, and what a terminal of so many columns was sent as standard error."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    process = subprocess.Popen(
        [SCRIPT, *arguments],
        cwd=codebatch.directory,
        env={**codebatch.environment, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # EIO: the last one that had the terminal open has closed it.
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    stdout, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, shown
    return stdout.decode(), shown.decode()


@pytest.fixture
def codebatch(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line beside a tree that takes a moment."""
    codebatch = CommandLine(tmp_path_factory.mktemp("progress"))
    make_many(codebatch.directory / "many", 60)
    return codebatch


def test_a_terminal_is_shown_a_line_for_each_task(codebatch: CommandLine) -> None:
    """Files done and planned, rate, time left, records; all of it gone at the end, and standard output one document."""
    stdout, shown = on_a_terminal(codebatch, "run", "many", "--json")
    assert json.loads(stdout)["files"] == 60
    for task in TASKS:
        assert task in shown
    for pattern in (r"\d+/60", r"\d files/s", r"\d+:\d\d:\d\d", r"[\d,]+ records"):
        assert re.search(pattern, re.sub(r"\x1b\[[0-9;]*m", "", shown)), pattern
    assert shown.count("\x1b[?25h") == shown.count("\x1b[?25l") == 1, "the cursor is given back"


def test_no_color_is_obeyed_and_a_narrow_terminal_is_filled_no_further(codebatch: CommandLine) -> None:
    _, shown = on_a_terminal(codebatch, "run", "many", columns=40, NO_COLOR="1")
    assert re.search(r"\x1b\[[0-9;]*m", shown) is None
    _, _, bars = shown.partition("\x1b[?25l")
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", bars)]
    assert max(map(len, lines[: lines.index(next(line for line in lines if line.startswith("next: ")))])) <= 40


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(codebatch: CommandLine) -> None:
    _, shown = on_a_terminal(codebatch, "run", "many", TERM="dumb")
    assert ESCAPE not in shown
    assert "snapshot snap-" in shown


def test_quiet_is_quiet_on_a_terminal_too(codebatch: CommandLine) -> None:
    stdout, shown = on_a_terminal(codebatch, "run", "many", "-q")
    assert stdout.startswith("60 files in ")
    assert shown == ""


def test_elsewhere_there_are_plain_lines(codebatch: CommandLine) -> None:
    ended = codebatch("run", "many", "--json")
    assert ended.json["files"] == 60
    assert ESCAPE not in ended.notes
    assert [line.split()[0] for line in ended.notes.splitlines()] == ["new", "the", "snapshot", "batch", "next:"]


def test_a_long_run_says_every_ten_seconds_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0, 4.0, 10.0, 12.0, 20.0))
    monkeypatch.setattr(progress, "running_ns", lambda: int(next(seconds) * 1e9))
    stream = io.StringIO()
    display = progress.PlainDisplay(stream)
    for done in (10, 25, 30, 80):
        counted = {"parse": done + 5, "lint": done, "dependencies": 0}
        planned = {"parse": 100, "lint": 100, "dependencies": 1}
        display.update(
            Progress(done=counted, planned=planned, inflight=0, served=0, records=done * 9, failures=0, workers=2)
        )
    assert stream.getvalue().splitlines() == [
        "25 of 100 files, 225 records, about 30 s left",
        "80 of 100 files, 720 records, about 5 s left",
    ]
