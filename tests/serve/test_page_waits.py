"""The top of the page shows why no task starts: a pause, a closed pool, and a runner that does not respond."""

from __future__ import annotations

import datetime
import signal
from pathlib import Path

import pytest

from tests.cli.work.test_silent_runner import make_silent, read_runner
from tests.serve.server_process import serve
from tests.support.browser import CHROMIUM, browse
from tests.support.command_line import CommandLine, wait_until, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


def test_waits_are_at_the_top_of_the_page(tmp_path: Path) -> None:
    later = [datetime.datetime.now().astimezone() + datetime.timedelta(hours=hours) for hours in (2, 3)]
    hours = "-".join(f"{time:%H:%M}" for time in later)
    (tmp_path / "project").mkdir()
    line = CommandLine(tmp_path / "project")
    tasks = (
        "[tasks.one]\nrun = 'while [ ! -e go ]; do sleep 0.05; done'\n[tasks.two]\nrun = 'true'\npools = { llm = 1 }\n"
    )
    top = f"max_parallel = 2\n[pools.llm]\nsize = 1\nhours = '{hours}'\n[defaults]\nexpected_seconds = 1000\n"
    write(line.directory / "work.toml", top + tasks)
    process = line.start("work", "run", "-q")
    numbers = "document.querySelector('#numbers').innerText"
    remaining = "document.querySelector('#remaining').innerText"
    try:
        batches = line.directory / ".codebatch" / "batches"
        wait_until(
            lambda: any(b"PROGRESS" in file.read_bytes() for file in batches.glob("b*/events/*")), "the progress"
        )
        with browse(tmp_path / "browser") as page, serve(line.directory / ".codebatch") as server:
            page.open(f"{server.origin}/#token={server.token}")
            page.wait_until(
                f"{numbers}.includes('pool llm closed until ') && {numbers}.includes(': outside its hours')"
            )
            line("work", "pause")
            page.wait_until(f"{numbers}.includes('paused') && {remaining}.includes('after the pause')")
            process.send_signal(signal.SIGSTOP)
            batch, runner = read_runner(line)
            assert runner is not None
            make_silent(batch, runner, 70)
            page.open(f"{server.origin}/#token={server.token}&batch={batch.id}")
            page.wait_until(f"{numbers}.includes('not responding since ') && !{remaining}")
    finally:
        process.kill()
        write(line.directory / "go", "")
        process.communicate()
