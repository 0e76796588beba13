"""Tests with real processes that work batches do not have the faults W1 to W21 of an earlier conductor.

W13, the cost of a command, is a row of `python -m bench commands`. W16, a work tree for each task, and W18, a page,
concern features that do not exist yet.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, wait_until, write

ENDS = {"BATCH_COMPLETED", "BATCH_PARTIAL", "BATCH_FAILED", "BATCH_CANCELLED"}


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """The command line in a separate directory `project`."""
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path / "project")


def recording_command(task: str, then: str = "true", *, waits_for: str = "") -> str:
    """Return a shell command that records its start and end in `told`, and waits for a file in between."""
    wait = f"while [ ! -e {waits_for} ]; do sleep 0.02; done; " if waits_for else ""
    return f"echo {task} begins >>told; {wait}{then}; s=$?; echo {task} ends >>told; exit $s"


def make_list(line: CommandLine, tasks: dict[str, tuple[str, str]], top: str = "") -> None:
    """Write work.toml with a command and further keys for each task."""
    tables = [f"[tasks.{name}]\nrun = {json.dumps(run)}\n{keys}\n" for name, (run, keys) in tasks.items()]
    write(line.directory / "work.toml", "\n".join([top, *tables]))


def recorded_lines(line: CommandLine) -> list[str]:
    path = line.directory / "told"
    return path.read_text().splitlines() if path.exists() else []


def status(line: CommandLine) -> dict[str, Any]:
    answer = line("status", "--json").json
    assert isinstance(answer, dict)
    return answer


def states(line: CommandLine) -> dict[str, str]:
    return {task["id"]: task["state"] for task in status(line)["tasks"]}


def start(line: CommandLine, *begun: str) -> subprocess.Popen[bytes]:
    """Start a run in the background, and return its process once these tasks have begun."""
    process = line.start("work", "run")
    wait_until(lambda: {f"{name} begins" for name in begun} <= {*recorded_lines(line)}, f"{begun} have begun")
    return process


def go(line: CommandLine, name: str = "go") -> None:
    write(line.directory / name, "")


def kill_all(line: CommandLine, process: subprocess.Popen[bytes]) -> None:
    """Send SIGKILL to the coordinator and to all workers."""
    workers = [worker["pid"] for worker in status(line)["workers"]]
    for pid in (process.pid, *workers):
        os.kill(pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("top", ['strategy = "serial"', "max_parallel = 4"])
def test_w1_dependents_of_failed_or_blocked_tasks_do_not_run(line: CommandLine, top: str) -> None:
    tasks = {
        "last": (recording_command("last"), 'needs = ["first"]'),
        "behind": (recording_command("behind"), 'needs = ["fails"]'),
        "first": (recording_command("first"), ""),
        "fails": (recording_command("fails", "false"), ""),
        "asked": (
            recording_command("asked", waits_for="never"),
            'if_interrupted = "ask"\nneeds = ["last", "fails-not"]',
        ),
        "fails-not": (recording_command("fails-not"), 'after = ["fails"]'),
        "behind-asked": (recording_command("behind-asked"), 'needs = ["asked"]'),
    }
    make_list(line, tasks, top)
    process = start(line, "asked")
    kill_all(line, process)
    line("resume", status=3)
    assert states(line)["behind"] == "SKIPPED"
    assert (states(line)["asked"], states(line)["behind-asked"]) == ("BLOCKED", "PENDING")
    assert not {"behind begins", "behind-asked begins"} & {*recorded_lines(line)}
    assert recorded_lines(line).index("first ends") < recorded_lines(line).index("last begins")


def test_w2_task_waits_for_its_needs_but_not_for_a_level(line: CommandLine) -> None:
    tasks = {
        "long": (recording_command("long", waits_for="go"), ""),
        "short": (recording_command("short"), ""),
        "next": (recording_command("next"), 'needs = ["short"]'),
        "then": (recording_command("then"), 'needs = ["next"]'),
    }
    make_list(line, tasks, "max_parallel = 2")
    process = start(line, "long")
    wait_until(lambda: "then ends" in recorded_lines(line), "the short chain ends beside the long task")
    go(line)
    line.finish(process)


def test_w3_interrupted_run_starts_no_pending_task_and_can_be_resumed(line: CommandLine) -> None:
    tasks = {f"t{n}": (recording_command(f"t{n}", waits_for="go"), "") for n in range(6)}
    make_list(line, tasks, "max_parallel = 2")
    process = start(line, "t0", "t1")
    process.send_signal(signal.SIGINT)
    journals = next((line.directory / ".codebatch" / "batches").glob("*/journal"))
    wait_until(lambda: any(b'"drained"' in each.read_bytes() for each in journals.iterdir()), "the signal is recorded")
    go(line)
    line.finish(process, status=130)
    assert sum(each.endswith("begins") for each in recorded_lines(line)) == 2
    assert status(line)["stalled"]
    assert line("resume", "--json").json["counts"] == {"DONE": 6}
    assert sum(each.endswith("begins") for each in recorded_lines(line)) == 6


def test_w4_w17_dead_runner_is_replaced_and_blocks_no_other_batch(line: CommandLine) -> None:
    tasks = {f"t{n}": (recording_command(f"t{n}", waits_for="go"), "") for n in range(3)}
    make_list(line, tasks, "max_parallel = 3")
    process = start(line, *tasks)
    process.kill()
    process.communicate()
    assert {*states(line).values()} == {"RUNNING"}
    assert status(line)["coordinator"] is None
    go(line)
    assert line("resume", "--json").json["status"] == "COMPLETED"
    assert len(recorded_lines(line)) == 6  # No task was started again.

    (line.directory / "go").unlink()
    kill_all(line, start_again(line))
    go(line)
    line("work", "run", "--json")
    assert [row["status"] for row in line("batch", "list", "--json").json] == ["COMPLETED", "RUNNING", "COMPLETED"]


def start_again(line: CommandLine) -> subprocess.Popen[bytes]:
    before = len(recorded_lines(line))
    process = line.start("work", "run")
    wait_until(lambda: len(recorded_lines(line)) == before + 3, "all tasks begin again")
    return process


def test_w5_w6_cancel_from_another_process_stops_the_batch_for_good(
    line: CommandLine,
) -> None:
    tasks = {f"t{n}": (recording_command(f"t{n}", waits_for="never"), "grace_seconds = 0.1") for n in range(5)}
    make_list(line, tasks, "max_parallel = 2")
    process = start(line, "t0", "t1")
    assert line("cancel", "--json").json["status"] == "CANCELLED"
    assert "was cancelled" in line.finish(process, status=3).notes
    assert sorted(recorded_lines(line)) == ["t0 begins", "t1 begins"]
    assert (status(line)["status"], status(line)["counts"]) == ("CANCELLED", {"CANCELLED": 5})
    assert line("batch", "list", "--json").json[0]["status"] == "CANCELLED"


def test_w7_outcomes_before_a_cancel_remain_and_resume_runs_the_rest(line: CommandLine) -> None:
    tasks = {
        "done": (recording_command("done"), ""),
        "runs": (recording_command("runs", waits_for="go"), 'needs = ["done"]\ngrace_seconds = 0.1'),
    }
    make_list(line, tasks)
    process = start(line, "runs")
    line("cancel")
    line.finish(process, status=3)
    assert states(line) == {"done": "DONE", "runs": "CANCELLED"}
    go(line)
    assert line("resume", "--json").json["counts"] == {"DONE": 2}
    assert recorded_lines(line).count("done begins") == 1


def test_w8_attempt_without_outcome_does_not_inherit_the_previous_one(line: CommandLine) -> None:
    make_list(line, {"one": (recording_command("one", "test ! -e broken || kill -9 $PPID"), "restarts_max = 1")})
    assert line("work", "run", "--json").json["status"] == "COMPLETED"
    go(line, "broken")  # From now on, the task kills the worker that would record its end.
    ended = json.loads(line("resume", "--force", "--json", status=3).stdout)
    assert [(task["state"], task["reason"], task["round"]) for task in ended["tasks"]] == [("FAILED", "interrupted", 2)]


def test_w9_w10_follow_prints_every_event_of_a_burst_and_one_end(line: CommandLine) -> None:
    burst = {
        f"t{n}": (f"test $(echo >>t{n}; wc -l <t{n}) -ge 2", "retries = 1\nbackoff_seconds = 0") for n in range(40)
    }
    make_list(line, {"first": (recording_command("first", waits_for="go"), ""), **burst}, "max_parallel = 8")
    process = start(line, "first")
    follower = line.start("follow", "--json")
    go(line)
    line.finish(process)
    followed = [json.loads(event) for event in line.finish(follower).lines]
    assert followed == [json.loads(event) for event in line("events", "--json").lines]
    assert [event["seq"] for event in followed] == list(range(1, len(followed) + 1))
    started = [(event["task"], event["try"]) for event in followed if event["event"] == "BATCH_TASK_STARTED"]
    assert sorted(started) == sorted([("first", 1), *((name, n) for name in burst for n in (1, 2))])
    assert [event["event"] for event in followed if event["event"] in ENDS] == ["BATCH_COMPLETED"]


def test_w10_follow_of_a_dead_runner_fails_instead_of_hanging(line: CommandLine) -> None:
    make_list(line, {"one": (recording_command("one", waits_for="go"), "")})
    process = start(line, "one")
    follower = line.start("follow")
    kill_all(line, process)
    assert "is not running" in line.finish(follower, status=3).notes
    go(line)


def test_w11_deep_chain_of_needs_does_not_exceed_the_recursion_limit(line: CommandLine) -> None:
    names = [f"t{n}" for n in range(1200)]
    chain = {on: ("false", f'needs = ["{before}"]') for before, on in itertools.pairwise(names)}
    make_list(line, {"t0": ("false", ""), **chain})
    assert json.loads(line("work", "run", "--json", status=3).stdout)["counts"] == {"FAILED": 1, "SKIPPED": 1199}


def test_w12_killed_runner_with_strategy_auto_repeats_no_task(line: CommandLine) -> None:
    tasks = {
        "3-last": (recording_command("3-last"), 'text = "Depends on 2-next."'),
        "2-next": (recording_command("2-next", waits_for="go"), 'text = "After 1-first is done."'),
        "1-first": (recording_command("1-first"), ""),
    }
    make_list(line, tasks, 'strategy = "auto"')
    process = start(line, "2-next")
    process.kill()
    process.communicate()
    go(line)
    assert line("resume", "--json").json["status"] == "COMPLETED"
    assert recorded_lines(line) == [
        f"{name} {word}" for name in ("1-first", "2-next", "3-last") for word in ("begins", "ends")
    ]


def test_w14_concurrent_cancel_status_and_resume_are_consistent(line: CommandLine) -> None:
    tasks = {f"t{n}": (recording_command(f"t{n}", waits_for="go"), "grace_seconds = 0.1") for n in range(4)}
    make_list(line, tasks, "max_parallel = 4")
    process = start(line, *tasks)
    cancels = [line.start("cancel", "--json") for _ in range(3)]
    looks = [line.start("status", "--json") for _ in range(3)]
    for command in (*cancels, *looks):
        command.wait()
    for look in looks:
        assert json.loads(line.finish(look).stdout)["status"] in ("RUNNING", "CANCELLED")
    # A cancel that comes after the end fails.
    assert {command.returncode for command in cancels} <= {0, 2}
    for command in cancels:
        command.communicate()
    line.finish(process, status=3)
    assert status(line)["counts"] == {"CANCELLED": 4}
    go(line)
    resumes = [line.start("resume", "--json") for _ in range(3)]
    for command in resumes:
        command.communicate()
    assert 0 in {command.returncode for command in resumes}
    assert status(line)["counts"] == {"DONE": 4}
    assert sorted(recorded_lines(line).count(f"{name} ends") for name in tasks) == [1, 1, 1, 1]


def test_w15_timeout_kills_the_process_tree_of_a_stubborn_task(line: CommandLine) -> None:
    child = "trap '' TERM; echo $$ >>pids; while :; do sleep 0.05; done"
    run = f"sh -c {shlex.quote(child)} & setsid sh -c {shlex.quote(child)} & {child}"
    pids: list[int] = []
    for seconds in (0.5, 5, 50):  # On a slow machine, the first limits end the task before it has begun.
        (line.directory / "pids").write_text("")
        make_list(line, {"one": (run, f"timeout_seconds = {seconds}\ngrace_seconds = 0.1")})
        ended = json.loads(line("work", "run", "--json", status=3).stdout)
        assert ended["tasks"][0]["reason"] == "timeout"
        pids = [int(pid) for pid in (line.directory / "pids").read_text().split()]
        if len(pids) == 3:
            break
    assert len(pids) == 3
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_w19_eta_covers_parallel_tasks_and_decreases(
    line: CommandLine,
) -> None:
    make_list(line, {f"t{n}": (recording_command(f"t{n}", "sleep 3"), "") for n in range(4)}, "max_parallel = 4")
    line("work", "run")
    attempts = [line("work", "attempts", f"t{n}", "--json").json for n in range(4)]
    serial_seconds = sum(attempt["seconds"] for [attempt] in attempts)
    process = line.start("work", "run")
    seen: list[list[float]] = []

    def is_less_left() -> bool:
        seen.append(status(line)["eta_seconds"] or [0.0, 99.0, 0.0])
        return seen[-1][1] < seen[0][1]

    wait_until(lambda: status(line)["eta_seconds"] is not None, "the remaining time is estimated")
    wait_until(is_less_left, "the estimate decreases")
    line.finish(process)
    assert seen[0][2] < serial_seconds


def test_w20_inferred_dependency_has_evidence_and_changes_no_task_list(line: CommandLine) -> None:
    make_list(line, {"1-first": ("true", ""), "next": ("true", 'text = "After 1-first is done."')}, 'strategy = "auto"')
    before = (line.directory / "work.toml").read_bytes()
    (edge,) = line("work", "analyze", "--json").json["edges"]
    assert (edge["source"], edge["evidence"]) == ("inferred", "its text: “After 1-first is done.”")
    assert "its text: “After 1-first is done.”" in line("work", "run").notes
    assert (line.directory / "work.toml").read_bytes() == before


@pytest.mark.parametrize("top", ['strategy = "serial"', "max_parallel = 2"])
def test_w21_run_resume_and_selection_reach_the_same_states(line: CommandLine, top: str) -> None:
    tasks = {
        "ok": (recording_command("ok"), ""),
        "fails": (recording_command("fails", "test -e mended"), 'needs = ["ok"]'),
        "behind": (recording_command("behind"), 'needs = ["fails"]'),
        "whatever": (recording_command("whatever"), 'after = ["behind"]'),
    }
    make_list(line, tasks, top)
    line("work", "run", status=3)
    expected = {"ok": "DONE", "fails": "FAILED", "behind": "SKIPPED", "whatever": "DONE"}
    assert states(line) == expected
    line("resume", status=3)
    assert states(line) == expected
    line("work", "run", "fails", status=3)
    assert states(line) == {"ok": "DONE", "fails": "FAILED"}
    go(line, "mended")
    line("work", "run")
    assert {*states(line).values()} == {"DONE"}
