"""Tries by kind of failure, and rate limits that close a pool until a time, even if the coordinator dies."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.work.test_work import count, line, make_list, states, status
from tests.support.command_line import CommandLine, wait_until, write

__all__ = ["line"]

LIMITED = "echo >>{id}.tries; test -e reset || {{ echo 'limit reached, retry in {seconds} s'; exit 1; }}"
RULE = "wait_if = 'retry in (?P<seconds>\\d+) s'"
POOLS = "max_parallel = 3\npools = { agents = 1 }"


def _rate_limited_task(id_: str, seconds: int, keys: str = "pools = { agents = 1 }") -> str:
    return f"run = {json.dumps(LIMITED.format(id=id_, seconds=seconds))}\n{RULE}\n{keys}"


def test_rate_limit_closes_its_pool_across_a_killed_runner(line: CommandLine) -> None:
    make_list(
        line,
        {"one": _rate_limited_task("one", 1000), "two": _rate_limited_task("two", 1000), "free": 'run = "true"'},
        POOLS,
    )
    process = line.start("work", "run")
    wait_until(lambda: count(line, "one.tries") > 0 and states(line)["one"] == "WAITING", "the task is rate limited")
    wait_until(lambda: states(line)["free"] == "DONE", "the task without a closed pool is done")
    (closed,) = status(line)["closed_pools"]
    assert closed["pool"] == "agents"
    assert re.fullmatch(r"pool agents closed until .*: rate limited", closed["text"])
    limited = next(row for row in line("work", "attempts").lines if row.startswith("one "))
    assert re.search(r"  limited +rate limited ", limited), "a rate limit is not a failure"
    whys = {task["id"]: task["explanation"] for task in status(line)["tasks"]}
    assert whys["one"].startswith("rate limited until ")
    assert re.fullmatch(r"pool agents closed until .*: rate limited", whys["two"])
    assert re.search(r"\nwaits     pool agents closed until .*: rate limited\n", line("status").text)
    assert re.search(r"retrying one .*: rate limited; pool agents closed until ", line("events").text)
    wait_until(
        lambda: b'"closed_pools":[{"pool":"agents"' in line("events", "--json").stdout,
        "the event about the closed pool is recorded",
    )
    process.kill()
    process.communicate()
    resumed = line.start("resume")
    wait_until(lambda: status(line)["coordinator"] is not None, "the batch has a new coordinator")
    assert status(line)["closed_pools"] == [closed], "the time is stored, so it must be the same"
    write(line.directory / "reset", "")
    line("work", "retry", "one")  # The user knows that the limit is over.
    line.finish(resumed)
    assert status(line)["counts"] == {"DONE": 3}
    assert [count(line, "one.tries"), count(line, "two.tries")] == [2, 1]


def test_rate_limited_attempt_does_not_count_as_a_try(line: CommandLine) -> None:
    keys = "retries = 0\n"
    make_list(line, {"one": _rate_limited_task("one", 1, keys), "two": 'run = "sleep 0.3; touch reset"'}, POOLS)
    ended = line("work", "run")
    assert re.search(r"one +waiting .* rate limited; waiting until \d\d:\d\d:\d\d", ended.notes)
    (task,) = (task for task in status(line)["tasks"] if task["id"] == "one")
    assert (task["state"], task["round"], task["try_number"], task["tries_max"]) == ("DONE", 2, 1, 1)
    assert "codebatch: rate limited until 2" in line("work", "log", "one", "--round", "1").text
    made = line("work", "attempts", "one", "--json").json
    assert [(attempt["outcome"], attempt["reason"]) for attempt in made] == [("failed", "limited"), ("result", None)]


def test_failure_is_retried_only_if_retry_if_matches(line: CommandLine) -> None:
    fails = {
        "status": "exit 75",
        "output": "echo 'read: connection reset by peer'; exit 1",
        "neither": "exit 1",
        "limit": "sleep 1000",
    }
    rule = 'retry_if = { exits = [75], pattern = "connection reset" }\nretries = 2\nbackoff_seconds = 0'
    tasks = {
        id_: f"run = {json.dumps(script)}\n{rule}\ntimeout_seconds = {0.5 if id_ == 'limit' else 600}"
        for id_, script in fails.items()
    }
    make_list(line, tasks, 'on_failure = "continue"\nmax_parallel = 4')
    line("work", "run", status=3)
    tries = {id_: len(line("work", "attempts", id_, "--json").json) for id_ in fails}
    assert tries == {"status": 3, "output": 3, "neither": 1, "limit": 3}


@pytest.mark.parametrize(
    ("keys", "limit"),
    [("waits_max = 1", "`waits_max` of 1 is reached"), ("wait_seconds_max = 0.15", "`wait_seconds_max` of 0.15 is")],
)
def test_failure_names_the_limit_that_ended_the_waits(line: CommandLine, keys: str, limit: str) -> None:
    make_list(line, {"a": f"run = 'echo in 0.1 s; exit 1'\nwait_if = 'in (?P<seconds>[0-9.]+) s'\n{keys}"})
    notes = line("work", "run", status=3, has_answer=True).notes
    assert limit in notes
    assert "retried after" not in notes
    for command in (("status",), ("events",), ("work", "attempts")):
        texts = [row for row in line(*command).lines if limit in row]
        assert len(texts) == 1, (command, line(*command).text)
    assert status(line)["counts"] == {"FAILED": 1}


def test_resume_shows_the_limit_that_was_set_since(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "test -e go"', "b": 'run = "true"'}, 'strategy = "serial"')
    assert "2 tasks, one at a time" in line("work", "run", status=3, has_answer=True).notes
    line("work", "set", "max-parallel=2", "--batch", "latest")
    assert "2 tasks, 2 at a time" in line("resume", status=3, has_answer=True).notes


def test_pool_of_a_list_without_pools_is_named_plainly(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"'})
    line("work", "run", "-q")
    for setting in ("pool.x=2", "pool.x.cost-max=2"):
        refused = line("work", "set", setting, "--batch", "latest", status=2).notes
        assert "has no pool 'x'" in refused
        assert "its list has no pools" in refused
