"""The live page's server: how soon clients have an event, and what many clients of a large batch cost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.measuring import BrokenSideError, environment, kill_family
from bench.rows import Row, Target, figure_row
from bench.setting import REPOSITORY, Setting, without

_SOURCE = "design of the live page, §6"
_LATENCY = Target(limit=0.5, source=_SOURCE)
_REPLAY = Target(limit=10.0, source=_SOURCE)
_HANDSHAKE = Target(limit=1.0, source=_SOURCE)
_MEMORY = Target(limit=250.0, source=_SOURCE)
_CORE = Target(limit=0.25, source=_SOURCE)
_IDLE_CORE = Target(limit=0.01, source=_SOURCE)
_TASKS = 10_000
_CLIENTS = 20
_FOLLOWED_SECONDS = 60.0
_IDLE_SECONDS = 20.0
_LINGER_SECONDS = 12.0
_TIMED_TASKS = 40
_STORE = "store"


class LiveServer(msgspec.Struct, frozen=True):
    """A server that runs over a store with one batch."""

    process: subprocess.Popen[bytes]
    port: int
    token: str
    batch: str

    @property
    def url(self) -> str:
        """The address of the WebSocket of the batch."""
        return f"ws://127.0.0.1:{self.port}/ws/batch/{self.batch}"

    def cpu_seconds(self) -> float:
        """The CPU time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """The resident memory of the process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def start_clients(self, count: int, *mode: str) -> subprocess.Popen[bytes]:
        """Start clients in a process of their own."""
        return subprocess.Popen(
            [sys.executable, "-m", "bench.probes.live_clients", self.url, str(count), *mode],
            cwd=REPOSITORY,
            env={**environment(), "TOKEN": self.token},
            stdout=subprocess.PIPE,
        )


def latency(setting: Setting) -> Iterator[Row]:
    """From the time that an event has until a WebSocket client has it, while tasks run."""
    tasks = [f"[tasks.t{n}]\nrun = 'sleep 0.{n % 5 + 1}'\n" for n in range(_TIMED_TASKS)]
    seconds: list[float] = []
    for _ in range(setting.runs):
        with _running(setting.scratch / "live", ["max_parallel = 4\n", *tasks]) as running, _served(running) as server:
            seconds += _latencies(server)
    seconds.sort()
    slowest = f"median {seconds[len(seconds) // 2]:.3f} s, slowest {seconds[-1]:.3f} s of {len(seconds)}"
    corpus = f"{setting.runs} x {_TIMED_TASKS} sleeps, 4 slots"
    value = seconds[int(len(seconds) * 0.95)]
    what = "95 % of events, until a WebSocket client has them, at most"
    yield figure_row("live-latency", what, corpus, [value], "s", target=_LATENCY, peer=slowest)


def many_clients(setting: Setting) -> Iterator[Row]:
    """A large batch of which two tasks still run: without a client, with clients that replay it, and that follow it."""
    tasks = [f"[tasks.t{n}]\nrun = 'true'\n" for n in range(_TASKS)]
    late = [f"[tasks.late{n}]\nrun = 'sleep 3600'\npriority = -1\n" for n in range(2)]
    corpus = f"{_TASKS:,} tasks, 2 more run, {_CLIENTS} clients"
    with _running(setting.scratch / "live", ["max_parallel = 2\n", *tasks, *late]) as running:
        last = _wait_for_last(running)
        with _served(running) as server:
            yield _cpu_row(server, "without a client, of a core", _IDLE_SECONDS, _IDLE_CORE, corpus)
            told = json.loads(_output(server.start_clients(_CLIENTS, "replay", last)))
            what = "until the last of clients that replay has everything"
            yield figure_row("live-clients", what, corpus, [max(told["replays"])], "s", target=_REPLAY)
            what = "slowest handshake of another client during this"
            count = f"{len(told['handshakes'])} handshakes"
            yield figure_row(
                "live-clients", what, corpus, [max(told["handshakes"])], "s", target=_HANDSHAKE, peer=count
            )
            following = server.start_clients(_CLIENTS, "follow", str(_FOLLOWED_SECONDS))
            what = f"with clients, for {_FOLLOWED_SECONDS:.0f} s, of a core"
            yield _cpu_row(server, what, _FOLLOWED_SECONDS, _CORE, corpus)
            _output(following)
            yield figure_row("live-clients", "resident", corpus, [server.resident_mb()], "MB", target=_MEMORY)
            time.sleep(_LINGER_SECONDS)
            yield _cpu_row(server, "after the last client, of a core", _IDLE_SECONDS, _IDLE_CORE, corpus)


def _cpu_row(server: LiveServer, what: str, seconds: float, target: Target, corpus: str) -> Row:
    before = server.cpu_seconds()
    time.sleep(seconds)
    return figure_row("live-clients", what, corpus, [(server.cpu_seconds() - before) / seconds], "core", target=target)


def _latencies(server: LiveServer) -> list[float]:
    """Return for each event of a batch the seconds until a client has it. The client is there before the tasks end."""
    seconds: list[float] = json.loads(_output(server.start_clients(1, "time")))
    return seconds


def _output(process: subprocess.Popen[bytes]) -> bytes:
    output = process.communicate()[0]
    if process.returncode != 0:
        raise BrokenSideError(f"clients ended with {process.returncode}")
    return output


@contextmanager
def _running(directory: Path, work_file: Sequence[str]) -> Iterator[Path]:
    """Run a task list in a directory until the end of the block. Yield the directory of its batch."""
    without(directory)()
    directory.mkdir(parents=True)
    (directory / "work.toml").write_text("".join(work_file), encoding="ascii")
    process = _start(directory, "work", "run", "--store", _STORE, "-q")
    try:
        while not (started := list((directory / _STORE).glob("batches/batch-*/events/*"))):
            if process.poll() is not None:
                raise BrokenSideError("codebatch ended before it began")
            time.sleep(0.01)
        yield started[0].parent.parent
    finally:
        kill_family(process.pid)
        process.communicate()
        without(directory)()


def _wait_for_last(batch_root: Path) -> str:
    """Wait until all but two tasks have ended. Return the cursor of the last event before progress."""
    while True:
        events = _start(batch_root.parents[2], "events", "--store", _STORE, "--json").communicate()[0].splitlines()
        counts = json.loads(events[-1])["counts"] if events else {}
        if counts.get("DONE") == _TASKS and counts.get("RUNNING") == 2:
            return str(json.loads(events[-1])["cursor"])
        time.sleep(2.0)


@contextmanager
def _served(batch_root: Path) -> Iterator[LiveServer]:
    process = _start(batch_root.parents[2], "serve", "--store", _STORE)
    try:
        assert process.stdout is not None
        address, _, token = process.stdout.readline().decode().strip().partition("/#token=")
        yield LiveServer(process, int(address.rpartition(":")[2]), token, batch_root.name)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def _start(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("codebatch")), *arguments]
    return subprocess.Popen(
        command,
        cwd=directory,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
