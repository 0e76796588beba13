"""An error at the system's process limit is reported as a problem of the machine, not as a bug."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.system.processes.forks import call_isolated
from codebatch.system.processes.processes import start_process


def _start_worker() -> None:
    start_process(["true"], cwd=Path(), environment={}, inherited=(), stderr=2)


def _fork() -> None:
    with call_isolated(str, ["x"], str, seconds=1.0):
        pass


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
@pytest.mark.parametrize("start", [_start_worker, _fork])
def test_error_at_the_process_limit_suggests_ulimit(
    start: Callable[[], None], number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert run_to_exit_status(click.Command("run", callback=start), []) == 4
    message = capsys.readouterr().err
    assert message.startswith(f"error: cannot start a process: {os.strerror(number)}\nhint: ")
    assert "ulimit -u" in message
