"""A forced cancellation kills the processes of a batch, and reports each of them once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codebatch.model.work.command import Command, CommandId
from codebatch.store.batches.batch_directory import make_batch_directories
from codebatch.store.batches.holders import HolderFile, HolderRegistration, new_holder_id
from codebatch.system.host import this_host
from codebatch.work.control import cancel
from codebatch.work.control.cancel import cancel_batch
from codebatch.work.control.listener import WorkListener
from tests.support.work_batches import make_place


def test_process_that_takes_time_to_die_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_place(tmp_path, Command(id=CommandId("a"), run="true"))
    make_batch_directories(place.batch)
    about = HolderFile(
        holder=new_holder_id(), role="worker", pid=os.getpid(), host=this_host(), since_ns=time.time_ns()
    )
    holder = HolderRegistration(place.batch.files, place.batch.root, about, is_durable=True)
    rounds = iter(range(3))
    notes: list[str] = []

    def die_in_the_third_round(pid: int, file: Path) -> bool:
        if next(rounds) == 2:
            holder.close()
        return True

    class Listener(WorkListener):
        def note(self, text: str) -> None:
            notes.append(text)

    monkeypatch.setattr("codebatch.work.control.cancel.kill_holder", die_in_the_third_round)
    cancel_batch(place.store, place.batch, is_forced=True, waits=False, is_trusted=True, listener=Listener())
    assert notes == [f"killed worker {about.holder}, process {os.getpid()}"]


def test_hint_about_a_process_that_does_not_end_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_place(tmp_path, Command(id=CommandId("a"), run="true"))
    told: list[str] = []

    class Listener(WorkListener):
        def note(self, text: str) -> None:
            told.append(text)

        def waiting(self, running: tuple[CommandId, ...], process_text: str) -> None:
            told.append(f"{process_text}: {' '.join(running)}")

    monkeypatch.setattr(cancel, "END_POLL_SECONDS", 0)
    monkeypatch.setattr(cancel, "POLLS_BETWEEN_REPORTS", 3)
    monkeypatch.setattr(cancel, "POLLS_UNTIL_HINT", 2)
    about = HolderFile(holder=new_holder_id(), role="worker", pid=os.getpid(), host=this_host(), since_ns=1)
    wait = cancel._EndWait(place.batch, Listener())
    for _ in range(5):
        wait.wait_for(about, (CommandId("a"),))
    kill = f"kill it with: codebatch cancel --force --batch {place.batch.id}"
    name = f"process {os.getpid()} on {this_host().name}"
    assert told == [f"{name}: a", f"still waiting for {name}: the process is still running; {kill}", f"{name}: a"]
