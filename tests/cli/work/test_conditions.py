"""Conditions of tasks, pairs of group members, wildcards and followed logs, with real processes."""

from __future__ import annotations

import json

import pytest

from codebatch.work.control.status import failure_reason_text
from tests.cli.work.test_work import count, kill_workers, line, make_list, states, status
from tests.support.command_line import CommandLine, wait_until, write

__all__ = ["line"]

GROUPS = """
strategy = "parallel"
[tasks.lint]
each = { files = ["p/*/x.py"] }
run = "echo {file}"
[tasks.build]
each = { values = ["a", "b"] }
needs = ["lint/p/{value}/x.py"]
run = "echo {value}"
[tasks.test]
each = { values = ["a", "b"] }
needs = ["build/{each}"]
run = "echo {value}"
"""


def _tasks(line: CommandLine) -> dict[str, dict[str, object]]:
    return {task["id"]: task for task in status(line)["tasks"]}


def test_condition_decides_before_the_first_try(line: CommandLine) -> None:
    make_list(
        line,
        {
            "skipped": 'run = "echo >>skipped.ran"\nwhen = "echo why; exit 1"',
            "run": 'run = "echo >>run.ran"\nwhen = ["true"]\nneeds = ["skipped"]',
            "typo": 'run = "echo >>typo.ran"\nwhen = "no-such-program"\nretries = 3',
            "slow": 'run = "echo >>slow.ran"\nwhen = "sleep 60"\nwhen_timeout_seconds = 0.3',
        },
    )
    ended = line("work", "run", status=3)
    assert ended.text.startswith("PARTIAL: 2 of 4 done (50%), 1 of them with nothing to do, 2 failed")
    assert [count(line, f"{name}.ran") for name in ("skipped", "run", "typo", "slow")] == [0, 1, 0, 0]
    tasks = _tasks(line)
    assert (tasks["skipped"]["state"], tasks["skipped"]["reason"]) == ("DONE", "when")
    assert str(tasks["skipped"]["explanation"]).startswith("nothing to do")
    assert tasks["typo"]["explanation"] == "`when`: exit status 127"
    assert (tasks["typo"]["round"], tasks["slow"]["state"]) == (1, "FAILED")
    assert line("work", "log", "skipped").text.startswith("why\n")
    assert "done skipped 0.0s; nothing to do" in line("events").text
    line("work", "retry", "typo", "--no-run")
    line("resume", status=3)
    assert count(line, "typo.ran") == 0, "a retry must not pass by the condition"


def test_condition_runs_only_before_the_first_try(line: CommandLine) -> None:
    keys = 'run = "echo >>ran; exit 1"\nwhen = "echo >>asked"\nretries = 2\nbackoff_seconds = 0'
    make_list(line, {"a": keys})
    line("work", "run", status=3)
    assert (count(line, "ran"), count(line, "asked")) == (3, 1)


def test_exit_status_can_mean_that_there_was_nothing_to_do(line: CommandLine) -> None:
    tasks = {
        "a": 'run = "exit 77"\nskip_status = 77\ncheck = "false"',
        "b": 'run = "exit 77"',
        "c": 'run = "true"\nneeds = ["a"]',
    }
    make_list(line, tasks)
    line("work", "run", status=3)
    assert states(line) == {"a": "DONE", "b": "FAILED", "c": "DONE"}
    assert _tasks(line)["a"]["explanation"] == "nothing to do"


@pytest.mark.parametrize("value", ["0", "256"])
def test_invalid_skip_status_is_refused(line: CommandLine, value: str) -> None:
    make_list(line, {"a": f'run = "true"\nskip_status = {value}'})
    assert "skip_status" in line("work", "run", status=2).notes


def test_task_that_goes_on_after_its_question_is_reported(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "codebatch ask ok?; echo on >>on"', "b": 'run = "codebatch ask ok? || exit 75"'})
    line("work", "run", status=3)
    tasks = _tasks(line)
    assert "went on without the answer" in str(tasks["a"]["explanation"])
    assert tasks["b"]["notes"] == []


def test_members_of_groups_are_paired_by_their_values(line: CommandLine) -> None:
    for name in ("a", "b"):
        write(line.directory / "p" / name / "x.py", "")
    write(line.directory / "work.toml", GROUPS)
    tasks = {task["task"]: task["needs"] for task in line("work", "run", "--dry-run", "--json").json["tasks"]}
    assert (tasks["test/a"], tasks["test/b"]) == (["build/a"], ["build/b"])
    assert len(tasks["build/a"]) == len(tasks["build/b"]) == 1
    assert tasks["build/a"] != tasks["build/b"]
    for needed, text in (("build/{each}x", "no member for 'ax'"), ("build/{valu}", "unknown placeholder {valu}")):
        write(line.directory / "work.toml", GROUPS.replace("build/{each}", needed))
        assert text in line("work", "run", "--dry-run", status=2).notes


def test_wildcards_name_tasks(line: CommandLine) -> None:
    write(line.directory / "work.toml", '[tasks.t]\neach = { values = ["p1", "p2", "q1"] }\nrun = "echo {value}"\n')
    line("work", "run", "t/p*")
    assert states(line) == {"t/p1": "DONE", "t/p2": "DONE"}
    assert line("work", "log", "t/p?").lines == ["[t/p1] p1", "[t/p2] p2"]
    line("work", "retry", "t/p*")
    assert [task["round"] for task in status(line)["tasks"]] == [2, 2]
    assert "no task 't/z*'" in line("work", "retry", "t/z*", status=2).notes


def test_log_is_followed_over_attempts_and_killed_runners(line: CommandLine) -> None:
    run = "echo began; echo >>began; while [ ! -e go ]; do sleep 0.02; done; echo went; test $(wc -l <began) -ge 3"
    make_list(line, {"a": f"run = {json.dumps(run)}\nretries = 1\nbackoff_seconds = 0"})
    runner = line.start("work", "run")
    wait_until(lambda: count(line, "began") == 1, "the task has begun")
    followed = line.start("work", "log", "-f", "a")
    assert followed.stdout is not None
    first = followed.stdout.readline()
    kill_workers(line)
    runner.communicate()
    write(line.directory / "go", "")
    line("resume")
    output, notes = followed.communicate(timeout=30)
    assert (first + output).splitlines() == [b"began", b"began", b"went", b"began", b"went"]
    assert (followed.returncode, b"a: done" in notes) == (0, True)


@pytest.mark.parametrize(
    ("reason", "status", "text"),
    [
        ("when", 1, "nothing to do: `when` is not met"),
        ("when", 127, "`when`: exit status 127"),
        ("when", -9, "`when`: signal SIGKILL"),
        ("check", -9, "`check`: signal SIGKILL"),
        ("check", 1, "`check`: exit status 1"),
        ("signal", -15, "signal SIGTERM"),
        ("signal", -99, "signal 99"),
        ("exit", 2, "exit status 2"),
    ],
)
def test_reason_names_the_exit_status_or_the_signal(reason: str, status: int, text: str) -> None:
    assert failure_reason_text(reason, status) == text


def test_wildcards_are_answered_with_the_tasks_that_they_match(line: CommandLine) -> None:
    asks = 'run = "codebatch ask ok? || exit 75"'
    make_list(line, {"ask-me": asks, "one": 'run = "true"', "two": 'run = "exit 1"'})
    line("work", "run", "-q", status=3, has_answer=True)
    assert line("work", "answer", "ask*", "yes", "--batch", "latest").text.startswith("ask-me: yes; ")
    assert line("work", "retry", "t*", "--no-run").text.startswith("to be run again: two; ")
    assert line("work", "skip", "*o*", "--batch", "latest").text.startswith("skipped: two; ")


def test_task_held_back_by_another_is_retried_only_with_it(line: CommandLine) -> None:
    tasks = {"a": 'run = "test -e go"', "b": 'run = "true"\nneeds = ["a"]', "c": 'run = "true"\nneeds = ["b"]'}
    make_list(line, tasks)
    line("work", "run", "-q", status=3, has_answer=True)
    batch = status(line)["batch_id"]
    refused = line("work", "retry", "c", status=2).notes
    assert (
        f"c needs a, which has not succeeded\nhint: retry it too: codebatch work retry a c --batch {batch}" in refused
    )
    write(line.directory / "go", "")
    line("work", "skip", "b", "--batch", batch)
    ended = line("work", "retry", "a", status=3, has_answer=True).notes
    assert f"skipped: b\nhint: run it with: codebatch work retry b --batch {batch}" in ended
    assert "codebatch work retry b c" in line("work", "retry", "c", status=2).notes
    line("work", "retry", "b", "c")
    assert set(states(line).values()) == {"DONE"}


def test_error_in_the_needs_of_a_group_is_reported_once(line: CommandLine) -> None:
    write(
        line.directory / "work.toml",
        """
        [tasks.b]
        each.values = ["1", "2"]
        run = "true {each}"
        [tasks.g]
        each.values = ["1", "2"]
        run = "true {each}"
        when = "test {tasks.b/{nope}.outputs}"
        """,
    )
    assert line("work", "run", status=2).notes.count("unknown placeholder {nope}") == 1
