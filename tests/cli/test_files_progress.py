"""How far a question is that goes through files: told where it takes long, and nothing of it is left on a terminal."""

from __future__ import annotations

import io

import pytest

from codebatch.cli.files_progress import FilesProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *seconds: float, quiet: bool = False) -> str:
    """What is told where files are done at some seconds."""
    monkeypatch.setenv("TERM", "xterm")
    clock = iter([0, *(int(each * 1e9) for each in seconds)])
    monkeypatch.setattr("codebatch.cli.files_progress.running_ns", lambda: next(clock))
    with FilesProgress(stream, quiet=quiet) as progress:
        for done in range(len(seconds)):
            progress.update(done * 1000, 12_345)
    return stream.getvalue()


def test_elsewhere_than_on_a_terminal_it_is_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, io.StringIO(), 1, 9, 10.1, 19, 20.2).splitlines() == [
        "2,000 of 12,345 files, about 52 s left",
        "4,000 of 12,345 files, about 42 s left",
    ]


def test_on_a_terminal_it_is_one_line_and_gone_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, Terminal(), 0.1, 0.4) == ""
    shown = told(monkeypatch, Terminal(), 0.6, 1.2)
    assert shown == "\r\x1b[K0 of 12,345 files\r\x1b[K1,000 of 12,345 files, about 14 s left\r\x1b[K"


def test_who_wants_no_notes_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, io.StringIO(), 11, 22, quiet=True) == ""
