"""A night of isolated agents that edit, commit, conflict, ask, fail and hang, with real kill -9 of all processes.

Goal: the user's files stay byte-identical, and the change sets are those of an undisturbed run.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from codebatch.errors import CodebatchError
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, open_batch
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.store_directory import StoreDir, open_store
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.attempts import AttemptReader
from codebatch.store.work.work_batches import read_command_ids, read_work
from codebatch.system.files.files import RealFiles
from tests.support.command_line import CommandLine
from tests.support.git_repositories import git
from tests.support.worker_processes import check_no_process_left
from tests.trees.places import Kind, commit_all, write_files

KILLS = 16
COMMIT = "git add -A . && git -c user.name=n -c user.email=n@n commit -qm m"
AGENTS = {
    "edit-1": 'run = "sed -i s/^1$/one/ shared; sleep 0.2; echo 1 > own-1"',
    "edit-2": 'run = "sleep 0.2; sed -i s/^9$/nine/ shared; mkdir -p d; echo 2 > d/own-2"',
    "merge": 'needs = ["edit-1", "edit-2"]\nrun = "sleep 0.2; cp shared merged; rm own-1"',
    "commit": f'run = "echo c > committed; {COMMIT}; sleep 0.2; echo d >> committed"',
    "branch": f'run = "git checkout -q -b topic || git init -q; echo b > branched; {COMMIT}; rm -r old"',
    "fail": 'run = "echo half > half-done; sleep 0.2; exit 3"',
    "flaky": 'retries = 1\nbackoff_seconds = 0\nrun = "echo $CODEBATCH_TRY > n; sleep 0.2; test $CODEBATCH_TRY = 2"',
    "hang": 'timeout_seconds = 0.7\nrun = "echo h > hung; sleep 1000"',
    "clash-1": 'run = "echo 1 > clash; sleep 0.2"',
    "clash-2": 'run = "echo 2 > clash; sleep 0.2"',
    "after": 'needs = ["clash-1", "clash-2"]\nrun = "echo never > never"',
    "ask": "run = '''grep -q answer $CODEBATCH_ANSWERS && { sleep 0.2; test -s asked && echo after > after; exit; }\n"
    "echo before > asked; echo which? > $CODEBATCH_QUESTION'''",
}
EXPECTED = {
    "edit-1": "result", "edit-2": "result", "merge": "result", "commit": "result", "branch": "result",
    "fail": "exit", "flaky": "result", "hang": "timeout", "clash-1": "result", "clash-2": "result",
    "after": "conflict", "ask": "result",
}  # fmt: skip


class Night(NamedTuple):
    """A project with a list of agents, and its command line."""

    line: CommandLine
    project: Path
    trees: Path

    def user_files(self, kind: Kind) -> dict[str, bytes]:
        """Return the contents of the user's files: with a copy, those of the repository too."""
        index = self.project / ".git/index"
        return {
            str(path.relative_to(self.project)): os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            for path in sorted(self.project.rglob("*"))
            if not path.is_dir() and (kind == "copy" or path == index or ".git" not in path.parts)
        }

    def batch_id(self) -> str | None:
        """Return the ID of the only batch, or None if it does not exist yet."""
        try:
            ids = batch_ids(self.store())
        except CodebatchError:
            return None
        assert len(ids) <= 1
        return ids[0] if ids else None

    def store(self) -> StoreDir:
        """Open the store."""
        return open_store(RealFiles(), self.line.directory / "store")

    def batch(self) -> BatchDir:
        """Open the only batch."""
        return open_batch(self.store(), self.batch_id() or "")

    def live_workers(self) -> list[int]:
        """Return the pids of live workers."""
        if self.batch_id() is None:
            return []
        batch = self.batch()
        holders = LeaseReader(batch.files, batch.root).read_holders()
        return sorted(holder.pid for holder, is_live in holders if is_live and holder.role == "worker")

    def results(self) -> dict[str, tuple[str, str]]:
        """Return the last outcome of each task with the digest of its change set."""
        store, batch = self.store(), self.batch()
        commands = read_command_ids(store, batch, read_work(batch))
        concluded = AttemptReader(batch.plan(), OutcomeRegisters(batch.files, batch.root)).read_all()
        last = {outcome.item: outcome for outcome in sorted(concluded.conclusions, key=lambda outcome: outcome.round)}
        return {commands[item]: (end.reason or end.type, end.changes) for item, end in last.items()}


def make_night(directory: Path, kind: Kind) -> Night:
    project = directory / "project"
    write_files(
        project,
        {"shared": b"".join(b"%d\n" % n for n in range(1, 10)), "old/x": b"x\n", "old/y": b"y\n", "d/z": b"z\n"},
    )
    git(project, "init", "-q", "-b", "main")
    commit_all(project)
    write_files(project, {"uncommitted": b"u\n", "staged": b"s\n"})
    git(project, "add", "staged")
    tasks = "".join(f"[tasks.{name}]\n{keys}\n" for name, keys in AGENTS.items())
    head = f'max_parallel = 4\n[trees]\ndirectory = "{directory}/trees"\n'
    defaults = (
        f'[defaults]\nisolation = "{kind}"\nif_interrupted = "restart"\nrestarts_max = 1000\ngrace_seconds = 0.1\n'
    )
    write_files(directory, {"night.toml": f'root = "project"\n{head}{defaults}{tasks}'.encode()})
    return Night(CommandLine(directory), project, directory / "trees")


def spend(night: Night, kills: int, chance: random.Random) -> int:
    """Run the agents until all have ended. Kill processes meanwhile. Return how many were killed."""
    killed = 0
    is_answered = False
    while True:
        batch_id = night.batch_id()
        words = ("work", "run", "-f", "night.toml") if batch_id is None else ("resume", "--batch", batch_id)
        process = night.line.start(*words, "--store", "store")
        while process.poll() is None:
            if killed == kills:
                process.wait(timeout=60)
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=chance.uniform(0.05, 0.35))
            workers = night.live_workers()
            if workers and process.poll() is None:
                victim = process.pid if chance.random() < 0.3 else chance.choice(workers)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    killed += 1
        process.communicate()
        if night.batch_id() is None:
            continue
        status = night.line.ends("status", "--store", "store", "--json")
        is_blocked = "BLOCKED" in status.json["counts"]
        if process.returncode != -signal.SIGKILL and not is_blocked and is_answered:
            return killed
        if is_blocked and not is_answered:
            night.line("work", "answer", "ask", "the answer", "--store", "store")
            is_answered = True


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["worktree", "copy"])
def test_killed_night_ends_like_an_undisturbed_one(tmp_path: Path, kind: Kind) -> None:
    results = []
    for name, kills in (("calm", 0), ("killed", KILLS)):
        (tmp_path / name).mkdir()
        night = make_night(tmp_path / name, kind)
        before = night.user_files(kind)
        began = time.monotonic()
        killed = spend(night, kills, random.Random(7))
        print(f"{kind}: {killed} kills in {time.monotonic() - began:.1f} s")
        assert killed >= kills // 3
        assert night.user_files(kind) == before
        results.append(night.results())
        check_no_process_left(night.batch())
        trees = sorted(path.name for path in night.trees.glob("*/batch-*/*.r[0-9]*") if path.is_dir())
        assert {tree.partition(".")[0] for tree in trees} == {"fail", "hang"}
        if kind == "worktree":
            listed = git(night.project, "worktree", "list", "--porcelain").count("worktree ") - 1
            assert listed == len(trees)
    calm, killed_night = results
    assert {task: reason for task, (reason, _) in calm.items()} == EXPECTED
    assert killed_night == calm
