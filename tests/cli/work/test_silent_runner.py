"""A runner that is stopped or hangs is reported as not responding, and nothing is estimated from its last report."""

from __future__ import annotations

import re
import signal
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.operations.project.stores import open_store
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, LeaseReader
from codebatch.store.batches.progress_cells import read_worker_step, silent_since_ns
from codebatch.store.batches.resolution import resolve_batch
from codebatch.system.clock import running_ns, wall_ns
from codebatch.system.host import HostBoot
from tests.support.command_line import CommandLine, wait_until, write

SINCE = re.compile(r"not responding since \d\d:\d\d:\d\d")


def read_runner(line: CommandLine) -> tuple[BatchDir, HolderFile | None]:
    batch = resolve_batch(open_store(line.directory / ".codebatch", line.directory), None, kind="work")
    return batch, LeaseReader(batch.files, batch.root).read_leader()[1]


def make_silent(batch: BatchDir, runner: HolderFile, seconds: float) -> None:
    """Write that the last report of a stopped runner was `seconds` ago."""
    with (batch.root / layout.HOLDERS / layout.cell_name(runner.holder)).open("r+b") as cell:
        cell.write(struct.pack("<Q", running_ns() - round(seconds * 1e9)))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[CommandLine, subprocess.Popen[bytes]]]:
    """A list with a running task and one that follows it, both with an estimate."""
    (tmp_path / "project").mkdir()
    line = CommandLine(tmp_path / "project")
    tasks = "[tasks.one]\nrun = 'while [ ! -e go ]; do sleep 0.02; done'\n[tasks.two]\nrun = 'true'\nneeds = ['one']\n"
    write(line.directory / "work.toml", f"{tasks}[defaults]\nexpected_seconds = 1000\n")
    process = line.start("work", "run", "-q")
    try:
        batches = line.directory / ".codebatch" / "batches"
        wait_until(
            lambda: any(b"PROGRESS" in file.read_bytes() for file in batches.glob("b*/events/*")), "the progress"
        )
        yield line, process
    finally:
        process.kill()
        write(line.directory / "go", "")
        process.communicate()


def test_stopped_runner_is_reported_after_a_minute(running: tuple[CommandLine, subprocess.Popen[bytes]]) -> None:
    line, process = running
    answer = line("status", "--json")
    assert answer.json["not_responding_since"] is None
    assert answer.json["eta_seconds"] is not None
    process.send_signal(signal.SIGSTOP)
    batch, runner = read_runner(line)
    assert runner is not None
    make_silent(batch, runner, 50)
    assert "responding" not in line("status").text
    make_silent(batch, runner, 70)
    shown = line("status")
    assert re.search(rf"^status    RUNNING \({SINCE.pattern}\)$", shown.text, re.MULTILINE)
    assert "\nleft " not in shown.text
    hint = f"process {process.pid} is not responding since .*: the process is suspended; continue it with: kill -CONT"
    assert re.search(hint, shown.notes)
    answer = line("status", "--json").json
    assert answer["not_responding_since"] is not None
    assert answer["eta_seconds"] is None
    assert SINCE.search(line("work", "pause").notes)
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: silent_since_ns(batch, runner) is None, "the next report")
    assert "responding" not in line("status").text


def test_follow_reports_a_stopped_runner(running: tuple[CommandLine, subprocess.Popen[bytes]]) -> None:
    line, process = running
    process.send_signal(signal.SIGSTOP)
    batch, runner = read_runner(line)
    assert runner is not None
    make_silent(batch, runner, 3600)
    follower = line.start("follow", "--json")
    assert follower.stderr is not None
    stderr = follower.stderr
    timer = threading.Timer(30, follower.kill)
    timer.start()
    first = stderr.readline().decode()
    timer.cancel()
    assert re.search(rf"{SINCE.pattern}; see: codebatch status --batch {batch.id}", first.replace("\n", ""))
    process.send_signal(signal.SIGCONT)
    write(line.directory / "go", "")
    follower.communicate()
    assert follower.returncode == 0


def test_only_reports_of_this_machine_are_judged(running: tuple[CommandLine, subprocess.Popen[bytes]]) -> None:
    line, process = running
    process.send_signal(signal.SIGSTOP)
    batch, runner = read_runner(line)
    assert runner is not None
    make_silent(batch, runner, 3600)
    since_ns = silent_since_ns(batch, runner)
    assert since_ns is not None
    assert abs(wall_ns() - 3600e9 - since_ns) < 60e9
    elsewhere = HolderFile(
        holder=runner.holder, role="coordinator", pid=1, host=HostBoot(name="other", boot="x"), since_ns=1
    )
    assert silent_since_ns(batch, elsewhere) is None, "the clock of another machine is not comparable"
    step = read_worker_step(batch, runner.holder)
    assert step is not None
    (batch.root / layout.HOLDERS / layout.cell_name(runner.holder)).unlink()
    assert silent_since_ns(batch, runner) is None, "a runner of an earlier version has no cell"
