"""A forked command has the same output as the script, and never makes its caller wait forever."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tests.support.command_line import SCRIPT, CommandLine
from tests.support.fork_server import LOCALE, run_forked, started

from .conftest import Ran

ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": LOCALE}


def test_forked_command_has_the_output_of_the_script(ran: Ran) -> None:
    of_its_own = CommandLine(ran.codebatch.directory, prefix=("env",))
    for status, words in (
        (0, ("--version",)),
        (0, ("query", "outputs", "--store", "store")),
        (2, ("nonsense",)),
        (4, ("summary", "--store", "nowhere", "--json")),
    ):
        forked = ran.codebatch(*words, status=status)
        script = of_its_own(*words, status=status)
        assert (forked.stdout, forked.stderr) == (script.stdout, script.stderr)


def test_command_with_interpreter_variables_is_not_forked(tmp_path: Path) -> None:
    for name in ("PYTHONPATH", "LC_CTYPE", "LANG"):
        assert run_forked([SCRIPT, "--version"], tmp_path, {**ENVIRONMENT, name: "C"}, 9.0) is None
    assert run_forked([SCRIPT, "--version"], tmp_path, {**ENVIRONMENT, "CODEBATCH_STORE": "x"}, 9.0) is not None


def test_fork_server_runs_one_command_at_a_time_and_reports_a_kill(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with open(os.devnull, "r+b") as nothing, open(reading, "rb"), open(writing, "wb") as full:
        os.write(writing, bytes(fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)))
        descriptors = [nothing.fileno(), full.fileno(), nothing.fileno()]
        with started([SCRIPT, "--version"], tmp_path, ENVIRONMENT, descriptors) as waiting:
            assert waiting is not None
            assert run_forked([SCRIPT, "--version"], tmp_path, ENVIRONMENT, 9.0) is None
            waiting.kill()
            assert waiting.wait() == -9
    assert run_forked([SCRIPT, "--version"], tmp_path, ENVIRONMENT, 9.0) is not None
