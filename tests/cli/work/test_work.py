"""Work batches on the command line, with real processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codebatch.operations.project.stores import open_store
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.resolution import resolve_batch
from codebatch.system.processes.proc import process_stat
from codebatch.work.control import cancel
from codebatch.work.control.listener import WorkListener
from tests.support.command_line import CommandLine, wait_until, write

WAITS = "echo began >>{id}.began; while [ ! -e go ]; do sleep 0.02; done; echo ended >>{id}.ended"
"""A command that records its start, waits until it may end, and records its end."""


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """The command line in a separate directory `project`."""
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path / "project")


def make_list(line: CommandLine, tasks: dict[str, str], top: str = "") -> None:
    """Write work.toml with keys for each task. If the keys have no `run`, the command is WAITS."""
    tables = []
    for name, keys in tasks.items():
        run = "" if "run =" in keys else f"run = {json.dumps(WAITS.format(id=name))}\n"
        tables.append(f"[tasks.{name}]\n{run}{keys}\n")
    write(line.directory / "work.toml", f"{top}\n" + "\n".join(tables))


def has_begun(line: CommandLine, *names: str) -> bool:
    return all((line.directory / f"{name}.began").exists() for name in names)


def count(line: CommandLine, name: str) -> int:
    """Return the number of lines in a file of a command, or 0 if it is missing."""
    path = line.directory / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def states(line: CommandLine, *words: str | Path) -> dict[str, str]:
    return {task["id"]: task["state"] for task in line("status", *words, "--json").json["tasks"]}


def start(line: CommandLine, *words: str, began: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start a run in the background, and return its process once the tasks `began` have begun."""
    process = line.start("work", "run", *words)
    wait_until(lambda: has_begun(line, *began) or process.poll() is not None, f"{began} have begun")
    return process


def status(line: CommandLine) -> dict[str, Any]:
    answer = line("status", "--json").json
    assert isinstance(answer, dict)
    return answer


def kill_workers(line: CommandLine) -> None:
    """Send SIGKILL to the coordinator, if there is one, and to all workers."""
    answer = status(line)
    for holder in [answer["coordinator"], *answer["workers"]]:
        if holder is not None:
            os.kill(holder["pid"], signal.SIGKILL)


def test_task_list_is_run_and_resume_retries_failed_tasks(line: CommandLine) -> None:
    make_list(
        line,
        {
            "build": 'run = "echo built"',
            "test": 'run = "seq 30; test -e fixed"\nneeds = ["build"]',
            "ship": 'run = ["echo", "shipped"]\nneeds = ["test"]',
            "always": 'run = "echo $WHO"\nafter = ["test"]',
        },
    )
    ended = line("work", "run", "--env", "WHO=me", status=3)
    assert ended.text.startswith("PARTIAL: 2 of 4 done (50%), 1 failed, 1 skipped, in ")
    assert "[2/4] test   failed" in ended.notes
    assert "\n        30\n" in ended.notes
    assert "\n        10\n" not in ended.notes  # Only the last 20 lines are shown.
    batch_id = status(line)["batch_id"]
    assert ended.notes.splitlines()[-2:] == [
        f"error: 1 task of batch {batch_id} failed: test",
        (
            f"hint: see the output with: codebatch work log --batch {batch_id}; then: codebatch resume "
            f"--batch {batch_id}"
        ),
    ]
    text = line("status").text
    assert "\nfailed   test    -      exit status 1\n" in text
    assert "\nskipped  ship    -      needs test\n" in text
    assert line("work", "log", "always").stdout == b"me\n"
    assert line("work", "log").lines == [f"[test] {n}" for n in range(1, 31)]
    assert line("work", "log", "test", "--tail", "2").stdout == b"29\n30\n"
    assert line("work", "log", "--json").json[0]["last"] == [str(n) for n in range(11, 31)]
    assert "has not started: it is SKIPPED" in line("work", "log", "ship", status=5).notes
    assert line("work", "log", "tets", "--json", status=2).error["hint"] == "did you mean 'test'?"

    write(line.directory / "fixed", "")
    answer = line("resume", "--json").json
    assert (answer["schema"], answer["status"]) == ("codebatch.work-status/1", "COMPLETED")
    assert [(task["id"], task["round"]) for task in answer["tasks"]] == [
        ("build", 1),
        ("test", 2),
        ("ship", 1),
        ("always", 1),
    ]
    assert line("work", "log", "test", "--round", "1", "--tail", "1").stdout == b"30\n"
    assert "no log of attempt 3" in line("work", "log", "test", "--round", "3", status=2).notes
    assert "all tasks are done" in line("resume").notes
    assert line("resume", "--force", "--json").json["tasks"][0]["round"] == 2


def test_each_run_creates_a_batch_and_prints_the_selected_output(line: CommandLine) -> None:
    make_list(line, {"one": "run = \"printf 'a\\\\nb'\"", "two": 'run = "echo two; false"'})
    shown = line("work", "run", "--output", "all", status=3).notes
    assert "[one] a\n[one] b\n" in shown
    assert "[two] two\n" in shown
    assert "two\n" not in line("work", "run", "--output", "none", status=3).notes.replace("failed: two\n", "")
    assert line("work", "run", "-q", "--json", status=3).json["counts"] == {"DONE": 1, "FAILED": 1}
    assert len(line("batch", "list", "--pipeline", "work", "--json").json) == 3


def test_batch_can_be_cancelled_from_another_process(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": "grace_seconds = 0.1", "three": 'needs = ["one"]'}, "max_parallel = 2")
    process = start(line, began=("one", "two"))
    answer = line("cancel", "--json").json
    assert (answer["status"], answer["counts"]) == ("CANCELLED", {"CANCELLED": 2, "SKIPPED": 1})
    assert (answer["coordinator"], answer["workers"]) == (None, [])
    assert "was cancelled" in line.finish(process, status=3).notes
    assert line("cancel", "--batch", answer["batch_id"]).text.startswith("CANCELLED")
    assert "no batch of this project is running" in line("cancel", status=2).notes
    write(line.directory / "go", "")
    assert line("resume", "--json").json["status"] == "COMPLETED"
    assert (count(line, "one.began"), count(line, "one.ended")) == (2, 1)


def test_batch_with_a_stopped_worker_can_be_cancelled(line: CommandLine) -> None:
    make_list(line, {"one": "grace_seconds = 0.1"})
    process = start(line, began=("one",))
    (pid,) = (worker["pid"] for worker in status(line)["workers"])
    os.kill(pid, signal.SIGSTOP)
    assert line("cancel", "--json").json["status"] == "CANCELLED"
    line.finish(process, status=3)


def test_killed_runner_interrupts_no_command(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": "", "three": 'needs = ["one", "two"]'}, "max_parallel = 2")
    process = start(line, began=("one", "two"))
    process.kill()
    process.communicate()
    answer = status(line)
    assert (answer["status"], answer["stalled"], answer["coordinator"]) == ("RUNNING", False, None)
    assert answer["counts"] == {"RUNNING": 2, "PENDING": 1}
    resumed = line.start("resume", "--json")
    wait_until(lambda: status(line)["coordinator"] is not None, "the batch has a new coordinator")
    write(line.directory / "go", "")
    assert json.loads(line.finish(resumed).stdout)["status"] == "COMPLETED"
    assert [count(line, f"{name}.began") for name in ("one", "two", "three")] == [1, 1, 1]


@pytest.mark.parametrize("moved", ["outcomes", ""])
def test_run_fails_if_its_batch_is_moved_away(line: CommandLine, moved: str) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    (batch,) = (line.directory / ".codebatch" / "batches").glob("batch-*")
    (batch / moved).rename(line.directory / "moved")
    write(line.directory / "go", "")
    assert "another process removed result files" in line.finish(process, status=4).notes


def test_interrupted_command_with_if_interrupted_ask_is_blocked(line: CommandLine) -> None:
    make_list(line, {"once": 'if_interrupted = "ask"', "behind": 'needs = ["once"]'})
    process = start(line, began=("once",))
    kill_workers(line)
    process.communicate()
    stood = status(line)
    assert (stood["status"], stood["stalled"], stood["tasks"][0]["state"]) == ("RUNNING", True, "PENDING")
    assert "`resume` restarts it" in stood["tasks"][0]["explanation"]
    ended = line("resume", "--json", status=3)
    assert ended.error["code"] == "batch_blocked"
    batch_id = json.loads(ended.stdout)["batch_id"]
    assert f"codebatch work questions --batch {batch_id}" in ended.error["hint"]
    assert states(line) == {"once": "BLOCKED", "behind": "PENDING"}
    assert [row["batch_id"] for row in line("batch", "list", "--active", "--json").json] == [batch_id]
    refused = line("work", "answer", "behind", "done", "--batch", batch_id, "--json", status=2).error
    assert refused["message"] == "task 'behind' is not waiting for an answer"
    assert line("work", "answer", "once", "done", "--json").json["counts"] == {
        "DONE": 1,
        "READY": 1,
    }
    write(line.directory / "go", "")
    line("resume")
    assert (count(line, "once.began"), count(line, "behind.began")) == (1, 1)


def test_orphaned_command_is_killed_before_its_task_is_restarted(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    kill_workers(line)
    process.communicate()
    wait_until(lambda: status(line)["tasks"][0]["state"] != "RUNNING", "the worker has ended")
    (task,) = status(line)["tasks"]
    assert (task["state"], task["explanation"].rpartition("; ")[2]) == ("READY", "`resume` restarts it")
    write(line.directory / "go2", "")
    resumed = line.start("resume")
    wait_until(lambda: count(line, "one.began") == 2, "the task is restarted")
    write(line.directory / "go", "")
    line.finish(resumed)
    assert count(line, "one.ended") == 1  # The first attempt was killed before.


def test_output_of_tasks_is_printed_exactly_once(line: CommandLine) -> None:
    long = "yes x | head -n 2500000 | tr -d '\\n'"
    tasks = {
        "fast": 'run = "seq 200000"',
        "slow": 'run = "echo one; sleep 0.3; echo two"',
        "long": f"run = {json.dumps(long + '; echo; printf last')}",
    }
    make_list(line, tasks, "max_parallel = 3")
    shown = line("work", "run", "--output", "all").notes.splitlines()
    assert [shown_line for shown_line in shown if shown_line.startswith("[fast]")] == [
        f"[fast] {n}" for n in range(1, 200_001)
    ]
    assert [shown_line for shown_line in shown if shown_line.startswith("[slow]")] == ["[slow] one", "[slow] two"]
    of_long = [shown_line.removeprefix("[long] ") for shown_line in shown if shown_line.startswith("[long]")]
    assert "".join(of_long[:-1]) == "x" * 2_500_000
    assert of_long[-1] == "last"


def test_cancel_of_a_batch_without_runner_sets_its_end_time(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "true"', "two": ""})
    process = start(line, began=("two",))
    kill_workers(line)
    process.communicate()
    outcomes = next((line.directory / ".codebatch" / "batches").glob("*/outcomes"))
    os.utime(outcomes, (0, 0))
    assert line("cancel", "--batch", "latest", "--json").json["ended_at"] >= status(line)["started_at"]


def test_unreadable_request_is_reported_as_damage(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "true"'})
    line("work", "run")
    (batch,) = (line.directory / ".codebatch" / "batches").iterdir()
    (batch / "requests").mkdir(exist_ok=True)
    write(batch / "requests" / "000001.json", "{")
    assert line("status", "--json", status=4).error["code"] == "store_corrupt"
    assert "000001.json" in line("diagnose", status=4, has_answer=True).text
    (batch / "requests" / "000001.json").unlink()
    assert status(line)["status"] == "COMPLETED"


@pytest.mark.parametrize(
    "words", [("work", "run", "-j", "9" * 20), ("cancel", "--grace", "nan"), ("cancel", "--grace", "1e30")]
)
def test_out_of_range_options_are_rejected(line: CommandLine, words: tuple[str, ...]) -> None:
    make_list(line, {"one": 'run = "true"'})
    assert "must be from" in line(*words, status=2).notes


def test_interrupted_and_cancelled_task_is_restarted_once(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    kill_workers(line)
    process.communicate()
    assert line("cancel", "--batch", "latest", "--json").json["status"] == "CANCELLED"
    write(line.directory / "go", "")
    assert line("resume", "--json").json["counts"] == {"DONE": 1}
    assert (count(line, "one.began"), count(line, "one.ended")) == (2, 1)


@pytest.mark.parametrize("lost", ["batches/*/plan.json", "batches/*/work.json", "snapshots"])
def test_resume_with_missing_documents_suggests_work_run(line: CommandLine, lost: str) -> None:
    make_list(line, {"one": 'run = "true"'})
    line("work", "run")
    (batch,) = (line.directory / ".codebatch" / "batches").iterdir()
    (path,) = (line.directory / ".codebatch").glob(lost)
    path.rename(line.directory / "lost")
    error = line("resume", "--force", "--batch", batch.name, "--json", status=4).error
    assert "codebatch work run" in error["hint"]


def test_cancel_with_force_kills_a_stopped_runner(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    os.kill(process.pid, signal.SIGSTOP)
    ended = line("cancel", "--force", "--json")
    assert ended.json["status"] == "CANCELLED"
    assert f"process {process.pid}\n" in ended.notes
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    write(line.directory / "go", "")
    assert count(line, "one.ended") == 0


def test_cancel_with_no_wait_returns_at_once(line: CommandLine) -> None:
    run = "trap 'echo >told' TERM; echo >one.began; while [ ! -e go ]; do sleep 0.02; done"
    make_list(line, {"one": f"run = {json.dumps(run)}"})
    process = start(line, began=("one",))
    answer = line("cancel", "--no-wait", "--grace", "60", "--json").json
    assert answer["coordinator"] is not None
    wait_until((line.directory / "told").exists, "the task is told to end")
    write(line.directory / "go", "")
    line.finish(process, status=3)
    assert status(line)["status"] == "CANCELLED"


def test_second_batch_in_a_directory_requires_parallel_batches(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    batch_id = status(line)["batch_id"]
    error = line("work", "run", "--json", status=3).error
    assert (error["code"], error["message"]) == (
        "batch_running",
        f"batch {batch_id} is running in the same directory",
    )
    assert line("resume", "--json", status=3).error["code"] == "batch_running"
    beside = line.start("work", "run", "--parallel-batches", "-q")
    wait_until(lambda: count(line, "one.began") == 2, "the second one begins")
    error = line("cancel", "--json", status=2).error
    assert error["code"] == "ambiguous_id"
    assert batch_id in error["message"]
    write(line.directory / "go", "")
    line.finish(process)
    line.finish(beside)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_prevents_new_tasks_from_starting(line: CommandLine, number: signal.Signals, expected: int) -> None:
    make_list(line, {"one": "", "two": ""})
    process = start(line, began=("one",))
    process.send_signal(number)
    journal = next((line.directory / ".codebatch" / "batches").glob("*/journal"))
    wait_until(
        lambda: any(b'"drained"' in journal_file.read_bytes() for journal_file in journal.iterdir()),
        "the signal is recorded",
    )
    write(line.directory / "go", "")
    ended = line.finish(process, status=expected)
    assert "no new tasks are started; waiting for 1 task (press Ctrl-C again to stop them)\n" in ended.notes
    assert ended.text.startswith("RUNNING: 1 of 2 done (50%), 1 ready")
    line("resume")
    assert (count(line, "one.began"), count(line, "two.began")) == (1, 1)


def test_second_signal_reports_the_stopped_tasks(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    process.send_signal(signal.SIGINT)
    journal = next((line.directory / ".codebatch" / "batches").glob("*/journal"))
    wait_until(
        lambda: any(b'"drained"' in journal_file.read_bytes() for journal_file in journal.iterdir()),
        "the signal is recorded",
    )
    process.send_signal(signal.SIGINT)
    ended = line.finish(process, status=130)
    assert "stopping 1 task (press Ctrl-C again to kill)\n" in ended.notes


def test_cancel_names_the_process_it_waits_for_and_gives_a_hint(
    line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(cancel, "POLLS_UNTIL_HINT", 2)
    store = open_store(line.directory / ".codebatch", line.directory)
    batch = resolve_batch(store, None, kind="work")
    notes: list[str] = []

    class Continues(WorkListener):
        def note(self, text: str) -> None:
            notes.append(text)
            process.send_signal(signal.SIGCONT)

    cancelled = cancel.cancel_batch(store, batch, listener=Continues())
    assert cancelled.standing.state is BatchState.CANCELLED
    who, force = f"process {process.pid} on {socket.gethostname()}", f"codebatch cancel --force --batch {batch.id}"
    how = f"continue it with: kill -CONT {process.pid}; or kill it with: {force}"
    assert notes == [f"still waiting for {who}: the process is suspended; {how}"]
    line.finish(process, status=3)


def test_new_run_reports_orphaned_commands_of_a_dead_run(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    batch_id = status(line)["batch_id"]
    kill_workers(line)
    line.finish(process, status=-signal.SIGKILL)
    write(line.directory / "quick.toml", 'root = "."\n[tasks.two]\nrun = "true"\n')
    notes = line("work", "run", "-f", "quick.toml").notes
    match = re.search(r"batch (\S+) left 'one' running \(process (\d+)\); (.*)", notes)
    assert match is not None
    assert match[1] == batch_id
    process_status = process_stat(int(match[2]))
    assert process_status is not None
    assert not process_status.is_zombie
    end, resume = f"codebatch cancel --batch {batch_id}", f"codebatch resume --batch {batch_id}"
    assert match[3] == f"stop it with: {end}; or resume the batch with: {resume}"
    ticks = process_status.start_ticks
    cells = (line.directory / ".codebatch/batches" / batch_id).glob("holders/*.cell")
    (cell,) = (cell for cell in cells if ticks.to_bytes(8, "little") in cell.read_bytes())
    data = cell.read_bytes()
    cell.write_bytes(data.replace(ticks.to_bytes(8, "little"), (ticks - 1).to_bytes(8, "little")))
    assert "running (process" not in line("work", "run", "-f", "quick.toml").notes, "its process ID was reused"
    cell.write_bytes(data)
    line("cancel", "--batch", batch_id)
    process_status = process_stat(int(match[2]))
    assert process_status is None or process_status.is_zombie
    assert "running (process" not in line("work", "run", "-f", "quick.toml").notes


def test_batch_without_pending_tasks_completes_after_a_signal(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    process.send_signal(signal.SIGINT)
    journal = next((line.directory / ".codebatch" / "batches").glob("*/journal"))
    wait_until(
        lambda: any(b'"drained"' in journal_file.read_bytes() for journal_file in journal.iterdir()),
        "the signal is recorded",
    )
    write(line.directory / "go", "")
    ended = line.finish(process, status=130)
    assert ended.text.startswith("COMPLETED")
    assert "stopped" not in ended.notes


def test_copied_store_runs_no_commands(line: CommandLine, tmp_path: Path) -> None:
    make_list(line, {"one": 'run = "echo ran >>one.ran; test -e fixed"'})
    line("work", "run", status=3)
    copied = tmp_path / "copied"
    shutil.copytree(line.directory / ".codebatch", copied, symlinks=True)
    batch_id = status(line)["batch_id"]
    assert states(line, "--store", copied) == {"one": "FAILED"}
    ended = line("resume", "--store", copied, "--batch", batch_id, "--json", status=4)
    assert ended.error["code"] == "store_foreign"
    assert "one: echo ran >>one.ran; test -e fixed" in ended.notes
    assert line("cancel", "--store", copied, "--batch", batch_id, "--json", status=4).error["code"] == "store_foreign"
    assert line("work", "run", "--store", copied, "--json", status=4).error["code"] == "store_foreign"
    assert count(line, "one.ran") == 1
    error = line("resume", "--store", line.directory / ".codebatch", "--json", status=2).error
    assert f"codebatch resume --batch {batch_id}" in error["hint"]
    hint = line("resume", "--store", copied, "--batch", batch_id, "--trust", "--json", status=3).error["hint"]
    assert hint.endswith(f"; then: codebatch resume --batch {batch_id} --trust --store {copied}")
    assert f"work log --batch {batch_id} --store" in hint
    write(line.directory / "fixed", "")
    line("resume", "--store", copied, "--batch", batch_id, "--trust")
    line("work", "run", "--store", copied, "--trust")
    assert count(line, "one.ran") == 4


def test_resume_rejects_options_that_change_the_batch_settings(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "false"'})
    line("work", "run", status=3)
    assert "is resumed with the settings" in line("resume", "-j", "4", status=2).notes


def test_gc_removes_old_batches_unless_blocked(line: CommandLine) -> None:
    make_list(line, {"once": 'if_interrupted = "ask"'})
    process = start(line, began=("once",))
    kill_workers(line)
    process.communicate()
    line("resume", status=3)
    blocked = status(line)["batch_id"]
    write(line.directory / "go", "")
    ids = [line("work", "run", "--json").json["batch_id"] for _ in range(3)]
    gone = line("gc", "--keep", "1", "--json").json
    assert gone["batches"] == ids[:2]
    assert gone["settled"] == []
    left = [row["batch_id"] for row in line("batch", "list", "--json").json]
    assert left == [blocked, ids[2]]
    assert line("work", "log", "once", "--batch", ids[2], "--json").json[0]["bytes"] == 0


def test_python_interface_starts_resumes_and_cancels_batches(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "echo $WHO; test -e fixed"'})
    code = """
from codebatch import work
ran = work.start(env=["WHO=me"])
print(ran.standing.counts, type(ran.shortfall).__name__, ran.signal_status)
print([found.batch.id for found in work.iter_batches()] == [ran.batch.id])
open("fixed", "w").close()
print(work.resume().standing.counts, work.get().shortfall, work.cancel(ran.batch.id).standing.state.value)
"""
    script = write(line.directory / "calls.py", code)
    python = Path(line.environment["PATH"].split(":")[0]) / "python"
    ended = subprocess.run(
        [python, script], cwd=line.directory, env=line.environment, capture_output=True, check=True, timeout=60
    )
    assert ended.stdout.decode().splitlines() == [
        "{'FAILED': 1} BatchIncomplete 0",
        "True",
        "{'DONE': 1} None COMPLETED",
    ]


def test_completion_offers_task_ids(line: CommandLine) -> None:
    make_list(line, {"alpha": 'run = "true"', "beta": 'run = "true"'})
    line("work", "run")
    words = {"_CODEBATCH_COMPLETE": "bash_complete", "COMP_WORDS": "codebatch work log al", "COMP_CWORD": "3"}
    assert CommandLine(line.directory, words)().stdout == b"plain,alpha\n"
