"""How it went when a batch of commands was conducted."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from codebatch.cli.answers.work_status import answer_work, end_line
from codebatch.cli.framework.context import CommandContext
from codebatch.errors import NothingLeft
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batches import open_batch
from codebatch.work.control.batches import load_work_batch
from codebatch.work.control.run import WorkRunResult


def answer_ran(answering: CommandContext, ran: WorkRunResult, name: str | None = None) -> int:
    """Say how it went; returns the exit status."""
    answer_work(answering, ran, [end_line(ran, ran.seconds)], name=name, changes=ran.changes)
    if ran.signal_status:
        if ran.standing.state is not BatchState.COMPLETED:
            name = signal.Signals(ran.signal_status - 128).name
            answering.note(f"stopped by {name}; resume with: codebatch resume --batch {ran.batch.id}")
        return ran.signal_status
    if ran.shortfall is not None:
        raise ran.shortfall
    return 0


def answer_nothing_left(answering: CommandContext, left: NothingLeft) -> int:
    """Report that all tasks that were chosen are done, with the latest batch of them. Return the exit status."""
    store = answering.place.of_directory(Path(os.fsdecode(left.root))).open()
    answer_work(answering, load_work_batch(store, open_batch(store, left.batch)), [])
    answering.tell(left.message)
    return 0
