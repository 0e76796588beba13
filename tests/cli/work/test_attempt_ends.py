"""The end of an attempt is reported as it was, also if the runner did not see its start or the signal has no name."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from tests.support.command_line import CommandLine, wait_until, write


def test_signal_without_a_name_ends_one_attempt(tmp_path: Path) -> None:
    line = CommandLine(tmp_path)
    write(tmp_path / "work.toml", "[tasks.one]\nrun = 'echo began >>began; kill -35 $$'\n")
    ended = line("work", "run", "--store", "store", status=3)
    assert re.search(r"one failed .* signal 35\n", ended.notes)
    assert (tmp_path / "began").read_text() == "began\n", "the task was started again"
    assert "signal 35" in line("status", "--store", "store").text
    events = map(json.loads, line("events", "--store", "store", "--json").lines)
    (event,) = (each for each in events if each["event"] == "BATCH_TASK_FAILED")
    assert (event["exit_status"], event["signal"]) == (-35, "35")


def test_adopted_attempt_has_no_guessed_duration(tmp_path: Path) -> None:
    line = CommandLine(tmp_path)
    run = "echo >began; while [ ! -e go ]; do sleep 0.02; done"
    write(tmp_path / "work.toml", f"[tasks.one]\nrun = '{run}'\n[tasks.two]\nrun = 'true'\nneeds = ['one']\n")
    process = line.start("work", "run", "-q")
    wait_until((tmp_path / "began").exists, "the task runs")
    process.kill()
    process.wait()  # Its worker still holds the pipes.
    resumed = line.start("resume")
    adopted = tmp_path / ".codebatch" / "batches"
    wait_until(lambda: any(b"ADOPTED" in file.read_bytes() for file in adopted.glob("b*/events/*")), "the adoption")
    write(tmp_path / "go", "")
    notes = line.finish(resumed).notes
    line.finish(process, status=-signal.SIGKILL)
    assert re.search(r"^\[1/2\] one done$", notes, re.MULTILINE)
    assert re.search(r"^\[2/2\] two done +\d+\.\ds$", notes, re.MULTILINE)
