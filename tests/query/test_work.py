"""Where a batch of commands stands, whoever reads how its attempts ended, and whatever ends meanwhile."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from codebatch.operations.project.stores import open_store
from codebatch.query.status.work_status import WorkBatchStatus, read_work_status
from codebatch.scheduling.work.events import Concluded
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.work.attempts import Attempts, CommandPlaces, Leased, read_leases
from codebatch.work.control.batches import NAMED_MAX
from tests.cli.process import CommandLine, wait_until, write


def _stands(project: Path, *, may_fork: bool = False) -> WorkBatchStatus:
    store = open_store(project / ".codebatch", project)
    return read_work_status(store, resolve_batch(store, None, kind="work"), may_fork=may_fork)


def test_a_fork_that_reads_some_of_the_attempts_finds_what_the_process_itself_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = {"one": "true", "two": "false", "three": "true", "four": "false", "five": "exit 3"}
    write(tmp_path / "work.toml", "".join(f'[tasks.{name}]\nrun = "{run}"\n' for name, run in tasks.items()))
    CommandLine(tmp_path)("work", "run", status=3)
    (outcomes,) = tmp_path.glob(".codebatch/batches/*/outcomes")
    here, read = os.getpid(), Attempts._read
    read_here: list[int] = []

    def noted(attempts: Attempts, listed: Sequence[list[str]]) -> Concluded:
        if os.getpid() == here:
            read_here.append(len(listed))
        return read(attempts, listed)

    monkeypatch.setattr("codebatch.store.work.attempts._FORKED_MIN", 4)
    monkeypatch.setattr(Attempts, "_read", noted)
    for path in (None, *sorted(outcomes.iterdir())):
        if path is not None:
            write(path, "{}")  # Each register by and by, whoever reads it.
        assert _stands(tmp_path, may_fork=True) == _stands(tmp_path)
        assert read_here == [3, 5]
        read_here.clear()
    assert len(_stands(tmp_path).unreadable) == 5


def test_of_much_that_is_damaged_some_is_named_and_the_rest_counted(tmp_path: Path) -> None:
    names = [f"task-{number:02}" for number in range(NAMED_MAX + 2)]
    write(tmp_path / "work.toml", "".join(f'[tasks.{name}]\nrun = "true"\n' for name in names))
    line = CommandLine(tmp_path)
    line("work", "run")
    for path in tmp_path.glob(".codebatch/batches/*/outcomes/*"):
        write(path, "{}")
    damaged = [told for told in line("status").notes.splitlines() if told.startswith("damaged:")]
    assert [name for told in damaged for name in names if name in told] == names[:NAMED_MAX]
    assert damaged[NAMED_MAX:] == ["damaged: the outcomes of 2 more tasks cannot be read either"]


def test_what_ends_while_it_is_looked_at_is_not_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: who lives is asked before what ended is read. Method: all ends right before that is asked."""
    write(tmp_path / "work.toml", '[tasks.long]\nrun = "touch began; while [ ! -e go ]; do sleep 0.02; done"\n')
    process = CommandLine(tmp_path).start("work", "run")
    wait_until((tmp_path / "began").exists, "it has begun")

    def read_late(reader: LeaseReader, places: CommandPlaces, listed: Mapping[str, int]) -> Leased:
        write(tmp_path / "go", "")
        process.communicate(timeout=60)
        return read_leases(reader, places, listed)

    monkeypatch.setattr("codebatch.query.status.work_status.read_leases", read_late)
    monkeypatch.setattr("codebatch.store.work.attempts._FORKED_MIN", 0)
    stands = _stands(tmp_path, may_fork=True)
    assert (stands.counts, stands.is_stalled) == ({"DONE": 1}, False)
