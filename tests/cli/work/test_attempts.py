"""Tries, questions, and changes of a running work batch, with real processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, wait_until, write


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """The command line in a separate directory `project`."""
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path / "project")


def make_list(line: CommandLine, tasks: dict[str, str], top: str = "") -> None:
    """Write work.toml with keys for each task. The delay between tries is short."""
    tables = [f"[tasks.{name}]\n{keys}\n" for name, keys in tasks.items()]
    write(line.directory / "work.toml", "\n".join([top, "[defaults]\nbackoff_seconds = 0.01", *tables]))


def tasks_of(line: CommandLine) -> dict[str, dict[str, Any]]:
    return {task["id"]: task for task in line("status", "--json").json["tasks"]}


def states(line: CommandLine) -> dict[str, str]:
    return {name: task["state"] for name, task in tasks_of(line).items()}


def latest_batch_id(line: CommandLine) -> str:
    batch_id = line("status", "--json").json["batch_id"]
    assert isinstance(batch_id, str)
    return batch_id


def until(line: CommandLine, task: str, state: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a task of a run in the background has a state."""
    store = line.directory / ".codebatch" / "batches"
    wait_until(lambda: store.exists() and any(store.glob("b*/leases/*.*.*")), "a task begins")
    wait_until(lambda: process.poll() is not None or states(line)[task] == state, f"{task} is {state}")


def test_failed_task_is_retried_and_each_attempt_is_reported(line: CommandLine) -> None:
    tasks = {
        "third": 'run = "echo try {try}; test {try} -ge 3"\nretries = 2',
        "never": 'run = "exit 3"\nretries = 1',
        "other": 'run = "exit 1"\ntries = [{ run = "echo $WHO", env = { WHO = "second" } }]',
        "checked": 'run = "echo ran; echo x >>runs"\ncheck = "test $(wc -l <runs) -ge 2"\nretries = 1',
        "behind": 'run = "cat $CODEBATCH_NEEDS"\nneeds = ["third"]',
    }
    make_list(line, tasks)
    ended = json.loads(line("work", "run", "--json", status=3).stdout)
    assert {task["id"]: (task["state"], task["round"]) for task in ended["tasks"]} == {
        "third": ("DONE", 3),
        "never": ("FAILED", 2),
        "other": ("DONE", 2),
        "checked": ("DONE", 2),
        "behind": ("DONE", 1),
    }
    assert line("work", "log", "third").stdout == b"try 3\n"
    assert line("work", "log", "other").stdout == b"second\n"
    (need,) = json.loads(line("work", "log", "behind").stdout)
    assert (need["id"], need["state"], need["exit_status"]) == ("third", "DONE", 0)
    attempts = line("work", "attempts", "--json").json
    assert [
        (attempt["task"], attempt["round"], attempt["try_number"]) for attempt in attempts if attempt["task"] == "third"
    ] == [
        ("third", 1, 1),
        ("third", 2, 2),
        ("third", 3, 3),
    ]
    events = [json.loads(each) for each in line("events", "--json").lines]
    assert [event["event"] for event in events if event.get("task") == "never"] == [
        "BATCH_TASK_QUEUED",
        "BATCH_TASK_STARTED",
        "BATCH_TASK_RETRYING",
        "BATCH_TASK_QUEUED",
        "BATCH_TASK_STARTED",
        "BATCH_TASK_FAILED",
    ]
    assert {event["tries_max"] for event in events if event.get("task") == "third"} == {3}
    line("work", "run", "never", "--retry", "0", status=3)
    assert tasks_of(line)["never"]["round"] == 1


def test_blocked_task_gets_its_answer_while_running_or_is_restarted(line: CommandLine) -> None:
    tasks = {
        "lives": "run = \"echo got $(codebatch ask --wait 'What name?')\"",
        "ends": "run = \"codebatch ask 'Which one?' --choice red --choice blue || exit 75; echo done\"",
        "behind": 'run = "true"\nneeds = ["ends"]',
    }
    make_list(line, tasks, "max_parallel = 2")
    process = line.start("work", "run", "--wait-answers")
    until(line, "lives", "BLOCKED", process)
    until(line, "ends", "BLOCKED", process)
    questions = {each["task"]: each for each in line("work", "questions", "--json").json}
    assert (questions["lives"]["text"], questions["lives"]["live"]) == ("What name?", True)
    assert (questions["ends"]["choices"], questions["ends"]["live"]) == (["red", "blue"], False)
    assert "not one of the allowed answers" in line("work", "answer", "ends", "green", status=2).notes
    answers = [line.start("work", "answer", "lives", name) for name in ("Ann", "Bob")]
    ended = sorted((line.directory, each.wait()) for each in answers)
    errors = b"".join(each.communicate()[1] for each in answers)
    assert {status for _, status in ended} <= {0, 2}
    assert errors.count(b"error: ") == 1
    line("work", "answer", "ends", "red")
    notes = line.finish(process).notes.splitlines()
    assert notes.count(f"lives waits for an answer: codebatch work questions --batch {latest_batch_id(line)}") == 1
    assert line("work", "log", "lives").stdout in (b"got Ann\n", b"got Bob\n")
    assert states(line) == {"lives": "DONE", "ends": "DONE", "behind": "DONE"}
    assert line("work", "questions", "--json").json == []
    events = [json.loads(each) for each in line("events", "--json").lines]
    blocked = [(each["task"], each["is_live"]) for each in events if each["event"] == "BATCH_TASK_BLOCKED"]
    assert sorted(blocked) == [("ends", False), ("lives", True)]
    assert {each["task"] for each in events if each["event"] == "BATCH_TASK_ANSWERED"} == {"ends", "lives"}
    refused = line("work", "answer", "lives", "Eve", "--batch", latest_batch_id(line), status=2).notes
    name = line("work", "log", "lives").text.split()[1]
    assert re.search(f"'lives' is not waiting for an answer: .+ answered '{name}'", refused)


def test_task_that_was_answered_as_failed_is_not_retried_by_resume(line: CommandLine) -> None:
    tasks = {
        "gives-up": 'run = "echo x >>gives-up; exit 1"\non_exhausted = "ask"',
        "fails": 'run = "echo x >>fails; exit 1"',
    }
    make_list(line, tasks, 'on_failure = "continue"')
    line("work", "run", status=3)
    batch = latest_batch_id(line)
    line("work", "answer", "gives-up", "failed", "--batch", batch)
    line("resume", status=3)
    assert [(line.directory / name).read_text() for name in tasks] == ["x\n", "x\nx\n"]
    line("work", "skip", "fails", "--as-done", "--batch", batch)
    hint = line("resume", "--json", status=3).error["hint"]
    assert f"codebatch work retry gives-up --batch {batch}" in hint
    line("work", "retry", "gives-up", "--batch", batch, status=3)
    assert (line.directory / "gives-up").read_text() == "x\nx\n"


def test_rules_and_programs_answer_before_the_user(line: CommandLine) -> None:
    write(line.directory / "answer.sh", 'cat >asked.json; echo \'{"answer": "by a program"}\'\n')
    write(line.directory / "loop.sh", "yes\n")
    asks = "run = 'echo got $(codebatch ask --wait {title})'"
    tasks = {"rule": f'title = "Which tool?"\n{asks}', "program": f'title = "What else?"\n{asks}'}
    top = '[answering]\ncommand = ["sh", "answer.sh"]\n[[answering.rules]]\nmatch = "(?i)which tool"\nanswer = "uv"\n'
    make_list(line, tasks, top)
    assert line("work", "run", "--json").json["status"] == "COMPLETED"
    assert line("work", "log", "rule").stdout == b"got uv\n"
    assert line("work", "log", "program").stdout == b"got by a program\n"
    assert json.loads((line.directory / "asked.json").read_text())["question"] == "What else?"

    ends = {"program": "run = \"codebatch ask 'What else?' || exit 75\""}
    make_list(line, ends, '[answering]\ncommand = ["sh", "loop.sh"]\ntimeout_seconds = 0.5\n')
    assert json.loads(line("work", "run", "--json", status=3).stdout)["counts"] == {"BLOCKED": 1}


def test_slow_question_pattern_asks_a_person(line: CommandLine) -> None:
    slow, text = "(a+)+$", f"{'a' * 60}!"
    tasks = {
        "prints": f'run = "echo {text}"\nquestion = {{ pattern = "{slow}" }}',
        "ends": f'run = "echo {text}; exit 75"\nquestion = {{ pattern = "{slow}", exits = [75] }}',
    }
    make_list(line, tasks, f"[answering]\n[[answering.rules]]\nmatch = '{slow}'\nanswer = 'no'\n")
    ended = json.loads(line("work", "run", "--json", status=3).stdout)
    assert {task["id"]: task["state"] for task in ended["tasks"]} == {"prints": "BLOCKED", "ends": "BLOCKED"}
    assert "took longer than 1 s, so it is not known what it asked" in ended["tasks"][0]["question_text"]


def test_missing_result_is_on_the_screen_and_in_json(line: CommandLine) -> None:
    result = '\nresult = { cost = "/cost" }'
    make_list(line, {"a": f'run = "echo done"{result}', "b": 'run = "true"', "fails": f'run = "false"{result}'})
    lacks = "the output has no JSON object with cost for `result`"
    assert f" {lacks}\n" in line("work", "run", status=3).notes
    assert [row["notes"] for row in line("status", "--json").json["tasks"]] == [[lacks], [], []]
    assert f"done    a      -      {lacks}\n" in line("status").text
    rows = map(json.loads, line("follow", "--json", status=3).lines)
    ended = [row["notes"] for row in rows if row["event"] in ("BATCH_TASK_COMPLETED", "BATCH_TASK_FAILED")]
    assert ended == [[lacks], [], []]
    assert f"; {lacks}\n" in line("follow", status=3).text


def test_orphaned_answering_program_is_killed_before_the_next_starts(line: CommandLine) -> None:
    write(line.directory / "answer.sh", 'echo $$ >>pids\n[ -e quick ] || exec sleep 600\necho \'{"answer": "it"}\'\n')
    make_list(line, {"asks": "run = 'codebatch ask --wait What?'"}, '[answering]\ncommand = ["sh", "answer.sh"]\n')
    pids = line.directory / "pids"
    with line.start("work", "run") as process:
        wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"), "the program is asked")
        process.kill()
    first = int(pids.read_text())
    os.kill(first, 0)
    write(line.directory / "quick", "")
    assert line("resume", "--json").json["status"] == "COMPLETED"
    assert len(pids.read_text().split()) == 2
    wait_until(lambda: not Path(f"/proc/{first}").exists(), "the first program ends")


def test_running_batch_accepts_skip_pause_set_and_retry(line: CommandLine) -> None:
    waits = 'run = "echo began >>{0}.began; while [ ! -e go ]; do sleep 0.02; done"\ngrace_seconds = 0.1'
    tasks = {
        "one": waits.format("one"),
        "two": waits.format("two"),
        "three": 'run = "echo began >>three.began"',
        "behind": 'run = "true"\nneeds = ["one"]',
    }
    make_list(line, tasks, 'strategy = "parallel"\nmax_parallel = 1')
    process = line.start("work", "run")
    until(line, "one", "RUNNING", process)
    line("work", "pause")
    line("work", "skip", "one")
    until(line, "one", "SKIPPED", process)
    assert states(line) == {"one": "SKIPPED", "two": "READY", "three": "READY", "behind": "SKIPPED"}
    assert "paused" in line("status").text
    assert "must be from 1 to" in line("work", "set", "max-parallel=0", status=2).notes
    line("work", "set", "max-parallel=2")
    line("work", "unpause")
    wait_until((line.directory / "three.began").exists, "the third task begins")
    line("work", "skip", "one", "--as-done")
    until(line, "behind", "DONE", process)
    write(line.directory / "go", "")
    line.finish(process)
    assert states(line) == {"one": "DONE", "two": "DONE", "three": "DONE", "behind": "DONE"}
    assert "is already done" in line("work", "skip", "two", "--batch", latest_batch_id(line), status=2).notes
    line("work", "retry", "three", "--batch", latest_batch_id(line))
    assert (line.directory / "three.began").read_text() == "began\nbegan\n"
    assert tasks_of(line)["three"]["round"] == 2
    event_names = [json.loads(event_line)["event"] for event_line in line("events", "--json").lines]
    assert {"BATCH_PAUSED", "BATCH_UNPAUSED", "BATCH_CHANGED", "BATCH_TASK_SKIPPED", "BATCH_RESUMED"} <= {*event_names}


def test_status_shows_task_results_and_the_sum_of_costs(line: CommandLine) -> None:
    write(line.directory / "says.sh", """printf '{"said": "%s\\\\nmore", "usd": %s}\\n' "$1" "$2" """)
    tasks = {
        "one": 'run = "sh says.sh one 0.25"',
        "two": 'run = "sh says.sh half 1.5; test $CODEBATCH_TRY = 2"\nretries = 1\nbackoff_seconds = 0',
        "silent": "run = \"echo '{}'\"",
    }
    result = '\nresult = { text = "/said", cost = "/usd" }'
    make_list(line, {name: text + result for name, text in tasks.items()})
    assert line("work", "run", "-q").text.startswith("COMPLETED: 3 of 3 done (100%), cost 3.25, in ")
    answer = line("status", "--json").json
    assert answer["cost"] == 3.25
    results = [(task["result_text"], task["cost"]) for task in answer["tasks"]]
    assert results == [("one\nmore", 0.25), ("half\nmore", 3.0), ("", None)]
    assert [line_text.split()[-1] for line_text in line("status").lines[-4:-1]] == ["one", "half", "`result`"]
    attempts = line("work", "attempts", "two", "--json").json
    assert [(attempt["result_text"], attempt["cost"]) for attempt in attempts] == [("half\nmore", 1.5)] * 2
    assert line("work", "attempts", "two").lines[0].split()[-2:] == ["cost", "message"]
    assert line("work", "attempts", "silent").lines[0].split()[-1] == "memory"


def test_task_starts_are_separated_by_start_every_seconds(line: CommandLine) -> None:
    tasks = dict.fromkeys(("one", "two", "three"), 'run = "date +%s.%N >>began"')
    make_list(line, tasks, 'strategy = "parallel"\nmax_parallel = 3\nstart_every_seconds = 0.5')
    rehearsed = line("work", "run", "--dry-run", "--json").json
    line("work", "run")
    began = sorted(map(float, (line.directory / "began").read_text().split()))
    assert began[2] - began[0] > 0.5
    assert len({task["start_seconds"] for task in rehearsed["tasks"]}) == 3


def test_task_that_misuses_its_attempt_directory_affects_only_itself(line: CommandLine) -> None:
    here = 'd=$(dirname "$CODEBATCH_QUESTION")'
    tasks = {
        "directory": "run = 'mkdir \"$CODEBATCH_QUESTION\"; exit 75'",
        "link": "run = 'ln -s /etc/passwd \"$CODEBATCH_QUESTION\"; exit 75'",
        "fifo": "run = 'mkfifo \"$CODEBATCH_QUESTION\"; exit 75'",
        "gone": f"run = '{here}; rm -rf \"$d\"'",
        "elsewhere": f'run = \'{here}; rm -rf "$d"; ln -s "$PWD" "$d"\'',
        "no-logs": f"run = '{here}; rm -rf \"$d/../../../logs\"'",
        "empty": "run = \"codebatch ask '' || exit 75\"",
        "choice": "run = \"codebatch ask x --choice '' || exit 75\"",
        "last": "run = 'echo fine'",
    }
    make_list(line, tasks)
    write(line.directory / "kept", "")
    line("work", "run", status=3)
    ended = dict.fromkeys(("directory", "link", "fifo", "empty", "choice"), "FAILED")
    assert states(line) == {**ended, "gone": "DONE", "elsewhere": "DONE", "no-logs": "DONE", "last": "DONE"}
    assert line("work", "log", "last").stdout == b"fine\n"
    assert (line.directory / "kept").exists()
    logs = next((line.directory / ".codebatch" / "batches").glob("*/logs"))
    assert logs.stat().st_mode & 0o777 == 0o700


def test_closed_standard_input_is_treated_as_empty(line: CommandLine) -> None:
    make_list(line, {"asks": 'run = "codebatch ask hm || exit 75"'})
    line("work", "run", status=3)
    batch = latest_batch_id(line)
    assert (
        "the answer is empty (question of task asks)"
        in line.shell(f"codebatch work answer asks - --batch {batch} <&-", status=2).notes
    )
    assert "no tasks in -" in line.shell("codebatch work run -f - <&-", status=5).notes


def test_status_reports_a_damaged_outcome_as_damage_and_interruption(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"', "b": 'run = "true"'})
    line("work", "run", "-q")
    batch_id = latest_batch_id(line)
    batch = line.directory / ".codebatch" / "batches" / batch_id
    (register,) = (batch / "outcomes").glob("*.1.run.r1")
    data = register.read_bytes()
    register.write_bytes(data[:60] + b"\xff" + data[61:])
    problem = "the outcome of the last attempt of b cannot be read; the attempt is treated as interrupted"
    assert f"damaged: {problem}\n" in line("status").notes
    assert f"damaged: {problem}\n" in line("status", "--quiet").notes
    ended = [row["outcome"] for row in line("work", "attempts", "--json").json]
    assert ended == ["result", "unreadable"]
    (damage,) = line("diagnose", "--json", status=4, has_answer=True).json["damaged"]
    assert (damage["problem"], damage["names"]) == (problem, [f"batches/{batch_id}"])
    line("resume", "-q")
    assert states(line) == {"a": "DONE", "b": "DONE"}
    assert "damaged" not in line("status").notes
    assert line("diagnose", "--json").json["damaged"] == []


def test_attempt_is_listed_if_its_killed_worker_lost_the_last_lines_of_its_journal(line: CommandLine) -> None:
    run = "echo called >>calls; [ $(wc -l <calls) -gt 2 ] && exit 0; kill -9 $PPID; sleep 60"
    make_list(line, {"a": f"run = {json.dumps(run)}\nif_interrupted = 'restart'", "b": "run = 'true'"})
    line("work", "run", "-q")
    batch = line.directory / ".codebatch" / "batches" / latest_batch_id(line)
    before = line("work", "attempts", "--json").json
    assert [(row["task"], row["outcome"]) for row in before][:3] == [
        ("a", "interrupted"), ("a", "interrupted"), ("a", "result"),
    ]  # fmt: skip
    for path in (batch / "journal").iterdir():
        path.write_bytes(b"")
    after = line("work", "attempts", "--json").json
    known = ("task", "round", "epoch", "outcome")
    assert [{key: row.get(key) for key in known} for row in after] == [
        {key: row.get(key) for key in known} for row in before
    ]
    assert [row["started_at"] for row in after] == [None] * 4


def test_settings_of_a_task_change_while_the_list_runs(line: CommandLine) -> None:
    wait = "echo began >>one.began; [ -e go ] || until [ -e go ]; do sleep 0.02; done; exit 1"
    tasks = {
        "one": f"run = {json.dumps(wait)}\nbackoff_seconds = 0",
        "two": 'run = "echo two >>order"',
        "three": 'run = "echo three >>order; sleep 30"',
    }
    make_list(line, tasks, 'strategy = "parallel"\nmax_parallel = 1')
    process = line.start("work", "run")
    until(line, "one", "RUNNING", process)
    for words, message in (
        (("one", "retries=101"), "retries must be from 0 to 100"),
        (("one", "timeout=1h30"), "is not a duration"),
        (("one", "timeout=0"), "timeout must be above 0"),
        (("one", "prio=1"), "unknown setting of a task 'prio'"),
        (("one", "cost-max=1"), "has a cap on cost"),
        (("one", "attempts-max=0"), "attempts-max must be from 1 to 1,000,000, not 0"),
        (("one", "retries=1.5"), "retries must be a whole number"),
        (("one", "retries=1", "retries=2"), "given twice"),
        (("four", "retries=1"), "has no task 'four'"),
        (("retries=1",), "unknown setting 'retries'"),
        (("one", "max-parallel=1"), "unknown setting of a task 'max-parallel'"),
        (("one",), "settings of tasks need tasks"),
    ):
        assert message in line("work", "set", *words, status=2).notes
    assert "one: retries 0 → 2" in line("work", "set", "one", "retries=2").text
    changed = line("work", "set", "three", "timeout=0.5s", "priority=5", "--json")
    assert "three: timeout none → 0.5s, priority 0 → 5" in changed.notes
    assert (
        "three: timeout 0.5s (unchanged), priority 5 → 6"
        in line("work", "set", "three", "timeout=0.5", "priority=6").text
    )
    write(line.directory / "go", "")
    line.finish(process, status=3)
    assert (line.directory / "one.began").read_text() == "began\n" * 3
    assert (line.directory / "order").read_text() == "three\ntwo\n"
    assert states(line) == {"one": "FAILED", "two": "DONE", "three": "FAILED"}
    batch = latest_batch_id(line)
    rows = {row["id"]: row for row in line("status", "--json").json["tasks"]}
    assert rows["three"]["reason"] == "timeout"
    line("work", "set", "one", "retries=4", "--batch", batch)
    assert states(line)["one"] == "FAILED", "a failed task must not run again"
    line("resume", status=3)
