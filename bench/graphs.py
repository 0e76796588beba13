"""Graphs of shell commands for benchmarks, and the time that an ideal schedule of them would take."""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DONE = "done"
_WITNESS = "witness"
_SCRIPT = "witness.sh"
_NEEDS_MAX = 3
_SCRIPT_TEXT = f"""\
date +"began $1 $$ %s.%N" >> {_WITNESS}
sleep "$2"
date +"ended $1 $$ %s.%N" >> {_WITNESS}
: > {DONE}/"$1"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A shell command. If `leaves` is set, the command creates the file `done/NAME`, which `make` needs to resume."""

    name: str
    run: str
    needs: tuple[str, ...] = ()
    leaves: bool = False


Graph = tuple[Job, ...]
"""Jobs in an order in which each comes after the jobs that it needs."""


def independent(count: int) -> Graph:
    """Return `count` independent jobs that run `true`."""
    return tuple(Job(name=_name(number), run="true") for number in range(count))


def chain(count: int) -> Graph:
    """Return `count` jobs that run `true`; each needs the job before it."""
    return tuple(
        Job(name=_name(number), run="true", needs=(_name(number - 1),) if number else ()) for number in range(count)
    )


def sleeps(count: int, seconds: float) -> Graph:
    """Return `count` independent sleeps of equal length that write to the witness file."""
    return tuple(_sleep(number, seconds, ()) for number in range(count))


def random_sleeps(count: int, mean_seconds: float, seed: int, *, spread: float = 0.8) -> Graph:
    """Return sleeps with log-normal lengths that write to the witness file. Each needs up to three earlier sleeps."""
    generator = random.Random(seed)
    lengths = [generator.lognormvariate(0.0, spread) for _ in range(count)]
    scale = mean_seconds * count / sum(lengths)
    graph = []
    for number, length in enumerate(lengths):
        needed = generator.sample(range(number), min(number, generator.randint(0, _NEEDS_MAX)))
        graph.append(_sleep(number, length * scale, tuple(_name(need) for need in sorted(needed))))
    return tuple(graph)


def _name(number: int) -> str:
    return f"t{number:05}"


def _sleep(number: int, seconds: float, needs: tuple[str, ...]) -> Job:
    return Job(name=_name(number), run=f"sh {_SCRIPT} {_name(number)} {seconds:.3f}", needs=needs, leaves=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One start of a job by wall clock, as recorded in the witness file. `ended` is None if the job did not finish."""

    name: str
    began: float
    ended: float | None


def write_witness(directory: Path) -> None:
    """Write the script that jobs run. It appends a line to the witness file when it begins and another when it ends."""
    (directory / DONE).mkdir()
    (directory / _SCRIPT).write_text(_SCRIPT_TEXT)


def forget_witness(directory: Path) -> None:
    """Remove the witness file and all markers of done jobs, so that every job must run again."""
    (directory / _WITNESS).unlink()
    for done in (directory / DONE).iterdir():
        done.unlink()


def witnessed(directory: Path) -> list[Span]:
    """Return the spans in the witness file, sorted by start."""
    try:
        lines = (directory / _WITNESS).read_text().splitlines()
    except FileNotFoundError:
        return []
    events = [line.split() for line in lines]
    ended = {(name, pid): float(at) for event, name, pid, at in events if event == "ended"}
    starts = [(name, pid, float(at)) for event, name, pid, at in events if event == "began"]
    spans = [Span(name=name, began=began, ended=ended.get((name, pid))) for name, pid, began in starts]
    return sorted(spans, key=lambda span: span.began)


def list_scheduling(graph: Graph, seconds: Mapping[str, float], slots: int, *, by_path: bool = False) -> float:
    """Return how long list scheduling takes.

    A free slot takes a job that may start: the first of the graph, or the one with the longest path if `by_path` is
    set.
    """
    users: dict[str, list[str]] = {job.name: [] for job in graph}
    for job in graph:
        for need in job.needs:
            users[need].append(job.name)
    tails: dict[str, float] = {}
    for job in reversed(graph):
        tails[job.name] = seconds[job.name] + max((tails[user] for user in users[job.name]), default=0.0)
    rank = {job.name: (-tails[job.name] if by_path else 0.0, number) for number, job in enumerate(graph)}
    unmet = {job.name: len(job.needs) for job in graph}
    ready = [(rank[job.name], job.name) for job in graph if not job.needs]
    heapq.heapify(ready)
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < slots:
            name = heapq.heappop(ready)[1]
            heapq.heappush(running, (now + seconds[name], name))
        now, name = heapq.heappop(running)
        for user in users[name]:
            unmet[user] -= 1
            if not unmet[user]:
                heapq.heappush(ready, (rank[user], user))
    return now


def level_barrier(graph: Graph, seconds: Mapping[str, float], slots: int) -> float:
    """Return how long the jobs take if all jobs of a level must end before a job of the next level begins."""
    depths: dict[str, int] = {}
    levels: dict[int, list[Job]] = {}
    for job in graph:
        depths[job.name] = 1 + max((depths[need] for need in job.needs), default=0)
        levels.setdefault(depths[job.name], []).append(Job(name=job.name, run=job.run))
    return sum(list_scheduling(tuple(level), seconds, slots) for level in levels.values())
