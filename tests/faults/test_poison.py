"""Files whose tasks kill their worker: each failure is reported with its evidence, and all other files complete."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Collection
from pathlib import Path

import pytest

from codebatch.store.batches.journal import Began, JournalEvent, Lost, Spawned, read_journal
from tests.faults.conftest import Poisoned, orphans
from tests.support.command_line import CommandLine, wait_until
from tests.support.worker_processes import check_no_process_left, open_latest

linux = pytest.mark.skipif(
    not Path(f"/proc/self/task/{os.getpid()}/children").exists(),
    reason="the kernel does not list the children of a process",
)

LIMITS = ("--batch", "latest", "--store", "store", "--file-seconds", "3", "--memory-mb", "300", "-j", "2")

POISON = {
    "segfault": ("crash", "SIGSEGV"),
    "exit_at_once": ("crash", "exit status 7"),
    "leave": ("exception", "SystemExit: leaving"),
    "loop": ("timeout", "timeout: killed by SIGKILL"),
    "memory": ("memory", "memory: killed by SIGKILL"),
    "memory_of_a_child": ("memory", "memory: killed by SIGKILL"),
    "descriptors": ("exception", "Too many open files"),
    "child": ("crash", "exit status 8"),
    "fork": ("crash", "exit status 9"),
    "flood": ("exception", "RuntimeError: flooded"),
    "unpicklable": ("exception", "Unpicklable"),
    "recursion": ("exception", "RecursionError"),
}


def _tree(deeds: Collection[str]) -> dict[str, str]:
    files = {f"innocent{n:02}.txt": f"line {n}\n" for n in range(5 * len(deeds))}
    return files | {f"innocent{n * 5:02}-{deed}.txt": f"{deed}\n" for n, deed in enumerate(deeds)}


def test_poisonous_files_fail_with_evidence_and_all_others_complete(poisoned: Poisoned) -> None:
    run = poisoned(_tree(POISON))
    run.prefix = ("env",)  # With a prefix, real workers are started, so that evidence comes from real interpreters.
    answer = run("run", *LIMITS, "--json", status=3).json
    assert answer["status"] == "PARTIAL"
    assert answer["failures"] == 2 * len(POISON)

    failures = run("errors", "--store", "store", "--json").records
    by_task = {task: {row["path"]: row for row in failures if row["task"] == task} for task in ("venom", "symptom")}
    assert {row["reason"] for row in by_task["symptom"].values()} == {"needs"}
    assert by_task["symptom"].keys() == by_task["venom"].keys()
    for path, row in by_task["venom"].items():
        reason, evidence = POISON[path.partition("-")[2].removesuffix(".txt")]
        assert row["reason"] == reason, row
        assert evidence in row["evidence"], row
        if reason in ("crash", "timeout", "memory"):
            assert "phase: item" in row["evidence"]
            assert "peak memory: " in row["evidence"]
    stacks = {path: row["evidence"] for path, row in by_task["venom"].items() if "segf" in path or "loop" in path}
    assert all(f"in {path.partition('-')[2].removesuffix('.txt')}" in stack for path, stack in stacks.items()), stacks
    metrics = run("query", "outputs", "--store", "store", "--kind", "metric", "--json", status=3).json
    assert (metrics["complete"], len(metrics["records"])) == (False, 2 * 5 * len(POISON))
    check_no_process_left(open_latest(run.directory / "store"))
    assert not orphans()


def test_run_prints_failures_with_their_reasons(poisoned: Poisoned) -> None:
    run = poisoned({"a.txt": "a", "b.txt": "recursion"})
    ended = run("run", *LIMITS, status=3)
    assert any("b.txt" in line and "exception" in line for line in ended.lines)
    assert "codebatch resume" in ended.notes


def test_resume_retries_failures_and_dependent_tasks_in_a_new_round(poisoned: Poisoned, tmp_path: Path) -> None:
    deeds = ("segfault", "leave", "hang", "memory")  # There is one file for each reason of a failure.
    run = poisoned(_tree(deeds), shard=4)
    first = run("run", *LIMITS, "--json", status=3).json
    (tmp_path / "antidote").touch()
    answer = run("resume", *LIMITS, "--json").json
    assert (answer["status"], answer["failures"]) == ("COMPLETED", 0)
    assert answer["result_digest"] != first["result_digest"]

    batch = open_latest(tmp_path / "store")
    events = [line.event for line in read_journal(batch.files, batch.root)]
    begun = [event for event in events if isinstance(event, Began) and event.round == 2]
    assert sum(event.end - event.start for event in begun) == len(deeds)
    assert {event.tasks for event in begun} == {("venom", "symptom")}


def test_results_do_not_depend_on_worker_deaths(poisoned: Poisoned, tmp_path: Path) -> None:
    deeds = ("segfault", "exit_at_once", "recursion")
    files = {f"f{n:02}.txt": deeds[n // 8] if n % 8 == 0 else f"{n}" for n in range(24)}
    digests = set()
    for jobs in ("1", "3"):
        run = poisoned(files, shard=8)
        digests.add(
            run("run", "--batch", "latest", "--store", "store", "--json", "-j", jobs, status=3).json["result_digest"]
        )
        shutil.rmtree(tmp_path / "store")
    assert len(digests) == 1


def test_run_ends_with_an_error_if_every_worker_dies(poisoned: Poisoned, tmp_path: Path) -> None:
    run = poisoned({f"{n}.txt": "x" for n in range(20)})
    (tmp_path / "plague").touch()
    error = run("run", *LIMITS, "--json", status=3).error
    assert error["code"] == "environment_broken"
    (tmp_path / "plague").unlink()
    assert run("run", *LIMITS, "--json").json["status"] == "COMPLETED"


@pytest.mark.parametrize("deed", ["leave_a_child", pytest.param("detach", marks=linux)])
def test_children_of_tasks_do_not_outlive_the_run(poisoned: Poisoned, deed: str) -> None:
    run = poisoned({"a.txt": deed, "b.txt": "b"})
    assert run("run", *LIMITS, "--json").json["status"] == "COMPLETED"
    assert not orphans()


def test_children_of_a_killed_run_do_not_outlive_the_next_run(poisoned: Poisoned) -> None:
    run = poisoned({"a.txt": "leave_a_child", **{f"b{n}.txt": "slow" for n in range(20)}}, shard=4)
    process = run.start("run", *LIMITS)
    wait_until(lambda: bool(orphans()), "a task started a child")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert run("run", *LIMITS, "--json").json["status"] == "COMPLETED"
    assert not orphans()


def test_worker_with_leaking_tasks_is_replaced_in_time(poisoned: Poisoned) -> None:
    run = poisoned({f"{n:03}.txt": "leak" for n in range(200)}, shard=64)
    assert run("run", *LIMITS, "--json").json["status"] == "COMPLETED"
    batch = open_latest(run.directory / "store")
    assert sum(isinstance(line.event, Spawned) for line in read_journal(batch.files, batch.root)) >= 10


def test_worker_death_during_a_commit_blames_no_file(poisoned: Poisoned) -> None:
    run = poisoned({"a.txt": "die_before_the_links"})
    answer = run("run", *LIMITS, "--json").json
    assert (answer["status"], answer["failures"]) == ("COMPLETED", 0)
    assert [event.reason for event in _events(run) if isinstance(event, Lost)] == ["exit status 11"] * 2


def test_unreported_commit_is_not_executed_again(poisoned: Poisoned) -> None:
    run = poisoned({"a.txt": "die_behind_the_links"})
    answer = run("run", *LIMITS, "--json").json
    assert (answer["status"], answer["failures"]) == ("COMPLETED", 0)
    events = list(map(type, _events(run)))
    assert (events.count(Lost), events.count(Began)) == (1, 1)


def _events(run: CommandLine) -> list[JournalEvent]:
    batch = open_latest(run.directory / "store")
    return [line.event for line in read_journal(batch.files, batch.root)]
