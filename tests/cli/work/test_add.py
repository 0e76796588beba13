"""`work add`: tasks are added to a batch once, whether it runs, is killed, or has ended."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.work.test_work import count, kill_workers, line, make_list, start, states, status
from tests.support.command_line import CommandLine, wait_until, write

__all__ = ["line"]

MORE = """\
[tasks.site]
run = "echo built from $PART >>site; cat $CODEBATCH_NEEDS"
needs = ["one", "part"]
title = "The site"
env = { PART = "parts" }

[tasks.part]
run = "echo {each} >>parts"
each.values = ["x", "y"]
"""
WAITS = 'run = "touch one.began; until test -e go; do sleep 0.05; done"'


def _tasks(line: CommandLine) -> dict[str, str]:
    return {task["id"]: task["state"] for task in status(line)["tasks"]}


def test_added_tasks_run_in_the_running_batch_and_see_its_tasks(line: CommandLine) -> None:
    make_list(line, {"one": WAITS})
    process = start(line, began=("one",))
    write(line.directory / "more.toml", MORE)
    last = ("--task", "last=echo last >last", "--needs", "site")
    text = line("work", "add", "more.toml", *last).text
    assert text.startswith("added: site, part/x, part/y, last; RUNNING: ")
    assert list(_tasks(line)) == ["one", "site", "part/x", "part/y", "last"]
    wait_until(lambda: "4 tasks added by " in line("events").text, "the event is written")
    write(line.directory / "go", "")
    line.finish(process)
    assert status(line)["counts"] == {"DONE": 5}
    assert [task["title"] for task in status(line)["tasks"] if task["id"] == "site"] == ["The site"]
    needs = json.loads(line("work", "log", "site").text)
    assert {(need["id"], need["state"]) for need in needs} == {(id_, "DONE") for id_ in ("one", "part/x", "part/y")}
    assert ((line.directory / "site").read_text(), (line.directory / "last").read_text()) == (
        "built from parts\n",
        "last\n",
    )
    added = [event for row in line("events", "--json").stdout.splitlines() if (event := json.loads(row)).get("added")]
    assert [event["added"] for event in added] == [["site", "part/x", "part/y", "last"]]
    assert {row["task"] for row in json.loads(line("work", "attempts", "--json").stdout)} == {*_tasks(line)}


def test_task_is_added_once_and_another_definition_is_refused(line: CommandLine) -> None:
    make_list(line, {"one": WAITS})
    process = start(line, began=("one",))
    add = ("work", "add", "--task", "two=echo two >>two", "--needs", "one")
    assert line(*add).text.startswith("added: two; ")
    before = line("status", "--json").stdout
    assert line(*add).text.startswith("already there: two; ")
    for other in (
        ("--task", "two=echo other", "--needs", "one"),
        ("--task", "two=echo two >>two"),
        ("--task", "new=true", "--task", "one=true"),
    ):
        refused = line("work", "add", *other, status=2).notes
        assert f"another task with this name: {'one' if 'new=true' in other else 'two'}" in refused
    assert json.loads(before)["tasks"] == json.loads(line("status", "--json").stdout)["tasks"]
    write(line.directory / "go", "")
    line.finish(process)
    assert (count(line, "two"), status(line)["counts"]) == (1, {"DONE": 2})


def test_tasks_added_to_a_killed_batch_run_with_resume(line: CommandLine) -> None:
    make_list(line, {"one": WAITS})
    process = start(line, began=("one",))
    line("work", "add", "--task", "two=echo two >>two", "--needs", "one")
    process.kill()
    process.communicate()
    kill_workers(line)
    batch = status(line)["batch_id"]
    added = line("work", "add", "--batch", batch, "--task", "three=echo three >>three", "--needs", "two")
    assert f"this batch is not running; resume it with: codebatch resume --batch {batch}" in added.notes
    write(line.directory / "go", "")
    resumed = line("resume").notes
    assert "has changed" not in resumed, "tasks that were added are not removed from the list"
    assert (count(line, "two"), count(line, "three")) == (1, 1)
    assert status(line)["counts"] == {"DONE": 3}
    line("resume", "--reload")
    assert "another task" in line("work", "add", "--batch", batch, "--task", "two=x", status=2).notes


def test_ended_batch_is_open_again_after_tasks_are_added(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "echo one >>one"'})
    line("work", "run")
    assert "running" in line("work", "add", "--task", "two=true", status=2).notes, "an ended batch must be named"
    batch = status(line)["batch_id"]
    line("work", "add", "--batch", batch, "--task", "two=echo two >>two", "--needs", "one")
    assert (states(line)["one"], states(line)["two"]) == ("DONE", "READY")
    line("resume")
    assert (count(line, "one"), count(line, "two"), status(line)["status"]) == (1, 1, "COMPLETED")


def test_settings_and_pools_of_the_batch_apply_to_added_tasks(line: CommandLine) -> None:
    make_list(line, {"one": WAITS + "\npools = { api = 1 }"}, "max_parallel = 4\nattempts_max = 3\npools = { api = 1 }")
    process = start(line, began=("one",))
    for text, message in {
        "max_parallel = 2\n[tasks.a]\nrun = 'true'": "sets `max_parallel`, but the settings of batch ",
        "[pools]\nnew = 1\n[tasks.a]\nrun = 'true'": "sets `pools`, but the settings of batch ",
        "[tasks.a]\nrun = 'true'\npools = { api = 2 }": "takes 2 tokens of pool 'api', which has 1",
        "[tasks.a]\nrun = 'true'\nisolation = 'copy'": "has no such trees",
        "[tasks.a]\nrun = 'true'\nneeds = ['nothing']": "needs 'nothing', which does not exist",
        "[tasks.ONE]\nrun = 'true'": "differ only in case",
        "": "no tasks in more.toml",
    }.items():
        write(line.directory / "more.toml", text)
        assert message in line("work", "add", "more.toml", status=2 if text else 5).notes
    for given, message in {
        (): "no tasks are given",
        ("--task", "x"): "'x' is not NAME=COMMAND",
        ("more.toml", "--needs", "one"): "--needs can only be used with --task",
    }.items():
        assert message in line("work", "add", *given, status=2).notes
    assert list(_tasks(line)) == ["one"]
    write(
        line.directory / "more.toml",
        "[defaults]\npools = { api = 1 }\n[tasks.a]\nrun = 'true'\n[tasks.b]\nrun = 'true'\n",
    )
    line("work", "add", "more.toml", "--task", "c=true", "--needs", "a", "--needs", "b")
    assert states(line)["a"] == "READY"
    write(line.directory / "go", "")
    line.finish(process, status=3)
    assert (states(line)["a"], states(line)["b"], states(line)["c"]) == ("DONE", "DONE", "PENDING")
    assert "attempts" in line("status").text


@pytest.mark.parametrize("delay", [0.0, 0.15, 0.3, 0.6])
def test_killed_addition_adds_all_tasks_or_none(line: CommandLine, delay: float) -> None:
    make_list(line, {"one": "run = 'true'"})
    line("work", "run")
    batch = status(line)["batch_id"]
    add = ("work", "add", "--batch", batch, "--task", "two=echo two >>two", "--task", "three=true")
    process = line.start(*add)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(delay)
    process.kill()
    process.communicate()
    assert list(_tasks(line)) in (["one"], ["one", "two", "three"])
    line(*add)
    line("resume")
    assert (count(line, "two"), status(line)["counts"]) == (1, {"DONE": 3})


def test_concurrent_additions_are_all_kept(line: CommandLine) -> None:
    make_list(line, {"one": "run = 'true'"})
    line("work", "run")
    batch = status(line)["batch_id"]
    tasks = [f"t{number % 3}=echo {number % 3} >>ran" for number in range(6)]
    processes = [line.start("work", "add", "--batch", batch, "--task", task) for task in tasks]
    for process in processes:
        line.finish(process)
    line("resume")
    assert sorted(_tasks(line)) == ["one", "t0", "t1", "t2"]
    assert sorted(Path(line.directory / "ran").read_text().split()) == ["0", "1", "2"]


@pytest.mark.parametrize(
    "other",
    [
        'run = "echo {each}; true"',
        'run = "echo {each}"\nneeds = ["one"]',
        'run = "echo {each}"\nretries = 1',
        'run = "echo {each}"\nenv = { A = "b" }',
    ],
)
def test_new_members_of_a_group_need_its_definition(line: CommandLine, other: str) -> None:
    plain = 'run = "echo {each}"\ntitle = "Echo"'
    make_list(line, {"one": "run = 'true'", "g": f'{plain}\neach.values = ["x"]'})
    line("work", "run")
    for values in ('["y"]', '["x", "y"]'):
        write(line.directory / "more.toml", f"[tasks.g]\n{other}\neach.values = {values}\n")
        refused = line("work", "add", "--batch", "latest", "more.toml", status=2).notes
        assert "another" in refused
        assert "group g" in refused or "g/x" in refused
    assert set(states(line)) == {"one", "g/x"}
    write(line.directory / "more.toml", f'[tasks.g]\n{plain}\neach.values = ["y"]\n')
    line("work", "add", "--batch", "latest", "more.toml")
    assert set(states(line)) == {"one", "g/x", "g/y"}


def test_task_with_a_need_that_an_earlier_batch_has_done_is_not_another_one(line: CommandLine) -> None:
    make_list(line, {"one": "run = 'true'", "two": "run = 'test -e go'\nneeds = ['one']"})
    line("work", "run", "-q", status=3, has_answer=True)
    write(line.directory / "go", "")
    line("work", "run", "--unfinished", "-q")
    write(line.directory / "more.toml", "[tasks.two]\nrun = 'test -e go'\nneeds = ['one']\n")
    assert line("work", "add", "--batch", "latest", "more.toml").text.startswith("already there: two; ")


def test_added_task_cannot_take_the_name_of_a_group(line: CommandLine) -> None:
    make_list(line, {"c": 'run = "test {value} = x"\neach = { values = ["x", "y"] }', "d": 'run = "true"'})
    line("work", "run", "-q", status=3, has_answer=True)
    refused = line("work", "add", "--batch", "latest", "--task", "c=echo plain", status=2)
    assert "has the name of a group" in refused.notes
    write(line.directory / "more.toml", '[tasks.d]\nrun = "true"\neach = { values = ["x"] }\n')
    assert "the name of a task" in line("work", "add", "--batch", "latest", "more.toml", status=2).notes
    assert set(states(line)) == {"c/x", "c/y", "d"}


def test_added_task_uses_outputs_of_another_added_task(line: CommandLine) -> None:
    outputs = '[tasks.{0}]\nrun = "echo {0} >{0}.txt"\noutputs = ["/{0}.txt"]\n'
    use = '[tasks.use{0}]\nrun = "cat {{tasks.{0}.outputs}}/{0}.txt >>used; {1}"\nneeds = ["{0}"]\n'
    wait = "touch use.began; until test -e go; do sleep 0.05; done"
    write(line.directory / "work.toml", outputs.format("a") + use.format("a", wait))
    process = line.start("work", "run", "-q")
    wait_until((line.directory / "use.began").exists, "the list runs")
    write(line.directory / "more.toml", outputs.format("p") + use.format("p", "true"))
    line("work", "add", "more.toml")
    write(line.directory / "go", "")
    line.finish(process)
    assert (line.directory / "used").read_text() == "a\np\n"
