"""Test that a run starts workers according to the measured time of its files."""

from __future__ import annotations

from pathlib import Path

from codebatch.store.batches.journal import Lost, Spawned, read_journal
from tests.support.command_line import CommandLine, write, write_own_task
from tests.support.worker_processes import open_latest

JOBS = 4
MEET = """
import os
import time
from pathlib import Path

def task(file):
    (Path({meeting!r}) / file.path.decode().replace("/", "-")).touch()
    while len(os.listdir({meeting!r})) < {jobs}:
        time.sleep(0.01)
    return []
"""


def test_slow_small_files_get_all_requested_workers(tmp_path: Path) -> None:
    """Each file waits until all others are begun. By size alone, the files would get one worker."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    run = CommandLine(tmp_path)
    for number in range(JOBS):
        write(tmp_path / "tree" / f"{number}.txt", "")
    write_own_task(tmp_path, "meet", MEET.format(meeting=str(meeting), jobs=JOBS))
    run("run", "tree", "--task", "meet", "-j", str(JOBS), "--store", "store")
    batch = open_latest(tmp_path / "store")
    events = [line.event for line in read_journal(batch.files, batch.root)]
    assert sum(isinstance(event, Spawned) for event in events) == JOBS
    assert not [event for event in events if isinstance(event, Lost)], (
        "a file waited for the others until its worker was killed"
    )
