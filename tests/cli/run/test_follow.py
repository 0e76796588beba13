"""`follow`, `events` and `cancel` of analyses and work batches, with real processes."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.model.work.event import FIRST_CURSOR, BatchProgress, BatchResumed
from codebatch.operations.project.stores import open_store
from codebatch.operations.runs.events import AnalysisFollower
from codebatch.operations.runs.requests import append_cancel_lift
from codebatch.store.batches.journal import Committed, Drained, Ended, JournalEvent, JournalWriter, Started
from codebatch.store.batches.resolution import resolve_batch
from codebatch.system.clock import wall_ns
from tests.cli.work.test_work import kill_workers, line, make_list, start, status
from tests.support.command_line import CommandLine, make_modules, wait_until, write, write_own_task

__all__ = ["line"]


def told(line: CommandLine, *words: str) -> list[dict[str, Any]]:
    """Return the events of the latest batch."""
    events = [json.loads(each) for each in line("events", "--json", *words).lines]
    return [event for event in events if event["event"] != "BATCH_PROGRESS"]


def names(events: list[dict[str, Any]]) -> list[str]:
    return [
        event["event"].removeprefix("BATCH_") + (f" {event['task']}" if "task" in event else "") for event in events
    ]


def events_directory(line: CommandLine) -> Path:
    return next((line.directory / ".codebatch" / "batches").glob("*")) / "events"


def test_events_have_the_documented_members(line: CommandLine) -> None:
    make_list(
        line,
        {
            "build": 'run = "echo built"\ntitle = "Build it"',
            "test": 'run = "seq 30; kill -9 $$"\nneeds = ["build"]',
            "ship": 'run = "true"\nneeds = ["test"]',
        },
    )
    line("work", "run", status=3)
    events = told(line)
    assert names(events) == [
        "STARTED",
        "TASK_QUEUED build",
        "TASK_STARTED build",
        "TASK_COMPLETED build",
        "TASK_QUEUED test",
        "TASK_STARTED test",
        "TASK_FAILED test",
        "TASK_SKIPPED ship",
        "PARTIAL",
    ]
    every = [json.loads(line_text)["cursor"] for line_text in line("events", "--json").lines]
    assert every == [f"{events[0]['batch_id']}:1.{n}" for n in range(1, len(every) + 1)]
    assert [event["position"] for event in events if event["event"] == "BATCH_TASK_QUEUED"] == [1, 1]
    started_batch, _, started, completed, *_, failed, skipped, ended = events
    assert (started_batch["task_ids"], started_batch["edges"], started_batch["on_failure"]) == (
        ["build", "test", "ship"],
        {"file": 2},
        "skip-dependents",
    )
    assert (started["title"], started["round"], started["try"], started["tries_max"]) == ("Build it", 1, 1, 1)
    assert completed["seconds"] >= 0
    assert completed["memory_peak_bytes"] >= 0
    assert (failed["reason"], failed["signal"], failed["log_tail"]) == (
        "signal",
        "SIGKILL",
        [str(n) for n in range(11, 31)],
    )
    assert (skipped["cause"], skipped["reason"]) == ("test", "it needs test, which is not done")
    assert (ended["counts"], ended["task_count"], ended["critical_path"]) == (
        {"DONE": 1, "FAILED": 1, "SKIPPED": 1},
        3,
        ["build", "test"],
    )
    assert told(line, "--since", events[6]["cursor"]) == events[7:]
    assert "'1.7' is not a cursor" in line("events", "--since", "1.7", status=2).notes
    followed = line("follow", status=3)
    assert [line_text[9:] for line_text in followed.lines] == [
        "started: 3 tasks from work.toml",
        f"done build {followed.lines[1].split()[-1]}",
        f"failed test {followed.lines[2].split()[3]} signal SIGKILL",
        "skipped ship: it needs test, which is not done",
        f"PARTIAL: 1 done, 1 failed, 1 skipped, in {followed.lines[4].split()[-1]}",
    ]
    assert "1 task of batch" in followed.notes


@pytest.mark.parametrize("command", ["events", "follow"])
def test_cursor_belongs_to_one_batch(line: CommandLine, command: str) -> None:
    make_list(line, {"one": 'run = "true"'})
    line("work", "run")
    first = told(line)[-1]["cursor"]
    batch = first.partition(":")[0]
    line("work", "run")
    refused = line(command, "--since", first, status=2)
    assert f"cursor {first} belongs to another batch than" in refused.notes
    assert f"--batch {batch}" in refused.notes
    assert line(command, "--since", first, "--batch", batch).text == ""
    past = first.replace(":1.", ":7.")
    assert "has no event 7." in line(command, "--since", past, "--batch", batch, status=2).notes
    latest = told(line)
    assert told(line, "--since", latest[2]["cursor"]) == latest[3:]


def test_cursor_of_an_analysis_belongs_to_it(line: CommandLine) -> None:
    write(line.directory / "a.py", "x = 1\n")
    line("run", ".")
    batch = line("status", "--json").json["batch_id"]
    events = told(line)
    assert [event["cursor"].partition(":")[0] for event in events] == [batch] * len(events)
    assert told(line, "--since", events[0]["cursor"]) == events[1:]
    assert told(line, "--since", events[-1]["cursor"]) == []
    past = f"{batch}:1.{events[-1]['seq'] + 1}"
    assert "has no event 1." in line("events", "--since", past, status=2).notes


def test_events_of_a_resumed_batch_continue_without_repetition(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "true"', "two": 'run = "test -e fixed"'})
    line("work", "run", status=3)
    last = told(line)[-1]["cursor"]
    write(line.directory / "fixed", "")
    line("resume")
    events = told(line, "--since", last)
    assert names(events) == ["RESUMED", "TASK_QUEUED two", "TASK_STARTED two", "TASK_COMPLETED two", "COMPLETED"]
    assert (events[0]["after"], events[0]["reopened"], events[1]["round"], events[1]["try"]) == (
        "request",
        ["two"],
        2,
        1,
    )
    (first,) = [event for event in told(line) if event["event"] == "BATCH_PARTIAL"]
    assert first["total_seconds"] == first["seconds"]
    assert events[-1]["total_seconds"] > events[-1]["seconds"]
    assert line("follow").lines[-1].startswith(f"{line('follow').lines[-1][:8]} COMPLETED: 2 done")


def test_follow_prints_events_at_once_and_ends_with_the_run(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    follower = line.start("follow", "--json")
    write(line.directory / "go", "")
    line.finish(process)
    ended = line.finish(follower)
    assert names([json.loads(line_text) for line_text in ended.lines])[-2:] == ["TASK_COMPLETED one", "COMPLETED"]


def test_deleted_events_and_logs_do_not_affect_the_run(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": 'run = "true"\nneeds = ["one"]'})
    process = start(line, began=("one",))
    follower = line.start("follow")
    shutil.rmtree(events_directory(line))
    shutil.rmtree(events_directory(line).with_name("logs"))
    write(line.directory / "go", "")
    line.finish(process)
    assert line.finish(follower).lines[-1].endswith("s")
    assert status(line)["counts"] == {"DONE": 2}
    (last,) = line("events", "--json", status=3).lines
    assert json.loads(last)["event"] == "BATCH_COMPLETED"
    log = line("work", "log", "one", status=3)
    assert (log.text, log.notes.split(": ")[0]) == ("", "the log of one is missing")
    assert [row["bytes"] for row in line("work", "log", "one", "--json", status=3).json] == [None]


def test_damaged_events_are_skipped_and_written_again(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "true"', "two": 'run = "test -e fixed"'})
    line("work", "run", status=3)
    path = events_directory(line) / "1.jsonl"
    path.write_bytes(path.read_bytes().replace(b"COMPLETED", b"COMPLETEE") + b'{"event": "BATCH')
    write(line.directory / "fixed", "")
    line("resume")
    events = told(line)
    assert names(events).count("TASK_COMPLETED one") == 1
    assert events[-1]["event"] == "BATCH_COMPLETED"
    assert status(line)["counts"] == {"DONE": 2}


def test_run_continues_if_events_cannot_be_written(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": 'run = "true"'})
    process = start(line, began=("one",))
    shutil.rmtree(events_directory(line))
    events_directory(line).write_text("in the way")
    write(line.directory / "go", "")
    line.finish(process)
    assert status(line)["counts"] == {"DONE": 2}
    assert line("follow").stdout == b""


def test_follow_fails_if_the_batch_has_no_runner(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": ""})
    process = start(line, began=("one",))
    kill_workers(line)
    process.communicate()
    ended = line("follow", "--json", status=3)
    assert "is not running" in ended.error["message"]
    assert "codebatch resume --batch" in ended.error["hint"]
    follower = line.start("follow", "--keep", "--json")
    write(line.directory / "go", "")
    line("resume")
    followed = names([json.loads(line_text) for line_text in line.finish(follower).lines])
    assert followed[-1] == "COMPLETED"
    assert followed.count("TASK_INTERRUPTED one") == 1
    assert followed.count("TASK_COMPLETED one") == 1


def test_follow_waits_for_commands_of_a_dead_runner(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": ""})
    process = start(line, began=("one",))
    process.kill()
    process.communicate()
    follower = line.start("follow")
    write(line.directory / "go", "")
    ended = line.finish(follower, status=3)
    assert "is not running" in ended.notes
    resumed = line("resume", "--json")
    assert resumed.json["status"] == "COMPLETED"
    events = told(line)
    assert names(events).count("TASK_COMPLETED one") == 1
    assert next(event for event in events if event["event"] == "BATCH_TASK_COMPLETED")["seconds"] is not None


def test_events_report_drain_takeover_and_cancel(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    process.send_signal(signal.SIGINT)
    wait_until(lambda: b'"drained"' in b"".join(map(Path.read_bytes, journals(line))), "the signal is recorded")
    process.send_signal(signal.SIGINT)
    line.finish(process, status=130)
    drained = told(line)[-1]
    assert (drained["event"], drained["signal"]) == ("BATCH_DRAINED", "SIGINT")
    (line.directory / "one.began").unlink()
    process = line.start("resume")
    wait_until(lambda: (line.directory / "one.began").exists() or process.poll() is not None, "the task begins again")
    process.kill()
    process.communicate()
    line("cancel", "--grace", "0")
    events = told(line, "--since", drained["cursor"])
    resumed = [event for event in events if event["event"] == "BATCH_RESUMED"]
    assert [event["after"] for event in resumed] == ["drain", "kill"]
    assert names(events)[-2:] == ["TASK_CANCELLED one", "CANCELLED"]
    # The worker notices the cancel itself, and may have ended the command before a new coordinator can adopt it.
    adopted = [event["task"] for event in events if event["event"] == "BATCH_TASK_ADOPTED" and event["pid"] > 0]
    assert [event["adopted"] for event in resumed] == [[], adopted]


def journals(line: CommandLine) -> list[Path]:
    return list((line.directory / ".codebatch" / "batches").glob("b*/journal/*"))


def test_events_report_an_answer(line: CommandLine) -> None:
    make_list(line, {"once": 'if_interrupted = "ask"', "behind": 'run = "true"\nneeds = ["once"]'})
    process = start(line, began=("once",))
    kill_workers(line)
    process.communicate()
    line("resume", status=3)
    line("work", "answer", "once", "done", "--batch", "latest")
    line("resume")
    events = told(line)
    assert names(events) == [
        "STARTED",
        "TASK_QUEUED once",
        "TASK_STARTED once",
        "RESUMED",
        "TASK_INTERRUPTED once",
        "TASK_BLOCKED once",
        "PARTIAL",
        "RESUMED",
        "TASK_ANSWERED once",
        "TASK_COMPLETED once",
        "TASK_QUEUED behind",
        "TASK_STARTED behind",
        "TASK_COMPLETED behind",
        "COMPLETED",
    ]
    assert events[5]["question"]["choices"] == ["again", "failed", "done"]
    assert (events[-5]["marked_done"], events[4]["next_action"]) == (True, "ask")


def check_eta_ignores_work_before_the_cancel(line: CommandLine) -> None:
    """Check that the remaining time of a resumed analysis is estimated from work since the cancel."""
    store = open_store(line.directory / ".codebatch", line.directory)
    batch = resolve_batch(store, None)
    counts = AnalysisFollower(store, batch, FIRST_CURSOR).read()[-1].counts
    ended = sum(counts.values()) - counts["PENDING"]
    append_cancel_lift(batch)
    for path in (batch.root / "journal").iterdir():
        path.unlink()
    shard = batch.plan().shards[0].id
    now = wall_ns()
    journals: dict[str, list[tuple[int, JournalEvent]]] = {
        "e": [(100, Started(pid=1)), (90, Drained(reason="cancel")), (89, Ended(reason="drained"))],
        "f": [(10, Started(pid=1)), (9, _committed(shard, ended + 3))],
    }
    for name, lines in journals.items():
        ago = [now - seconds * 10**9 for seconds, _ in lines]
        journal = JournalWriter(batch.files, batch.root, HolderId(name * 12), iter(ago).__next__)
        for _, event in lines:
            journal.write_event(event)
        journal.close()
    resumed, progress = AnalysisFollower(store, batch, FIRST_CURSOR).read()
    assert isinstance(resumed, BatchResumed)
    assert resumed.after == "request"
    assert isinstance(progress, BatchProgress)
    assert progress.eta_seconds is not None
    seconds_per_result = 10 / (ended + 3)
    assert (
        counts["PENDING"] * seconds_per_result <= progress.eta_seconds[1] < counts["PENDING"] * seconds_per_result * 5
    )


def _committed(shard: ShardId, results: int) -> Committed:
    return Committed(shard=shard, start=0, end=results, round=1, epoch=9, task="slow", records=0)


def test_analysis_can_be_followed_and_cancelled_from_another_process(line: CommandLine) -> None:
    make_modules(line.directory / "tree", 60)
    fast = line.directory / "fast"
    code = (
        f"import os, time\ndef task(file):\n    time.sleep(0.3 * (not os.path.exists({str(fast)!r})))\n    return []\n"
    )
    write_own_task(line.directory, "slow", code)
    process = line.start("run", "tree", "--task", "slow", "-j", "2")
    journal = line.directory / ".codebatch" / "batches"
    wait_until(lambda: bool(list(journal.glob("b*/journal/*.jsonl"))) or process.poll() is not None, "the run begins")
    follower = line.start("follow", "--json")
    assert line("status", "--json").json["status"] in ("RUNNING", "PENDING")
    answer = line("cancel", "--json").json
    assert (answer["schema"], answer["status"]) == ("codebatch.cancel/1", "CANCELLED")
    assert "was cancelled" in line.finish(process, status=3).notes
    followed = line.finish(follower, status=3)
    assert followed.error["code"] == "batch_cancelled"
    assert names([json.loads(line_text) for line_text in followed.lines])[-1] == "CANCELLED"
    assert "no batch of this project is running" in line("cancel", status=2).notes
    check_eta_ignores_work_before_the_cancel(line)
    write(fast, "")
    assert line("resume", "--json").json["status"] == "COMPLETED"
    resumed, ended = told(line)[-2:]
    assert (resumed["event"], resumed["after"]) == (
        "BATCH_RESUMED",
        "kill",
    )  # The events are as if the last line of the journal were missing.
    assert ended["event"] == "BATCH_COMPLETED"
    assert ended["total_seconds"] - ended["seconds"] > 11.99
    assert line("events", "--json").text == line("events", "--json").text  # Repeated queries return the same events.


def test_status_estimates_the_remaining_time_from_earlier_runs(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "sleep 0.3"', "two": "needs = ['one']"})
    write(line.directory / "go", "")
    line("work", "run")
    (line.directory / "go").unlink()
    (line.directory / "two.began").unlink()
    process = start(line, began=("two",))
    wait_until(lambda: status(line)["eta_seconds"] is not None, "the remaining time is estimated")
    low, middle, high = status(line)["eta_seconds"]
    assert low <= middle <= high < 60
    assert "left      " in line("status").text
    write(line.directory / "go", "")
    line.finish(process)
    assert status(line)["eta_seconds"] is None
    durations_file = next((line.directory / ".codebatch" / "cache").glob("durations-*"))
    durations_file.write_bytes(b"cbtime" + bytes(100))
    line("work", "run")
    durations_file.unlink()
    line("work", "run")
    assert durations_file.exists()


def test_longest_task_is_started_first_if_durations_are_known(line: CommandLine) -> None:
    make_list(
        line,
        {"a": 'run = "true"', "b": 'run = "true"', "c": 'run = "sleep 0.5"', "d": 'run = "true"'},
        "max_parallel = 2",
    )
    line("work", "run")
    line("work", "run")
    started = [event["task"] for event in told(line) if event["event"] == "BATCH_TASK_STARTED"]
    assert started[0] == "c"
    assert next(event for event in told(line) if event["event"] == "BATCH_TASK_STARTED")["estimate_seconds"] >= 0.4


def test_dry_run_prints_the_schedule_and_writes_nothing(line: CommandLine) -> None:
    tasks = {"a": 'run = "sleep 0.2"', "b": 'run = "true"\nneeds = ["a"]', "c": 'run = "true"\nexpected_seconds = 60'}
    make_list(line, tasks, "max_parallel = 2")
    before = sorted(line.directory.iterdir())
    planned = line("work", "run", "--dry-run", "--json").json
    assert sorted(line.directory.iterdir()) == before
    assert [(task["task"], task["slot"], task["seconds"]) for task in planned["tasks"]] == [
        ("a", 1, None),
        ("c", 2, 60.0),
        ("b", 1, None),
    ]
    assert planned["without_estimate"] == 2
    line("work", "run")
    known = line("work", "run", "--dry-run", "--json").json
    assert known["without_estimate"] == 0
    starts = {task["task"]: task["start_seconds"] for task in known["tasks"]}
    assert starts["b"] >= 0.1 > starts["c"]
    low, _, high = known["range_seconds"]
    assert low <= known["makespan_seconds"] <= high
    shown = line("work", "run", "--dry-run")
    assert "Estimated duration: " in shown.text
    assert {row.split()[2]: row.split()[-1] for row in shown.lines[2:5]} == {"a": "-", "b": "a", "c": "-"}
    assert len(line("batch", "list", "--json").json) == 1


def test_detached_batch_runs_in_the_background(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    batch_id = line("work", "run", "--detach").text.strip()
    assert status(line)["batch_id"] == batch_id
    assert line("work", "run", "--detach", "--json", status=3).error["code"] == "batch_running"
    write(line.directory / "go", "")
    assert line("follow", "--batch", batch_id).lines[-1].split()[1] == "COMPLETED:"
    assert names(told(line))[0] == "STARTED"


def test_trace_has_spans_of_tasks_and_flows_of_needs(line: CommandLine) -> None:
    make_list(
        line, {"a": 'run = "sleep 0.1"', "b": 'run = "false"\nneeds = ["a"]', "c": 'run = "true"'}, "max_parallel = 2"
    )
    line("work", "run", status=3)
    trace = json.loads(line("trace").stdout)["traceEvents"]
    spans = {event["name"]: event for event in trace if event["ph"] == "X"}
    assert spans.keys() == {"a", "b", "c"}
    assert spans["a"]["dur"] >= 90_000
    assert spans["b"]["ts"] >= spans["a"]["ts"] + spans["a"]["dur"]
    assert spans["b"]["args"]["reason"] == "exit"
    arrows = [(event["ph"], event["id"]) for event in trace if event["ph"] in "sf"]
    assert arrows == [("s", 1), ("f", 1)]
    assert {event["name"] for event in trace if event["ph"] == "C"} >= {"running"}
    assert [event["args"]["running"] for event in trace if event["name"] == "running"][-1] == 0
    written = line("trace", "-o", "trace.json", "--json").json
    assert written["bytes"] == (line.directory / "trace.json").stat().st_size
    make_modules(line.directory / "tree", 3)
    line("run", "tree", "--pipeline", "parse")
    units = [span for span in json.loads(line("trace").stdout)["traceEvents"] if span["ph"] == "X"]
    assert sum(span["args"]["items"] for span in units) == 3


def test_follow_prints_the_end_of_orphaned_commands_after_a_cancel(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": 'run = "true"\nneeds = ["one"]'})
    process = start(line, began=("one",))
    follower = line.start("follow")
    process.kill()
    process.communicate()
    line("cancel", "--force")
    ended = line.finish(follower, status=3)
    assert [line_text.split(" ", 1)[1].split(" in ")[0] for line_text in ended.lines[-2:]] == [
        "stopped one: the batch was cancelled", "CANCELLED: 2 cancelled,",
    ]  # fmt: skip


def test_rewritten_events_have_the_original_round_and_try(line: CommandLine) -> None:
    """`two` completes in a retry by policy. `one` completes after a resume, which resets the number of tries."""
    tried = "echo >>{id}.tries; test $(wc -l <{id}.tries) -gt"
    policy = "\nretries = 1\nbackoff_seconds = 0"
    make_list(
        line, {"one": f'run = "{tried} 2"{policy}', "two": f'run = "{tried} 1"{policy}'}, 'on_failure = "continue"'
    )
    line("work", "run", status=3)
    shutil.rmtree(events_directory(line))
    line("resume")
    endings = [
        (event["event"][11:], event["task"], event["round"], event["try"])
        for event in told(line)
        if "exit_status" in event
    ]
    assert sorted(endings) == [
        ("COMPLETED", "one", 3, 1), ("COMPLETED", "two", 2, 2),
        ("RETRYING", "one", 1, 1), ("RETRYING", "one", 2, 1), ("RETRYING", "two", 1, 1),
    ]  # fmt: skip
