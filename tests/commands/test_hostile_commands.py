"""Tests of hostile commands under a real worker: their outcomes, their logs, and the worker afterwards."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from pathlib import Path

import pytest

from codebatch.model.work.command import Command, CommandId
from codebatch.protocol.launch import ATTEMPT_VARIABLE, attempt_mark
from codebatch.store import layout
from codebatch.system.processes import proc
from codebatch.system.processes.memory import kill_marked
from tests.support.work_batches import Place, coordinating, make_place, wait_until

MB = 1 << 20


def command(run: str | tuple[str, ...], **keys: object) -> Command:
    """Return a command with some settings."""
    return Command(id=CommandId("a"), run=run, **keys)  # type: ignore[arg-type]


def run_command(place: Place) -> tuple[str, str | None, int | None]:
    """Run the command of a batch. Return type, reason and exit status of its outcome."""
    with coordinating(place) as coordinator:
        outcome = coordinator.do()
    return outcome.type, outcome.reason, outcome.exit_status


def run_until_it_is_on(
    directory: Path, script: str, **keys: object
) -> tuple[Place, tuple[str, str | None, int | None]]:
    """Run a script with longer and longer time limits, until it prints `on` in time. Return its batch and outcome."""
    for seconds in (0.3, 3.0, 30.0, 300.0):
        place = make_place(directory / f"{seconds}", command(script, timeout_seconds=seconds, **keys))
        end = run_command(place)
        if place.log().startswith(b"on\n"):
            return place, end
    raise AssertionError("the script does not begin")


@pytest.mark.parametrize("directory", ["${CODEBATCH_QUESTION%/*}", "${CODEBATCH_QUESTION%/*/*}"])
def test_attempt_that_removes_its_directory_affects_no_other_attempt(tmp_path: Path, directory: str) -> None:
    """The next attempt has a directory of its own with all files that its environment names."""
    check = 'test -d "$(dirname "$CODEBATCH_QUESTION")" && cat "$CODEBATCH_NEEDS"'
    place = make_place(tmp_path, command(f'rm -r "{directory}"'), Command(id=CommandId("b"), run=check))
    with coordinating(place) as coordinator:
        outcomes = [coordinator.do(item) for item in range(2)]
    assert [end.exit_status for end in outcomes] == [0, 0]
    assert place.log(1) == b"[]\n"


def test_log_directory_is_created_again_after_removal(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("true"), Command(id=CommandId("b"), run="echo on"))
    logs = place.batch.root / layout.LOGS
    with coordinating(place) as coordinator:
        coordinator.do(0)
        shutil.rmtree(logs)
        coordinator.do(1)
    assert place.log(1) == b"on\n"
    assert logs.stat().st_mode & 0o777 == 0o700


def test_time_limit_ends_a_command(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("sleep 1000", timeout_seconds=0.3))
    assert run_command(place) == ("failed", "timeout", -signal.SIGTERM)


def test_silence_limit_ends_a_command_and_output_extends_it(tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; sleep 1000"
    place = make_place(tmp_path, command(script, stall_seconds=2.5))
    assert run_command(place) == ("failed", "stall", -signal.SIGTERM)
    assert place.log() == b"1\n2\n3\n4\n5\n6\n7\n8\ncodebatch: no output for 2.5s\n"


def test_memory_limit_ends_a_command(tmp_path: Path) -> None:
    script = "python3 -c 'import time; x = bytearray([1]) * (80 << 20); time.sleep(1000)'"
    place = make_place(tmp_path, command(script, memory_mb_max=50))
    assert run_command(place) == ("failed", "memory", -signal.SIGTERM)
    ((attempt),) = place.ran()
    assert 50 * MB < attempt.memory_peak_bytes < 400 * MB


def test_peak_memory_of_a_short_command_is_known(tmp_path: Path) -> None:
    # A child inherits the peak of its parent, which is this process, so it must use more.
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + 100 * MB
    place = make_place(tmp_path, command(f"python3 -c 'b\"x\" * {size}'"))
    assert run_command(place) == ("result", None, 0)
    ((ran),) = place.ran()
    assert size < ran.memory_peak_bytes < size + 200 * MB


def test_command_that_ignores_term_is_killed_after_its_grace(tmp_path: Path) -> None:
    script = "trap '' TERM; echo on; while :; do sleep 0.05; done"
    place, end = run_until_it_is_on(tmp_path, script, grace_seconds=0.3)
    assert end == ("failed", "timeout", -signal.SIGKILL)
    assert place.log() == b"on\ncodebatch: time limit 0.3s\n"


def test_command_may_clean_up_within_its_grace(tmp_path: Path) -> None:
    script = "(trap 'sleep 0.4; echo cleaned' TERM; echo on; sleep 1000 & wait)"
    place, end = run_until_it_is_on(tmp_path, script)
    assert end[:2] == ("failed", "timeout")
    assert place.log().startswith(b"on\ncleaned\n"), "a process got no time to clean up after its shell ended"


def test_large_output_is_truncated_to_its_beginning_and_end(tmp_path: Path) -> None:
    script = "echo first; head -c 104857600 /dev/zero | tr '\\0' x; echo; echo last"
    place = make_place(tmp_path, command(script, log_mb_max=1))
    assert run_command(place) == ("result", None, 0)
    log = place.log()
    ((attempt),) = place.ran()
    assert attempt.output_bytes == 104857600 + len(b"first\n\nlast\n")
    assert log.startswith(b"first\nxxx")
    assert log.endswith(b"xxx\nlast\n")
    assert MB * 3 // 4 <= len(log) <= MB + 100
    assert b" bytes omitted " in log


def test_daemon_does_not_delay_the_end_and_is_named(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("setsid sleep 1000 & echo $!; sleep 0.1"))
    assert run_command(place) == ("result", None, 0)
    pid, note = place.log().decode().splitlines()
    ((attempt),) = place.ran()
    assert attempt.left == (f"{pid} sleep",)
    assert note == f"codebatch: keeps running: {pid} sleep"
    os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("leftovers", ["kill", "leave"])
def test_leftover_processes_are_killed_unless_configured_otherwise(tmp_path: Path, leftovers: str) -> None:
    place = make_place(tmp_path, command("sleep 1000 >/dev/null 2>&1 & echo $!", leftovers=leftovers))
    with coordinating(place) as coordinator:
        assert coordinator.do().type == "result"
        status = proc.process_stat(int(place.log()))
        assert (status is not None and not status.is_zombie) == (leftovers == "leave")
    if leftovers == "leave":
        os.kill(int(place.log()), signal.SIGKILL)


def test_exceeded_limit_leaves_no_process(tmp_path: Path) -> None:
    script = "setsid sh -c 'setsid sleep 1000 & sleep 1000' & for i in $(seq 20); do sleep 1000 & done; wait"
    place = make_place(tmp_path, command(script, timeout_seconds=0.5, grace_seconds=0.2))
    with coordinating(place) as coordinator:
        assert coordinator.do().reason == "timeout"
        assert proc.child_pids(coordinator.worker.process.pid) == []
        mark = attempt_mark(coordinator.worker.holder, place.plan.shards[0].id, 0, 1)
        assert kill_marked(ATTEMPT_VARIABLE, {mark}) == 0


def test_command_that_kills_its_worker_remains_with_its_mark(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("kill -9 $PPID; sleep 1000"))
    with coordinating(place) as coordinator:
        coordinator.assign()
        wait_until(lambda: coordinator.worker.has_ended)
        mark = attempt_mark(coordinator.worker.holder, place.plan.shards[0].id, 0, 1)
        assert kill_marked(ATTEMPT_VARIABLE, {mark}) >= 1
    assert place.outcomes() == []


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (command(("no-such-program",)), "no-such-program: No such file or directory"),
        (command("true", cwd="gone"), "gone: No such file or directory"),
        (command("true", stdin="file:gone"), "gone: No such file or directory"),
        (command("true", env={"A": "$NO_SUCH_VARIABLE"}), "environment: A: ${NO_SUCH_VARIABLE} is not set"),
    ],
)
def test_start_failure_is_explained_in_the_log(tmp_path: Path, one: Command, text: str) -> None:
    place = make_place(tmp_path, one)
    assert run_command(place) == ("failed", "start", None)
    assert text in place.log().decode()


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (
            b"#!/bin/sh\r\n",
            r"its interpreter '/bin/sh\r' does not exist: the script has CR LF line endings instead of LF",
        ),
        (b"#! /no/such -x\n", "its interpreter '/no/such' does not exist"),
    ],
)
@pytest.mark.parametrize("path", ["./script", "script"])
def test_missing_interpreter_of_a_script_is_named(tmp_path: Path, first: bytes, text: str, path: str) -> None:
    place = make_place(tmp_path, command((path,), env={"PATH": str(tmp_path / "root")}))
    script = place.root / "script"
    script.write_bytes(first + b"true\n")
    script.chmod(0o755)
    assert run_command(place) == ("failed", "start", None)
    assert f"script: {text}\n" in place.log().decode()


def test_command_sees_the_environment_of_the_caller_and_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLER", "s3cret")
    monkeypatch.delenv("LC_CTYPE", raising=False)
    monkeypatch.setenv("LANG", "C")
    monkeypatch.delenv("LC_ALL", raising=False)
    one = command("env; cat; cat $CODEBATCH_TEXT", env={"WORD": "$CALLER", "B": "b"}, text="the text\n", stdin="text")
    place = make_place(tmp_path, one)
    assert run_command(place) == ("result", None, 0)
    log = place.log().decode()
    assert log.endswith("the text\nthe text\n")
    variables = dict(line.split("=", 1) for line in log.splitlines() if "=" in line)
    assert (variables["WORD"], variables["B"], variables["CODEBATCH_TASK"], variables["CODEBATCH_ROUND"]) == (
        "s3cret",
        "b",
        "a",
        "1",
    )
    assert (variables["PWD"], variables["CODEBATCH_BATCH"]) == (str(place.root), place.batch.id)
    assert not {"CODEBATCH_HOLDER", "LC_CTYPE", "PYTHONHASHSEED", "PYTHONUTF8"} & (variables.keys() - os.environ.keys())
    assert "s3cret" not in (place.batch.root / layout.WORK_FILE).read_text()


def test_clean_environment_has_only_standard_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    place = make_place(tmp_path, command(("env",), clean_env=True, env={"B": "b"}))
    assert run_command(place) == ("result", None, 0)
    names = {line.partition("=")[0] for line in place.log().decode().splitlines()}
    own_names = {name for name in names if not name.startswith("CODEBATCH_")}
    assert {"PATH", "B"} <= own_names <= {"PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD", "B"}


_FILES_GIVEN = ("CODEBATCH_TEXT", "CODEBATCH_PREVIOUS_LOG", "CODEBATCH_NEEDS", "CODEBATCH_ANSWERS")


def test_command_may_change_and_remove_all_given_files(tmp_path: Path) -> None:
    """No variable names a file outside of the attempt's directory, such as a device."""
    prints = "; ".join(f'dirname "${name}"; cat "${name}"' for name in _FILES_GIVEN)
    harms = [f'echo more >> "${name}"' for name in _FILES_GIVEN]
    harms += [f'rm -r "$(dirname "${_FILES_GIVEN[0]}")"']
    scripts = [f"{prints}; {harm}" for harm in (*harms, "true")]
    place = make_place(tmp_path, *(Command(id=CommandId(f"c{n}"), run=script) for n, script in enumerate(scripts)))
    with coordinating(place) as coordinator:
        assert {coordinator.do(item).type for item in range(len(scripts))} == {"result"}
    for item in range(len(scripts)):
        lines = place.log(item).decode().splitlines()
        assert [line for line in lines if line[0] != "/"] == ["[]", "[]"], (
            "a file that an earlier command changed is not empty"
        )
        (directory,) = {Path(line) for line in lines if line[0] == "/"}
        assert directory.parent.parent == place.batch.root / layout.SCRATCH
