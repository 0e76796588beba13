"""Real kill -9 of coordinators of a work batch, of workers, of commands, and of all at once.

The commands observe themselves: each holds a lock of its task while it runs, and records its start and its end. So two
concurrent attempts of a task are detected independently of codebatch. CODEBATCH_PROOF_KILLS is the number of kills.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import psutil
import pytest

from codebatch.query.status.work_status import WorkBatchStatus, read_work_status
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store.batches.batch_directory import batch_ids, open_batch
from codebatch.store.batches.store_directory import open_store
from codebatch.system.files.files import RealFiles
from tests.support.command_line import CommandLine

KILLS = int(os.environ.get("CODEBATCH_PROOF_KILLS", "12"))
TASKS = 40
PATIENCE_SECONDS = 60.0

pytestmark = pytest.mark.skipif(shutil.which("flock") is None, reason="flock(1) is not installed")

Victim = Literal["coordinator", "worker", "command", "all"]


def _choose_victims(chance: random.Random) -> Iterator[Victim]:
    """Yield kinds of victims forever. Each five contain every kind, and `worker` twice, so a few kills cover all."""
    kinds: list[Victim] = ["coordinator", "worker", "worker", "command", "all"]
    while True:
        yield from chance.sample(kinds, 5)


_WITNESS = """\
exec flock -n "lock-$CODEBATCH_TASK" sh -c '
  echo "begin $CODEBATCH_TASK $CODEBATCH_ROUND" >> witness; sleep "$1"; echo "end $CODEBATCH_TASK" >> witness
' witness {seconds} || echo "overlap $CODEBATCH_TASK" >> witness
"""


_ANSWERED = """\
[answering]
[[answering.rules]]
match = "go on"
answer = "yes"
"""
TRIED, ASKS = f"t{TASKS - 2:02}", f"t{TASKS - 1:02}"
"""A task that succeeds at its third try, and a task that asks a question while it runs, which a rule answers."""
_FIRST = {
    TRIED: "test $CODEBATCH_TRY -ge 3 || exit 1",
    ASKS: "test \"$(codebatch ask --wait 'May I go on?')\" = yes || exit 1",
}


def _write(directory: Path, chance: random.Random, *, once: int) -> None:
    """Write a task list in which some tasks need others. The first `once` tasks may be started at most once."""
    lines = ['strategy = "parallel"', "max_parallel = 3", 'on_failure = "continue"', _ANSWERED]
    for number in range(TASKS):
        needs = [f"t{need:02}" for need in range(max(0, number - 6), number) if chance.random() < 0.15]
        policy = chance.choice(("fail", "ask")) if number < once else "restart"
        name = f"t{number:02}"
        witness = _WITNESS.format(seconds=round(chance.uniform(0.02, 0.25), 3))
        lines += [
            f"[tasks.{name}]",
            f"run = '''\n{_FIRST.get(name, 'true')}\n{witness}'''",
            f"retries = {2 if name == TRIED else 0}",
            "backoff_seconds = 0.05",
            f"needs = {needs}",
            f'if_interrupted = "{policy}"',
            "grace_seconds = 1",
        ]
    (directory / "work.toml").write_text("\n".join(lines), encoding="utf-8")
    (directory / "witness").write_text("", encoding="utf-8")


class _Batch:
    """The latest work batch of a directory."""

    def __init__(self, codebatch: CommandLine) -> None:
        self._store = open_store(RealFiles(), codebatch.directory / "store")
        self.id = batch_ids(self._store)[-1]

    def status(self) -> WorkBatchStatus:
        """Return the status of the batch."""
        return read_work_status(self._store, open_batch(self._store, self.id))


def _count_starts_and_ends(directory: Path) -> tuple[Counter[tuple[str, str]], Counter[str], list[str]]:
    """Return the number of starts of each round of a task, the number of ends of each task, and overlapping tasks."""
    begun: Counter[tuple[str, str]] = Counter()
    ended: Counter[str] = Counter()
    overlaps: list[str] = []
    for line in (directory / "witness").read_text(encoding="utf-8").splitlines():
        match line.split():
            case ["begin", task, round_]:
                begun[task, round_] += 1
            case ["end", task]:
                ended[task] += 1
            case other:
                overlaps.append(" ".join(other))
    return begun, ended, overlaps


def _check(directory: Path, status: WorkBatchStatus) -> None:
    begun, ended, overlaps = _count_starts_and_ends(directory)
    assert not overlaps
    for command in status.commands:
        counts = [count for (task, _), count in begun.items() if task == command.id]
        policy = status.work.task_policy(command.id)
        assert max(counts, default=0) <= (1 if policy.if_interrupted != "restart" else 1 + policy.restarts_max)
        assert command.state is not CommandState.DONE or ended[command.id], f"{command.id} is done"
        assert command.state not in (CommandState.RUNNING, CommandState.READY), command
    assert not _find_remaining_commands(directory)


def _find_remaining_commands(directory: Path) -> list[int]:
    """Return the pids of live processes that attempts of batches of this directory started."""
    parent = directory / "store" / "batches"
    batches = set(os.listdir(parent)) if parent.exists() else set()
    pids = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("CODEBATCH_BATCH") in batches and process.status() != psutil.STATUS_ZOMBIE:
                pids.append(process.pid)
    return pids


def _kill(victim: Victim, coordinator: int, directory: Path, chance: random.Random) -> bool:
    """Kill one process of a kind, or all. Return whether there was one."""
    workers = _workers_of(coordinator)
    pids = {
        "coordinator": [coordinator],
        "worker": workers,
        "command": _find_remaining_commands(directory),
        "all": [coordinator, *workers],
    }
    chosen = pids[victim] if victim == "all" else pids[victim] and [chance.choice(pids[victim])]
    for pid in chosen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(chosen)


def _workers_of(coordinator: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(coordinator).children()]
    except psutil.Error:
        return []


def _run_with_random_kills(
    codebatch: CommandLine, chance: random.Random, kills: Counter[str], victims: Iterator[Victim]
) -> WorkBatchStatus:
    """Run a new batch, and resume it after every kill of its coordinator, until it has ended. Return its status."""
    process = codebatch.start("work", "run", "--store", "store", "-q")
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0.05, 0.6))
        if process.poll() is None and kills.total() < KILLS:
            victim = next(victims)
            kills[victim] += _kill(victim, process.pid, codebatch.directory, chance)
        if process.poll() is None and kills.total() < KILLS:
            continue
        process.communicate(timeout=PATIENCE_SECONDS)
        if not list((codebatch.directory / "store" / "batches").glob("batch-*/work.json")):
            process = codebatch.start("work", "run", "--store", "store", "-q")
            continue
        batch = _Batch(codebatch)
        status = batch.status()
        if process.returncode >= 0 and status.state not in (BatchState.RUNNING, BatchState.PENDING):
            return status
        process = codebatch.start("resume", "--store", "store", "-q", "--batch", batch.id)


@pytest.mark.slow
def test_killed_processes_never_cause_a_command_to_run_twice_at_once(tmp_path: Path) -> None:
    chance = random.Random(2)
    kills: Counter[str] = Counter()
    victims = _choose_victims(chance)
    batches = 0
    while kills.total() < KILLS:
        batches += 1
        directory = tmp_path / str(batches)
        directory.mkdir()
        _write(directory, chance, once=8)
        codebatch = CommandLine(directory)
        _check(directory, _run_with_random_kills(codebatch, chance, kills, victims))
    print(f"kill -9: {dict(kills)}, {batches} batches")
    assert len(kills) == 4


def _ends_before_kill(
    process: subprocess.Popen[bytes], directory: Path, chance: random.Random, *, is_last: bool
) -> bool:
    """Wait until a coordinator has worked for a while. Return whether it ended.

    On a busy machine, a coordinator that is killed earlier would make no progress.
    """
    leases = "store/batches/batch-*/leases/coordinator.*"
    before = len(list(directory.glob(leases)))
    while process.poll() is None and len(list(directory.glob(leases))) == before:
        time.sleep(0.01)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=PATIENCE_SECONDS if is_last else chance.uniform(0.0, 0.5))
    return process.poll() is not None


@pytest.mark.slow
def test_coordinator_death_restarts_no_command(tmp_path: Path) -> None:
    chance = random.Random(3)
    kills = batches = 0
    while kills < KILLS:
        batches += 1
        directory = tmp_path / str(batches)
        directory.mkdir()
        _write(directory, chance, once=TASKS // 2)
        codebatch = CommandLine(directory)
        process = codebatch.start("work", "run", "--store", "store", "-q")
        while not _ends_before_kill(process, directory, chance, is_last=kills >= KILLS):
            process.kill()
            process.communicate(timeout=PATIENCE_SECONDS)
            kills += 1
            batch_files = list((directory / "store" / "batches").glob("batch-*/work.json"))
            command = ("resume", "--batch", _Batch(codebatch).id) if batch_files else ("work", "run")
            process = codebatch.start(*command, "--store", "store", "-q")
        process.communicate(timeout=PATIENCE_SECONDS)
        status = _Batch(codebatch).status()
        assert status.state is BatchState.COMPLETED, status.counts
        begun, ended, overlaps = _count_starts_and_ends(directory)
        assert not overlaps
        assert set(begun.values()) == {1}
        assert set(ended.values()) == {1}
        assert len(begun) == TASKS
        assert not _find_remaining_commands(directory)
    print(f"kill -9 of the coordinator: {kills}, {batches} batches")
