"""Nights of twelve paid agents whose calls a meter counts: no call is paid twice, and all that failed is named.

`CODEBATCH_TEST_NIGHT_SECONDS` is the time between two kills, and how long an agent works is half of it.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.bad_input.test_full_disk import resize, small_disk, used_pages
from tests.cli.work.test_work import line, states, status
from tests.support.command_line import CommandLine, wait_until, write
from tests.support.git_repositories import git

__all__ = ["line", "small_disk"]

pytestmark = pytest.mark.slow

KILL_SECONDS = float(os.environ.get("CODEBATCH_TEST_NIGHT_SECONDS", "1"))
AGENTS = [f"agent/{number:02}" for number in range(1, 13)]
RUNS_MAX = 20
AGENT = f"""\
echo "$1" >>"$METER"
sleep {KILL_SECONDS / 2}
case $1 in
agent/03) echo 'def f(:' >broken.py ;;
agent/05) exit 1 ;;
agent/07) [ "$(grep -cx "$1" "$METER")" -gt 1 ] || {{ echo "quota: retry after 1 seconds"; exit 0; }} ;;
esac
echo "x = 1" >"$(basename "$1")_made.py"
echo '{{"usd": 1}}'
"""
HEAD = """\
strategy = "parallel"
cost_unit = "USD"
"""
TASKS = """\
[pools]
agents = { size = 3 }
[defaults]
pools = { agents = 1 }
result = { cost = "/usd" }
[tasks.agent]
run = "sh agent.sh {id}"
each = { values = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12"] }
"""


@pytest.fixture
def night(line: CommandLine) -> CommandLine:
    """A project with the agents. `meter` beside it has a line for each call."""
    line.environment |= {"METER": str(line.directory.parent / "meter"), "HOME": str(line.directory.parent / "home")}
    write(line.directory / "agent.sh", AGENT)
    write(line.directory / ".gitignore", ".codebatch\nseen*\n")
    return line


def write_list(line: CommandLine, top: str = "", defaults: str = "", notify: str = "cat >>seen") -> None:
    text = TASKS.replace("[tasks.agent]", f"{defaults}[tasks.agent]")
    write(line.directory / "work.toml", f"{HEAD}{top}notify = {{ command = '{notify}' }}\n{text}")


def calls(line: CommandLine) -> Counter[str]:
    """Count the calls of each agent on the meter."""
    meter = Path(line.environment["METER"])
    return Counter(meter.read_text().split() if meter.exists() else ())


def interruptible(counted: Counter[str]) -> Counter[str]:
    """Leave out the agent that fails by itself, as each `resume` tries it again."""
    return Counter({task: count for task, count in counted.items() if task != "agent/05"})


def attempts(line: CommandLine) -> Counter[str]:
    """Count the attempts of each agent that codebatch lists."""
    return Counter(row["task"] for row in line("work", "attempts", "--json").json)


def processes(line: CommandLine) -> list[psutil.Process]:
    """Return all processes of the night: the runner, workers, and commands."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("METER") == line.environment["METER"]:
                found.append(process)
        except psutil.Error:
            continue
    return found


def signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to all processes that have not ended."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def kill_all(line: CommandLine) -> None:
    """Kill all processes at once, as a power failure does."""
    signal_all(processes(line), signal.SIGKILL)


def run_with_kills(line: CommandLine) -> None:
    """Run the list, kill everything again and again, each time later, and resume until a run ends by itself."""
    words = ["work", "run", "-q"]
    for number in range(RUNS_MAX):
        process = line.start(*words)
        ends_at = time.monotonic() + KILL_SECONDS * (2 + number)
        while process.poll() is None and time.monotonic() < ends_at:
            time.sleep(0.02)
        if process.poll() is not None and process.returncode != -signal.SIGKILL:
            line.finish(process, status=3)
            return
        kill_all(line)
        process.communicate()
        if line.ends("status").status == 0:
            words = ["resume", "-q"]
    pytest.fail("the night never ended")


def last_message(line: CommandLine) -> dict[str, Any]:
    """Return the last event that the `[notify]` command received."""
    message = json.loads((line.directory / "seen").read_text().splitlines()[-1])
    assert isinstance(message, dict)
    return message


def test_killed_agents_are_never_paid_twice_and_gates_see_all_that_they_made(night: CommandLine) -> None:
    write_list(
        night,
        defaults='if_interrupted = "fail"\nisolation = "worktree"\n',
        notify="test -e ../down && exit 7; cat >>seen",
    )
    write(night.directory.parent / "down", "")
    git(night.directory, "init", "-q")
    git(night.directory, "add", ".")
    git(night.directory, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "agents")
    run_with_kills(night)
    counted, ended = calls(night), states(night)
    assert set(interruptible(counted).values()) == {1}, "an agent was called twice"
    failed = sorted(task for task, state in ended.items() if state == "FAILED")
    done = sorted(task for task, state in ended.items() if state == "DONE")
    assert sorted([*failed, *done]) == AGENTS
    assert set(done) <= set(counted)
    assert "failed: exit status 7, 3 tries" in night("status").text
    (night.directory.parent / "down").unlink()
    night("resume", "-q", status=3)
    assert interruptible(calls(night)) == interruptible(counted), "resume paid again for what a person should decide"
    counted = calls(night)
    night("work", "retry", failed[0], status=3)
    assert sum(calls(night).values()) == sum(counted.values()) + 1
    still = sorted(task for task, state in states(night).items() if state == "FAILED")
    assert last_message(night)["failed_tasks"] == still
    if "agent/03" in done:
        assert "broken.py" in night("changes", "--refused").text
    night("apply", status=1 if done == ["agent/03"] else 0)
    assert not (night.directory / "broken.py").exists()


def test_caps_and_quotas_hold_over_kills(night: CommandLine) -> None:
    quota = "wait_if = { pattern = 'retry after (?P<seconds>[0-9]+)', exits = [0] }\n"
    write_list(night, "attempts_max = 20\ncost_max = 8\n", quota)
    run_with_kills(night)
    answer = status(night)
    assert {cap["cap"] for cap in answer["caps"]} <= {"cost_max", "attempts_max"}
    assert answer["caps"], "the night ended without a cap"
    counted, listed = calls(night), attempts(night)
    assert sum(listed.values()) <= 20
    assert all(counted[task] <= listed[task] for task in counted), "a call is missing in the attempts"
    paid = sum(count for task, count in counted.items() if states(night)[task] == "DONE")
    assert paid <= 8 + 2, "more calls than the cap and two that ran when it was met"
    batch = answer["batch_id"]
    night("work", "set", "cost-max=100", "attempts-max=100", "--batch", batch)
    night("resume", "-q", status=3)
    assert [task for task, state in states(night).items() if state != "DONE"] == ["agent/05"]
    assert last_message(night)["failed_tasks"] == ["agent/05"]
    assert all(counted[task] <= listed[task] for task in counted)


def test_full_disk_ends_the_night_and_no_call_is_lost(night: CommandLine, small_disk: Path) -> None:
    write_list(night)
    store = small_disk / "store"
    words: list[str | Path] = ["work", "run", "-q", "--store", store]
    statuses: list[int] = []
    for pages in range(8, 400, 8):
        resize(small_disk, used_pages(small_disk) + pages)
        statuses.append(night.ends(*words).status)
        if statuses[-1] == 3:
            break
        if (store / "batches").is_dir() and any((store / "batches").iterdir()):
            words = ["resume", "-q", "--batch", "latest", "--store", store]
    assert statuses[-1] == 3
    assert 4 in statuses, "the disk was never full"
    answer = night("status", "--store", store, "--json").json
    assert sorted(task["id"] for task in answer["tasks"] if task["state"] != "DONE") == ["agent/05"]
    rows = night("work", "attempts", "--store", store, "--json").json
    listed = Counter(row["task"] for row in rows)
    assert all(count <= listed[task] for task, count in calls(night).items())


def test_frozen_and_rebooted_night_begins_at_its_time(night: CommandLine) -> None:
    write_list(night, defaults='if_interrupted = "fail"\n')
    begin = datetime.datetime.now().astimezone() + datetime.timedelta(seconds=3)
    night("work", "run", "--detach", "--at", begin.isoformat())
    time.sleep(1)
    assert not calls(night)
    kill_all(night)
    recipe = f'cd "{night.directory}" && PATH="{night.environment["PATH"]}" METER="$M" codebatch resume >>seen.log 2>&1'
    environment = {"M": night.environment["METER"], "HOME": night.environment["HOME"]}
    resumed = subprocess.Popen(["/bin/sh", "-c", recipe], env=environment)
    wait_until(lambda: len(calls(night)) >= 3, "agents work")
    assert datetime.datetime.now().astimezone() >= begin
    stopped = processes(night)
    signal_all(stopped, signal.SIGSTOP)
    time.sleep(2 * KILL_SECONDS)
    signal_all(stopped, signal.SIGCONT)
    assert resumed.wait() == 3
    assert set(calls(night)) == set(AGENTS)
    assert set(calls(night).values()) == {1}
    assert [task for task, state in states(night).items() if state != "DONE"] == ["agent/05"]
    assert last_message(night)["failed_tasks"] == ["agent/05"]
