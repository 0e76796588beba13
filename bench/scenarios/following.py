"""Batches of shell commands that are followed: the delay of events, and the accuracy of the estimated rest."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.graphs import Graph, random_sleeps, sleeps, witnessed
from bench.measuring import BrokenSideError, Side, environment
from bench.rows import Row, Target, figure_row
from bench.runners import CODEBATCH, STORE
from bench.setting import Setting, without

_SOURCE = "design of work batches, §9.4"
_SLOTS = 4
_FOLLOWED = 40
_FOLLOWED_SECONDS = Target(limit=0.5, source=_SOURCE)
_SLEEPS = 40
_SLEEPS_MEAN_SECONDS = 0.5
_RUNS_BEFORE = 4
_INSIDE = Target(limit=0.8, is_minimum=True, source=_SOURCE)
_ERROR = Target(limit=0.15, source=_SOURCE)


def followed(setting: Setting) -> Iterator[Row]:
    """Measure the time from the end of a command to its line in `codebatch follow` in another process."""
    seconds = [delay for _ in range(setting.runs) for delay in _line_delays(setting.scratch / CODEBATCH.program)]
    corpus = f"{setting.runs} x {_FOLLOWED} sleeps, {_SLOTS} slots"
    slowest = f"the slowest of {len(seconds)} took {max(seconds):.2f} s"
    yield figure_row(
        "commands-followed",
        "a command's end until its line in `follow`",
        corpus,
        seconds,
        "s",
        target=_FOLLOWED_SECONDS,
        peer=slowest,
    )


def _line_delays(directory: Path) -> list[float]:
    side = CODEBATCH.side(sleeps(_FOLLOWED, 0.2), directory, _SLOTS)
    side.prepare()
    with _started(side.command, side) as running:
        while not list((directory / STORE / "batches").glob("batch-*/leases/coordinator.1")):
            if running.poll() is not None:
                raise BrokenSideError("codebatch ended before it began")
            time.sleep(0.01)
        follow = [side.command[0], "follow", "--store", STORE, "-q"]
        line_at: dict[str, float] = {}
        with _started(follow, side, stdout=subprocess.PIPE) as follower:
            assert follower.stdout is not None
            for line in follower.stdout:
                words = line.decode().split()
                if words[1:2] == ["done"]:
                    line_at[words[2]] = time.time()
        if follower.returncode != 0 or running.wait() != 0 or len(line_at) != _FOLLOWED:
            raise BrokenSideError(f"codebatch follow ended with {follower.returncode}, and told of {len(line_at)}")
    ended = {span.name: span.ended for span in witnessed(directory) if span.ended is not None}
    without(directory)()
    return [at - ended[name] for name, at in line_at.items()]


def estimated(setting: Setting) -> Iterator[Row]:
    """Compare the estimate of `status` at half of a batch that ran four times before with the time it really took."""
    inside: list[float] = []
    errors: list[float] = []
    directory = setting.scratch / CODEBATCH.program
    for seed in range(setting.runs):
        low, middle, high, took = _at_half(random_sleeps(_SLEEPS, _SLEEPS_MEAN_SECONDS, seed), directory)
        inside.append(float(low <= took <= high))
        errors.append(abs(middle - took) / took)
    corpus = f"{setting.runs} graphs of {_SLEEPS} sleeps, {_SLOTS} slots, fifth run"
    share = [sum(inside) / len(inside)]
    yield figure_row("commands-estimated", "the truth is in the range", corpus, share, "of all", target=_INSIDE)
    yield figure_row("commands-estimated", "its middle is off by", corpus, errors, "of the truth", target=_ERROR)


def _at_half(graph: Graph, directory: Path) -> tuple[float, float, float, float]:
    side = CODEBATCH.side(graph, directory, _SLOTS)
    side.prepare()
    walls: list[float] = []
    for _ in range(_RUNS_BEFORE):
        began = time.perf_counter()
        with _started(side.command, side) as process:
            if process.wait() != 0:
                raise BrokenSideError(f"codebatch ended with {process.returncode}")
        walls.append(time.perf_counter() - began)
    with _started(side.command, side) as process:
        time.sleep(statistics.median(walls) / 2)
        status_began = time.perf_counter()
        status = subprocess.run(
            [side.command[0], "status", "--store", STORE, "--json"],
            cwd=side.cwd,
            env={**environment(), **side.environment},
            check=True,
            capture_output=True,
        )
        eta = json.loads(status.stdout)["eta_seconds"]
        status_ended = time.perf_counter()
        process.wait()
        took = time.perf_counter() - (status_began + status_ended) / 2
    without(directory)()
    if eta is None:
        raise BrokenSideError("codebatch status says nothing of how long it takes yet")
    low, middle, high = eta
    return low, middle, high, took


def _started(command: Sequence[str], side: Side, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command),
        cwd=side.cwd,
        env={**environment(), **side.environment},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
    )
