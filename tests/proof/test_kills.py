"""Real kill -9 at random points of coordinators and workers: no result is lost, duplicated or changed.

CODEBATCH_PROOF_KILLS is the number of kills.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from codebatch.store import layout
from codebatch.store.batches.batch_directory import batch_ids, open_batch
from codebatch.store.batches.journal import Failed, read_journal
from codebatch.store.batches.store_directory import open_store
from codebatch.system.files.files import RealFiles
from tests.support.command_line import CommandLine, make_many, write
from tests.support.invariants import check_batch, merged
from tests.support.worker_processes import check_no_process_left, open_latest

KILLS = int(os.environ.get("CODEBATCH_PROOF_KILLS", "40"))
FILES = 120
RULE = "[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n"
ARGUMENTS = ("run", "many", "--store", "store", "-j", "2", "--json", "-q")
PATIENCE_SECONDS = 1.0
COMMANDS = """
[tasks.check]
command = ["sh", "-c", 'sleep 0.02; grep -Hn import "$@" | sed "s/:import/: import/"', "check", "{files}"]
match = ["*.py"]
chunk = 4
records = "gcc"
exit_ok = [0, 1]
version = ["echo", "1"]

[tasks.tree]
command = ["sh", "-c", "sleep 0.1; grep -rn import . | sed 's/:import/: import/'"]
scope = "project"
records = "gcc"
version = ["echo", "1"]
"""
"""Tasks that call a program: one for the files of a unit, and one for the whole tree."""


@pytest.mark.slow
def test_random_kills_change_no_result(tmp_path: Path) -> None:
    make_many(tmp_path / "many", FILES)
    (tmp_path / "codebatch.toml").write_text(f"{RULE}{COMMANDS}", encoding="utf-8")
    codebatch = CommandLine(tmp_path)
    codebatch(*ARGUMENTS)
    for task in ("check", "tree"):
        assert (
            len(codebatch("query", "diagnostics", "--store", "store", "--tool", task, "--limit", "999").lines) >= FILES
        )
    serial = merged(open_latest(tmp_path / "store"))
    chance = random.Random(1)
    kills = {"coordinator": 0, "worker": 0}
    while sum(kills.values()) < KILLS:
        before = len(_batches(tmp_path))
        _run_with_random_kills(codebatch, chance, kills)
        assert len(_batches(tmp_path)) == before + 1
        batch = open_latest(tmp_path / "store")
        check_batch(batch, serial)
        check_no_process_left(batch)
        failed = [line for line in read_journal(batch.files, batch.root) if isinstance(line.event, Failed)]
        assert not failed, "an innocent file was recorded as failed"
    print(f"kill -9: {kills}, {len(_batches(tmp_path)) - 1} batches")
    assert min(kills.values()) > KILLS // 20


def _run_with_random_kills(codebatch: CommandLine, chance: random.Random, kills: dict[str, int]) -> None:
    """Run a new batch, and start it again after every kill of its coordinator, until it is completed."""
    process = codebatch.start(*ARGUMENTS, "--again")
    known = len(_batches(codebatch.directory))
    while True:
        _wait_for_commits(codebatch, process, chance.choice((0, 1, 2, 4, 12)))
        is_over = sum(kills.values()) >= KILLS or process.poll() is not None
        victim = None if is_over else _kill_one(process.pid, chance)
        if victim is not None:
            kills["coordinator" if victim == process.pid else "worker"] += 1
        if process.poll() is None and victim != process.pid:
            continue
        stdout, stderr = process.communicate(timeout=60)
        if process.returncode == 0:
            return
        if process.returncode != -signal.SIGKILL:
            ended = codebatch.check("run", process.returncode, stdout, stderr, 3)
            assert ended.error["code"] == "environment_broken", ended.notes
        is_there = len(_batches(codebatch.directory)) > known
        process = codebatch.start(*ARGUMENTS, *(() if is_there else ("--again",)))


def _wait_for_commits(codebatch: CommandLine, process: subprocess.Popen[bytes], more: int) -> None:
    """Wait until `more` registers have been added, the process has ended, or about a second has passed."""
    results = codebatch.directory / "store" / "batches"
    wanted = _registers(results) + more
    for _ in range(int(PATIENCE_SECONDS / 0.01)):
        if process.poll() is not None or _registers(results) >= wanted:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.01)


def _kill_one(coordinator: int, chance: random.Random, *, alone: float = 0.05) -> int | None:
    """Kill the coordinator or one of its workers. Return the pid of the killed process, or None if it was not alive.

    While the coordinator has no workers, it is killed with the probability `alone`. It must be low enough for the
    coordinator to get workers.
    """
    try:
        workers = [child.pid for child in psutil.Process(coordinator).children()]
        if chance.random() < (0.25 if workers else alone):
            victim = coordinator
        elif workers:
            victim = chance.choice(workers)
        else:
            return None
        os.kill(victim, signal.SIGKILL)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return None
    return victim


def _registers(batches: Path) -> int:
    return sum(len(os.listdir(outcomes)) for outcomes in batches.glob(f"batch-*/{layout.OUTCOMES}"))


def _batches(directory: Path) -> list[str]:
    return batch_ids(open_store(RealFiles(), directory / "store"))


@pytest.mark.slow
def test_random_kills_during_reuse_and_collection_change_no_result(tmp_path: Path) -> None:
    """Each round changes a file and kills runs at random instants until one completes."""
    make_many(tmp_path / "many", FILES // 3)
    (tmp_path / "codebatch.toml").write_text(f"{RULE}[store]\nkeep = 2\n", encoding="utf-8")
    codebatch = CommandLine(tmp_path)
    seconds = codebatch(*ARGUMENTS).json["seconds"] + 0.5
    chance = random.Random(2)
    kills = {"coordinator": 0, "worker": 0}
    rounds = reused = 0
    while sum(kills.values()) < max(2, KILLS // 25):
        rounds += 1
        write(tmp_path / "many" / f"package{rounds % 7}" / "changed.py", f"x = {rounds}\n")
        answer = _run_until_it_ends(codebatch, chance, kills, seconds)
        reused += answer["reused"]
        codebatch("run", "many", "--store", f"fresh{rounds}", "--no-cache", "-q")
        serial = merged(open_latest(tmp_path / f"fresh{rounds}"))
        shutil.rmtree(tmp_path / f"fresh{rounds}")
        check_batch(open_latest(tmp_path / "store"), serial)
        store = open_store(RealFiles(), tmp_path / "store")
        for batch_id in batch_ids(store):
            merged(open_batch(store, batch_id))
        assert len(batch_ids(store)) <= 3
    print(f"kill -9 beside older batches: {kills}, {rounds} trees, {reused} results reused")
    assert reused > 0
    assert kills["coordinator"] > 0


def _run_until_it_ends(
    codebatch: CommandLine, chance: random.Random, kills: dict[str, int], seconds: float
) -> dict[str, Any]:
    while True:
        process = codebatch.start(*ARGUMENTS)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.random() * seconds)
        victim = _kill_one(process.pid, chance, alone=0.9) if process.poll() is None else None
        if victim is not None:
            kills["coordinator" if victim == process.pid else "worker"] += 1
        stdout, stderr = process.communicate(timeout=60)
        if process.returncode != -signal.SIGKILL:
            answer: dict[str, Any] = codebatch.check("run", process.returncode, stdout, stderr, 0).json
            return answer
