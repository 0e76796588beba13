"""Runs on the engine `local:2`: the outputs, what is reused, and how they end."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from codebatch.system.files.locked_directories import ENGINE_PREFIX as PREFIX
from tests.support.command_line import CommandLine, wait_until, write
from tests.support.parts import NAMES_OF_A_TREE, make_tree, read_outputs

pytestmark = pytest.mark.slow

SLOW_TASK = """
import time
from pathlib import Path

def task(file):
    if b"slow" in file.path:
        Path({begun!r}).touch()
        while not Path({go!r}).exists():
            time.sleep(0.05)
    return ()
"""

ELSEWHERE = """
if "codebatch-engine-" in __file__:
    import no_such_module

def task(file):
    return ()
"""


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """The command line in a tree of several shards with custom tasks, in which one file fails."""
    return _line(make_tree(tmp_path / "tree", [*NAMES_OF_A_TREE, "fail.py"]))


def _line(tree: Path) -> CommandLine:
    """Return the command line in a tree. Its temporary files are elsewhere, so that they are in no snapshot."""
    line = CommandLine(tree)
    line.environment["TMPDIR"] = str(tree.parent)
    return line


def run(line: CommandLine, store: Path, *words: str, status: int = 3) -> dict[str, Any]:
    """Run on two processes, and return the answer."""
    answer: dict[str, Any] = line("run", ".", "--on", "local:2", "--store", store, "--json", *words, status=status).json
    return answer


def test_outputs_are_those_of_a_run_without_engine(line: CommandLine, tmp_path: Path) -> None:
    ran = line("run", ".", "--on", "local:2", "--store", tmp_path / "there", "--json", status=3)
    assert (ran.json["failures"], ran.json["reused"]) == (1, 0)
    assert ran.json["executed"] == 6 * ran.json["files"]
    reason = "its cache key does not cover all inputs (reuse = false)"
    assert f"the task marked runs on this machine: {reason}" in ran.notes
    line("run", ".", "--store", tmp_path / "here", status=3)
    assert read_outputs(tmp_path / "there") == read_outputs(tmp_path / "here")
    events = [json.loads(event)["event"] for event in line("events", "--store", tmp_path / "there", "--json").lines]
    assert events[0] == "BATCH_STARTED"
    assert "BATCH_RESUMED" not in events, "the engine and this machine are one run"
    journals = [path.read_text() for path in tmp_path.glob("there/batches/*/journal/*")]
    received = [json.loads(text) for text in "".join(journals).splitlines() if '"part_received"' in text]
    assert sum(event["results"] for event in received) == 5 * ran.json["files"]
    assert {event["host"] for event in received} == {socket.gethostname()}
    trace = json.loads(line("trace", "--store", tmp_path / "there", "--output", "-").stdout)["traceEvents"]
    tracks = [event["args"]["name"] for event in trace if event["name"] == "thread_name"]
    assert f"{socket.gethostname()}, slot 1" in tracks
    assert sum(event["name"].startswith("part with ") for event in trace) == len(received)
    assert len(received) > 2, "the costs of custom tasks are unknown, so each slot gets several parts"


def test_results_are_reused_before_anything_is_sent(line: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    first = run(line, store)
    assert run(line, store)["action"] == "already ended"
    write(line.directory / "a.py", "import sys\n")
    second = run(line, store)
    assert second["executed"] < first["executed"] / 3
    assert second["reused"] > first["executed"] / 2
    again = run(line, store, "--again")
    assert (again["reused"], again["executed"]) == (0, again["files"] * 6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "local:2", "--part", "1/2"], "--part cannot be used with --on"),
        (["--on", "local:2", "--task", "lint"], "--task cannot be used with --on"),
        (["--on", "local:2", "--emit-ast"], "--emit-ast cannot be used with --on"),
        (["--on", "local:2", "--dry-run"], "--dry-run cannot be used with --on"),
        (["--on", "local:2", "--batch", "latest"], "--batch cannot be used with --on"),
        (["--on", "local:2", "--shuffle", "0"], "--shuffle cannot be used with --on"),
        (["--tls-key", "x"], "--tls-key is used without --on"),
        (["--on", "local:0"], "'local:0' is not valid"),
        (["--on", "local:2", "--tls-ca", "x"], "does not use --tls-ca"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_written(
    line: CommandLine, tmp_path: Path, words: list[str], message: str
) -> None:
    assert message in line("run", ".", "--store", tmp_path / "store", *words, status=2).notes
    assert not (tmp_path / "store").exists()


def _slow_tree(tmp_path: Path, names: list[str]) -> CommandLine:
    tree = make_tree(tmp_path / "tree", names)
    write(tree / "picky.py", SLOW_TASK.format(begun=str(tmp_path / "begun"), go=str(tmp_path / "go")))
    return _line(tree)


@pytest.mark.parametrize("ending", ["signal", "cancel", "kill"])
def test_an_interrupted_run_is_continued(tmp_path: Path, ending: str) -> None:
    line = _slow_tree(tmp_path, [*NAMES_OF_A_TREE, "slow.py"])
    store = tmp_path / "store"
    process = line.start("run", ".", "--on", "local:2", "--store", store)
    wait_until((tmp_path / "begun").exists, "a part begins")
    if ending == "signal":
        process.send_signal(signal.SIGINT)
        ended = line.finish(process, status=130)
        assert "stopped while local:2 was running parts" in ended.notes
        assert "run the same command again" in ended.notes
    elif ending == "cancel":
        line("cancel", "--store", store)
        line.finish(process, status=3)
        assert line("status", "--store", store, "--json").json["status"] == "CANCELLED"
    else:
        process.kill()
        process.communicate()
    wait_until(lambda: not list(tmp_path.glob(f"{PREFIX}*")), "the directories of parts are removed")
    write(tmp_path / "go", "")
    run(line, store, status=0)
    line("run", ".", "--store", tmp_path / "here")
    assert read_outputs(store) == read_outputs(tmp_path / "here")


def test_a_second_run_waits_for_parts_that_are_out(tmp_path: Path) -> None:
    line = _slow_tree(tmp_path, [*NAMES_OF_A_TREE, "slow.py"])
    store = tmp_path / "store"
    first = line.start("run", ".", "--on", "local:2", "--store", store, "--json")
    wait_until((tmp_path / "begun").exists, "a part begins")
    second = line.start("run", ".", "--store", store, "--json")
    wait_until(lambda: len(list(store.glob("batches/*/journal/*"))) > 1, "the second run begins")
    write(tmp_path / "go", "")
    answers = [line.finish(process).json for process in (first, second)]
    assert answers[0]["result_digest"] == answers[1]["result_digest"]
    line("run", ".", "--store", tmp_path / "here")
    assert read_outputs(store) == read_outputs(tmp_path / "here")


def test_check_lists_the_processes_and_what_they_cannot_run(line: CommandLine) -> None:
    checked = line("engine", "check", "--on", "local:2", "--json").json
    assert (checked["engine"], checked["slots"], len(checked["processes"])) == ("local:2", 2, 2)
    assert {process["problem"] for process in checked["processes"]} == {""}
    assert "ready" in line("engine", "check", "--on", "local:1").text
    write(line.directory / "codebatch.toml", '[tasks.x]\npython = "x.py:task"\n[pipelines.p]\ntasks = ["x"]\n')
    write(line.directory / "x.py", "import no_such_module\n\n\ndef task(file):\n    return ()\n")
    assert "no_such_module" in line("engine", "check", "--on", "local:1", "--pipeline", "p", status=2).notes
    write(line.directory / "x.py", ELSEWHERE)
    refused = line("engine", "check", "--on", "local:2", "--pipeline", "p", status=3)
    assert "2 of 2 processes cannot run these tasks" in refused.notes
    assert refused.text.count("no_such_module") == 2
    assert "the option --on is missing" in line("engine", "check", status=2).notes
