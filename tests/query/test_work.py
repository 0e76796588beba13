"""Tests of the status of a work batch, also if files are damaged, attempts end meanwhile, or work is not recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codebatch.model.record import CommandReason
from codebatch.model.work.command import CommandId
from codebatch.operations.project.stores import open_store
from codebatch.query.status.unrecorded_work import has_unknown_changes
from codebatch.query.status.work_status import CommandStatus, WorkBatchStatus, read_work_status
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.work.attempts import CommandLeases, CommandPlaces, read_leases
from codebatch.work.control.batches import TASKS_NAMED_MAX
from tests.support.command_line import CommandLine, wait_until, write


def _read_status(project: Path) -> WorkBatchStatus:
    store = open_store(project / ".codebatch", project)
    return read_work_status(store, resolve_batch(store, None, kind="work"))


def test_each_outcome_that_is_damaged_is_counted_as_unreadable(tmp_path: Path) -> None:
    tasks = {"one": "true", "two": "false", "three": "true", "four": "false", "five": "exit 3"}
    write(tmp_path / "work.toml", "".join(f'[tasks.{name}]\nrun = "{run}"\n' for name, run in tasks.items()))
    CommandLine(tmp_path)("work", "run", status=3)
    (outcomes,) = tmp_path.glob(".codebatch/batches/*/outcomes")
    for count, path in enumerate(sorted(outcomes.iterdir()), 1):
        write(path, "{}")
        assert len(_read_status(tmp_path).unreadable) == count


def test_damaged_outcomes_are_named_up_to_a_limit_and_counted(tmp_path: Path) -> None:
    names = [f"task-{number:02}" for number in range(TASKS_NAMED_MAX + 2)]
    write(tmp_path / "work.toml", "".join(f'[tasks.{name}]\nrun = "true"\n' for name in names))
    line = CommandLine(tmp_path)
    line("work", "run")
    for path in tmp_path.glob(".codebatch/batches/*/outcomes/*"):
        write(path, "{}")
    damaged = [note for note in line("status").notes.splitlines() if note.startswith("damaged:")]
    assert [name for note in damaged for name in names if name in note] == names[:TASKS_NAMED_MAX]
    assert damaged[TASKS_NAMED_MAX:] == ["damaged: the outcomes of 2 more tasks cannot be read either"]


def test_attempt_that_ends_during_a_status_query_is_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Liveness must be read before outcomes. All attempts end immediately before liveness is read."""
    write(tmp_path / "work.toml", '[tasks.long]\nrun = "touch began; while [ ! -e go ]; do sleep 0.02; done"\n')
    process = CommandLine(tmp_path).start("work", "run")
    wait_until((tmp_path / "began").exists, "it has begun")

    def read_late(reader: LeaseReader, places: CommandPlaces, listed: Mapping[str, int]) -> CommandLeases:
        write(tmp_path / "go", "")
        process.communicate(timeout=60)
        return read_leases(reader, places, listed)

    monkeypatch.setattr("codebatch.query.status.work_status.read_leases", read_late)
    status = _read_status(tmp_path)
    assert (status.counts, status.is_stalled) == ({"DONE": 1}, False)


@pytest.mark.parametrize(
    ("reason", "exit_status", "is_unknown"),
    [
        ("check", None, True),
        ("check", 1, False),  # The command `check` of the task failed.
        ("start", None, False),  # It has no changes.
        ("exit", 1, False),
    ],
)
def test_changes_are_unknown_if_they_could_not_be_recorded(
    reason: CommandReason, exit_status: int | None, is_unknown: bool
) -> None:
    command = CommandStatus(
        id=CommandId("a"), item=0, state=CommandState.FAILED, reason=reason, exit_status=exit_status
    )
    assert has_unknown_changes(command) is is_unknown
