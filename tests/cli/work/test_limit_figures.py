"""An attempt that a limit ended is shown with the limit and what it used, wherever its reason is shown."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.support.command_line import CommandLine, write

HOLDS_MUCH = [sys.executable, "-c", "x = b'x' * (200 << 20); import time; time.sleep(1000)"]
FIGURES = {
    "slow": r"timed out; time limit 1\.0s",
    "silent": r"printed nothing for too long; no output for 1\.0s",
    "big": r"used too much memory; memory limit 60 MB, peak [1-9]\d\d MB",
}


def test_limits_are_shown_with_their_figures(tmp_path: Path) -> None:
    line = CommandLine(tmp_path)
    # The pattern matches the words of a note, which must not count as output of the command.
    top = "max_parallel = 3\n[defaults]\nwait_if = 'limit|no output'\n"
    limits = {"slow": "timeout_seconds = 1", "silent": "stall_seconds = 1", "big": "memory_mb_max = 60"}
    commands = {"slow": "sleep 1000", "silent": "sleep 1000", "big": HOLDS_MUCH}
    tables = [f"[tasks.{name}]\nrun = {json.dumps(commands[name])}\n{limit}\n" for name, limit in limits.items()]
    write(tmp_path / "work.toml", top + "".join(tables))
    ended = line("work", "run", "--store", "store", status=3)
    shown = {
        "run": ended.notes,
        "status": line("status", "--store", "store").text,
        "attempts": line("work", "attempts", "--store", "store").text,
        "events": line("events", "--store", "store").text,
    }
    for name, text in FIGURES.items():
        assert [place for place, printed in shown.items() if not re.search(text, printed)] == [], name
        note = text.split("; ")[1]
        assert re.search(rf"^codebatch: {note}$", line("work", "log", name, "--store", "store").text, re.MULTILINE)
    rows = line("work", "attempts", "--store", "store", "--json").json
    assert [row["task"] for row in rows if re.fullmatch(FIGURES[row["task"]].split("; ")[1], *row["notes"])] == [
        *FIGURES
    ]
