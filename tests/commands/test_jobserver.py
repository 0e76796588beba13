"""The jobserver of GNU make: commands of tasks do not inherit its pipe, so they are not told of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.system.processes.environment import original_environment, without_jobserver

FLAGS = {
    "": "",
    "k": "k",
    " -j2 --jobserver-auth=3,4": "",
    "kw -j2 --jobserver-auth=3,4 -Oline": "kw -Oline",
    "w -j --jobserver-fds=3,4 -- V=1 X=-j2": "w -- V=1 X=-j2",
    "-j --jobserver-fds=8,11 --jobserver-auth=8,11": "",
    " -j2 --jobserver-auth=fifo:/nothing": "",
    " -j8": " -j8",
    "w -- X=--jobserver-auth=3,4": "w -- X=--jobserver-auth=3,4",
    " -j3 --jobserver-auth=-2,-2": "",
}


@pytest.mark.parametrize(("flags", "expected"), FLAGS.items())
@pytest.mark.parametrize("name", ["MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS"])
def test_unreachable_jobserver_is_removed(name: str, flags: str, expected: str) -> None:
    assert without_jobserver({name: flags, "OTHER": flags}) == {name: expected, "OTHER": flags}


def test_jobserver_with_a_fifo_is_kept_while_the_fifo_exists(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    flags = {"MAKEFLAGS": f" -j2 --jobserver-auth=fifo:{fifo}"}
    fifo.touch()
    assert without_jobserver(flags) == {"MAKEFLAGS": ""}
    fifo.unlink()
    os.mkfifo(fifo)
    assert without_jobserver(flags) == flags


def test_commands_get_no_jobserver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "k -j2 --jobserver-auth=3,4")
    assert original_environment()["MAKEFLAGS"] == "k"
