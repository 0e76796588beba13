"""Progress on standard error: one line on a terminal, plain lines elsewhere, never on standard output."""

from __future__ import annotations

import io
import json
import re

import pytest

from codebatch.cli import progress
from codebatch.cli.progress import Display, Stage, live_line

from .on_a_terminal import on_a_terminal
from .process import CommandLine, make_many

ESCAPE = "\x1b["
MARKS = "#-"


@pytest.fixture
def codebatch(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line beside a tree that takes a moment."""
    codebatch = CommandLine(tmp_path_factory.mktemp("progress"))
    make_many(codebatch.directory / "many", 60)
    return codebatch


class Terminal(io.StringIO):
    """One whose clock is set by who writes to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.seconds = 0.0
        monkeypatch.setattr(progress, "running_ns", lambda: int(self.seconds * 1e9))


def test_a_terminal_is_shown_one_line_that_is_gone_at_the_end(codebatch: CommandLine) -> None:
    """Whatever else is told stands in lines of its own, and standard output is one document."""
    make_many(codebatch.directory / "many", 900)
    shown, stdout = on_a_terminal(codebatch, "run", "many", "--json", "-j", "1", shown="stderr", columns=60)
    assert json.loads(stdout)["files"] == 900
    *drawn, last = shown.split("\r\x1b[K")
    assert last.startswith("next: ")
    assert last.count("\n") == 1
    assert any(re.match(r"(reading|running)  .*\d+ of 900 files", line) for line in drawn)
    lines = [line for line in shown.replace("\r\x1b[K", "\r\n").split("\r\n") if re.match(r"\w+  ", line)]
    assert max(map(len, lines)) < 60


def test_no_line_is_drawn_over_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal(monkeypatch)
    display = Display(stream, is_live=True)
    display.tell(Stage("reading", 1, 2))
    display.draw()
    with display.aside():
        stream.write("a note\n")
    display.close()
    display.draw()
    assert re.fullmatch(r"\r\x1b\[Kreading  [^\r]+\r\x1b\[Ka note\n", stream.getvalue())


def test_what_is_left_goes_by_what_was_done_in_this_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by what older batches had of it."""
    stream = Terminal(monkeypatch)
    display = Display(stream, is_live=False)
    for seconds, done in ((0.0, 50), (10.0, 60), (20.0, 60)):
        stream.seconds = seconds
        display.tell(Stage("running", done, 100, more=f"{done * 9:,} records"))
        if seconds:
            display.draw()
    display.tell(Stage("merging"))
    display.draw()
    assert stream.getvalue().splitlines() == [
        "running: 60 of 100 files, 540 records, about 40 s left",
        "running: 60 of 100 files, 540 records, about 80 s left",
    ]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (100, "reading  ###############---------------  500 of 1,000 files  2 s  about 3 s left  7 failed"),
        (70, "reading  ####-----  500 of 1,000 files  2 s  about 3 s left  7 failed"),
        (50, "reading  500 of 1,000 files  2 s  about 3 s left"),
        (30, "reading  500 of 1,000 files"),
        (20, "reading  50 %  2 s"),
        (6, "readi"),
    ],
)
def test_a_narrow_terminal_is_filled_no_further(columns: int, expected: str) -> None:
    stage = Stage("reading", 500, 1000, more="7 failed")
    assert live_line(stage, 2.4, "about 3 s left", columns, MARKS) == expected


def test_a_phase_of_which_nothing_is_known_shows_that_time_goes_by() -> None:
    assert live_line(Stage("merging"), 2.4, "", 80, MARKS) == "merging  2 s"


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(codebatch: CommandLine) -> None:
    shown, _ = on_a_terminal(codebatch, "run", "many", shown="stderr", TERM="dumb")
    assert ESCAPE not in shown
    assert "snapshot snap-" in shown


def test_quiet_is_quiet_on_a_terminal_too(codebatch: CommandLine) -> None:
    shown, stdout = on_a_terminal(codebatch, "run", "many", "-q", shown="stderr")
    assert stdout.startswith("60 files in ")
    assert shown == ""


def test_elsewhere_there_are_plain_lines(codebatch: CommandLine) -> None:
    ended = codebatch("run", "many", "--json")
    assert ended.json["files"] == 60
    assert ESCAPE not in ended.notes
    assert [line.split()[0] for line in ended.notes.splitlines()] == ["new", "the", "snapshot", "batch", "next:"]


def test_on_a_narrow_terminal_what_is_known_of_the_rest_is_told_before_the_time_that_passed() -> None:
    stage = Stage("following", 2, 4, "tasks", "1 running", is_even=False, left="12-19 m left")
    assert live_line(stage, 83, stage.left, 40, "#-") == "following  2 of 4 tasks  12-19 m left"
    assert "83 s" in live_line(stage, 83, stage.left, 80, "#-")
