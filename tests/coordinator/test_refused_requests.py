"""A work batch whose requests cannot be written: its run ends with the error, after its commands have ended."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import msgspec
import pytest

from codebatch.coordinator.work.execution import run_work_batch
from codebatch.errors import StoreUnwritable
from codebatch.model.work.command import Command, CommandId, QuestionRule
from codebatch.model.work.work_batch import AnsweringPolicy, AnsweringRule, Work
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, open_batch
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support.calls import Fate, Operation, WatchedCalls

A, B = CommandId("a"), CommandId("b")


def _refuse_requests(operation: Operation) -> Fate | None:
    is_request = operation.is_write and layout.REQUESTS in operation.path.parts
    return Fate(OSError(errno.ENOSPC, "refused")) if is_request else None


def _run_refused(directory: Path, run: dict[CommandId, str], **settings: object) -> BatchDir:
    """Run commands side by side, on a disk that takes no request. The run ends with the error."""
    store = create_store(RealFiles(), directory / "store")[0]
    commands = [Command(id=id_, run=text, question=QuestionRule(exits=(75,))) for id_, text in run.items()]
    work = Work(source="test", root=bytes(directory), order=tuple(run), strategy="parallel", max_parallel=2)
    batch = make_work_batch(store, commands, msgspec.structs.replace(work, **settings), at_ns=time.time_ns())
    refusing = StoreDir(RealFiles(WatchedCalls(RealCalls(), _refuse_requests)), store.root, store.id)
    with pytest.raises(StoreUnwritable, match="refused"):
        run_work_batch(refusing, open_batch(refusing, batch.id))
    return batch


def test_run_ends_after_its_commands_if_an_automatic_answer_cannot_be_written(tmp_path: Path) -> None:
    answering = AnsweringPolicy(rules=(AnsweringRule(match="go", answer="yes"),))
    commands = {A: "until test -e begun; do sleep 0.1; done; echo go on?; exit 75", B: "touch begun; sleep 2"}
    batch = _run_refused(tmp_path, commands, answering=answering)
    commits = OutcomeRegisters(batch.files, batch.root).scan_new().commits
    assert sorted(outcome.start for commit in commits for outcome in commit.outcomes) == [0, 1]


def test_commands_are_stopped_although_the_request_for_it_cannot_be_written(tmp_path: Path) -> None:
    commands = {
        A: "until test -e pid; do sleep 0.1; done; exit 1",
        B: "echo $$ >pid.new; mv pid.new pid; exec sleep 100000",
    }
    _run_refused(tmp_path, commands, on_failure="stop", halt="now")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
