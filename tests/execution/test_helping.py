"""Tests of a second `run` of a batch: it helps the first, and takes over if the first is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from codebatch.store import layout
from codebatch.store.batches.journal import Committed, Spawned, read_journal
from tests.support.command_line import CommandLine
from tests.support.corpora import DJANGO, sdist
from tests.support.worker_processes import (
    check_no_process_left,
    finished,
    json_answer,
    open_latest,
    write_shard_rule,
)


def _started(directory: Path, commits: int) -> tuple[CommandLine, list[str], subprocess.Popen[bytes]]:
    """Start a run. Return it when it has made `commits` commits and has more to do."""
    write_shard_rule(directory, average=24, least=8, most=64)
    run = CommandLine(directory)
    arguments = [
        "run",
        str(sdist(*DJANGO) / "django" / "contrib"),
        "--store",
        str(directory / "store"),
        "-j",
        "1",
        "--json",
    ]
    process = run.start(*arguments)
    store = directory / "store"
    while process.poll() is None and sum(1 for _ in store.glob(f"batches/batch-*/{layout.OUTCOMES}/*")) < commits:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.02)
    assert process.poll() is None, "the first run ended before the second could begin"
    return run, arguments, process


@pytest.mark.corpus
def test_second_run_helps_the_first_with_the_same_digest(tmp_path: Path) -> None:
    run, arguments, first = _started(tmp_path, 40)
    second = run(*arguments)
    answers = [json_answer(second.text), json_answer(run.finish(first).text)]
    assert [answer["status"] for answer in answers] == ["COMPLETED", "COMPLETED"]
    assert answers[0]["action"] == "joined"
    assert answers[0]["result_digest"] == answers[1]["result_digest"]
    batch = open_latest(tmp_path / "store")
    lines = read_journal(batch.files, batch.root)
    parents = {line.event.worker: line.holder for line in lines if isinstance(line.event, Spawned)}
    committers = {parents[line.holder] for line in lines if isinstance(line.event, Committed)}
    assert len(committers) == 2, "only one of the two runs did the work"
    check_no_process_left(batch)
    finished(batch)


@pytest.mark.corpus
def test_second_run_takes_over_when_the_first_is_killed(tmp_path: Path) -> None:
    run, arguments, first = _started(tmp_path, 40)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    answer = json_answer(run(*arguments).text)
    assert (answer["status"], answer["action"]) == ("COMPLETED", "resumed")
    check_no_process_left(open_latest(tmp_path / "store"))
