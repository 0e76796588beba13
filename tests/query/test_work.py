"""Where a batch of commands stands, whoever reads how its attempts ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import codebatch.query.work
from codebatch.application.stores import open_store
from codebatch.engine.command_events import Concluded
from codebatch.model.work import Work
from codebatch.query.work import work_standing
from codebatch.store.attempts import Attempts
from codebatch.store.batches import Batch, resolve_batch
from codebatch.store.work import read_work
from tests.cli.process import CommandLine, wait_until, write


def test_a_fork_that_reads_the_attempts_finds_what_the_process_itself_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "work.toml", '[tasks.good]\nrun = "true"\n[tasks.bad]\nrun = "false"\n')
    CommandLine(tmp_path)("work", "run", status=3)
    batch = resolve_batch(open_store(tmp_path / ".codebatch"), None, kind="work")
    outcomes = batch.root / "outcomes"
    damaged = next(path for path in outcomes.iterdir() if b'"failed"' in path.read_bytes())
    for lost in ((), ("bad",)):
        store = open_store(tmp_path / ".codebatch")
        alone = work_standing(store, resolve_batch(store, None, kind="work"))
        monkeypatch.setattr(codebatch.query.work, "_LEASES_AHEAD", 0)
        monkeypatch.setattr(Attempts, "read_all", _only_elsewhere(os.getpid(), Attempts.read_all))
        beside = work_standing(store, resolve_batch(store, None, kind="work"), may_fork=True)
        monkeypatch.undo()
        assert beside == alone
        assert beside.unreadable == lost
        damaged.write_bytes(b"{}")


def test_what_ends_while_a_fork_reads_is_neither_interrupted_nor_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: who lives is asked before what ended. Method: all ends between the two, and the process reads on then."""
    write(tmp_path / "work.toml", '[tasks.long]\nrun = "touch began; while [ ! -e go ]; do sleep 0.02; done"\n')
    process = CommandLine(tmp_path).start("work", "run")
    wait_until((tmp_path / "began").exists, "it has begun")

    def read_work_late(batch: Batch) -> Work:
        write(tmp_path / "go", "")
        process.communicate(timeout=60)
        return read_work(batch)

    monkeypatch.setattr(codebatch.query.work, "_LEASES_AHEAD", 0)
    monkeypatch.setattr(codebatch.query.work, "read_work", read_work_late)
    store = open_store(tmp_path / ".codebatch")
    stands = work_standing(store, resolve_batch(store, None, kind="work"), may_fork=True)
    assert (stands.counts, stands.is_stalled) in [({"RUNNING": 1}, False), ({"DONE": 1}, False)]


def _only_elsewhere(here: int, read_all: Callable[[Attempts], Concluded]) -> Callable[[Attempts], Concluded]:
    def checked(attempts: Attempts) -> Concluded:
        assert os.getpid() != here
        return read_all(attempts)

    return checked
