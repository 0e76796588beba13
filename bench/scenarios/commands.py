"""Batches of shell commands: their cost, the quality of their schedule, very large batches, and the start of a worker.

Each runner of `bench.runners` gets the same commands, two or four at once, in directories on one file system.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bench.graphs import (
    Graph,
    Span,
    chain,
    forget_witness,
    independent,
    level_barrier,
    list_scheduling,
    random_sleeps,
    witnessed,
)
from bench.measuring import BrokenSideError, Side, Usage, alternate, run_side, watch
from bench.rows import Row, SkippedRow, Target, figure_row, pair_row
from bench.runners import CODEBATCH, DOIT, NINJA, PARALLEL, PEERS, SNAKEMAKE, STORE, Runner, runners_here
from bench.setting import Setting, answer, without

_SOURCE = "design of work batches, §9.4"
_MANY = 1000
_SLOTS = 2
_WALL = {
    PARALLEL.name: Target(limit=1.0, source=_SOURCE),
    DOIT.name: Target(limit=0.333, source=_SOURCE),
    SNAKEMAKE.name: Target(limit=0.1, source=_SOURCE),
}
_CPU_MS = Target(limit=2.0, source=_SOURCE)

_SLEEPS = 60
_SLEEPS_MEAN_SECONDS = 1.0
_SLEEPS_SLOTS = 4
_SCHEDULED = Target(limit=1.03, source=_SOURCE)

_SKEWED = 40
_SKEWED_MEAN_SECONDS = 0.4
_SKEWED_SPREAD = 1.5
_AS_NINJA = Target(limit=1.0, source=_SOURCE)

_LARGE = 10_000
_LARGE_SECONDS_MAX = 600.0
_PEER_SECONDS_MAX = 300.0
_COORDINATOR_MB = Target(limit=150, source=_SOURCE)
_STATUS_SECONDS = Target(limit=0.6, source=_SOURCE)

_WORKERS = 5
_READY_MS = Target(limit=120, source=_SOURCE)
_WORKER_MB = Target(limit=60, source=_SOURCE)


def many(setting: Setting) -> Iterator[Row]:
    """Measure a thousand commands that do nothing, two at once, and compare them with other programs."""
    graph = independent(_MANY)
    runners = runners_here()
    corpus = f"{_MANY:,} x `true`, {_SLOTS} slots"
    sides = [runner.side(graph, setting.scratch / runner.program, _SLOTS) for runner in runners]
    for side in sides:
        run_side(side)
    by_turn: list[list[Usage]] = []
    bare: list[float] = []
    for _ in range(setting.runs):
        by_turn.append([run_side(side) for side in sides])
        bare.append(float(answer(setting.probe("bare", "bare_commands", str(_MANY)))))
    turns = [list(column) for column in zip(*by_turn, strict=True)]
    for runner, theirs in zip(runners[1:], turns[1:], strict=True):
        yield pair_row(
            "commands",
            f"all of them, beside {runner.name}",
            corpus,
            ours=(CODEBATCH.name, turns[0]),
            theirs=(f"{runner.name} {runner.version()}", theirs),
            target=_WALL.get(runner.name),
        )
    for runner, usages in zip(runners, turns, strict=True):
        yield figure_row(
            "commands",
            f"CPU of all processes beyond the commands' own, a command: {runner.name}",
            corpus,
            [1000 * (usage.cpu_s - one) / _MANY for usage, one in zip(usages, bare, strict=True)],
            "ms",
            target=_CPU_MS if runner is CODEBATCH else None,
            peer=f"`sh -c true` itself {1000 * sorted(bare)[len(bare) // 2] / _MANY:.2f} ms",
        )
        without(setting.scratch / runner.program)()
    yield from _missing("commands")


class _Schedule(msgspec.Struct, frozen=True):
    """Seconds from the first start to the last end of a graph, as measured and as simulated by three rules."""

    took: float
    listed: float
    by_path: float
    by_level: float


def graphs(setting: Setting) -> Iterator[Row]:
    """Compare sleeps that need one another, four at once, with list scheduling of equal lengths.

    Each turn has a new graph.
    """
    runners = runners_here(with_needs=True)
    schedules: dict[str, list[_Schedule]] = {runner.name: [] for runner in runners}
    for seed in range(setting.runs):
        graph = random_sleeps(_SLEEPS, _SLEEPS_MEAN_SECONDS, seed)
        for runner in runners:
            schedules[runner.name].append(_schedule(setting, runner, graph))
    corpus = f"{setting.runs} random graphs of {_SLEEPS} sleeps, {_SLEEPS_SLOTS} slots"
    source = "simulated with the lengths that were witnessed in the same run"
    for runner in runners:
        took = [schedule.took / schedule.listed for schedule in schedules[runner.name]]
        target = _SCHEDULED if runner is CODEBATCH else None
        what = f"first start to last end: {runner.name}"
        yield figure_row("commands-graphs", what, corpus, took, "x list scheduling", target=target, peer=source)
    ours = schedules[CODEBATCH.name]
    for what, ratio in {
        "simulated: a barrier after each level": [schedule.by_level / schedule.listed for schedule in ours],
        "simulated: the longest path first": [schedule.by_path / schedule.listed for schedule in ours],
    }.items():
        yield figure_row("commands-graphs", what, corpus, ratio, "x list scheduling", peer=source)


def _schedule(setting: Setting, runner: Runner, graph: Graph) -> _Schedule:
    directory = setting.scratch / runner.program
    run_side(runner.side(graph, directory, _SLEEPS_SLOTS))
    spans = witnessed(directory)
    without(directory)()
    seconds, took = _lengths(runner, graph, spans)
    return _Schedule(
        took=took,
        listed=list_scheduling(graph, seconds, _SLEEPS_SLOTS),
        by_path=list_scheduling(graph, seconds, _SLEEPS_SLOTS, by_path=True),
        by_level=level_barrier(graph, seconds, _SLEEPS_SLOTS),
    )


def skewed(setting: Setting) -> Iterator[Row]:
    """Measure sleeps of which few take most of the time, run for the second time.

    A program that recorded the first run can start with the longest. Ninja uses its log from version 1.12 on.
    """
    if NINJA.path() is None:
        yield SkippedRow(scenario="commands-skewed", what=f"beside {NINJA.name}", why="it is not installed")
        return
    graphs = [random_sleeps(_SKEWED, _SKEWED_MEAN_SECONDS, seed, spread=_SKEWED_SPREAD) for seed in range(setting.runs)]
    took = {runner.name: [_second_time(setting, runner, graph) for graph in graphs] for runner in (CODEBATCH, NINJA)}
    ratios = [ours / theirs for ours, theirs in zip(took[CODEBATCH.name], took[NINJA.name], strict=True)]
    corpus = f"{setting.runs} random graphs of {_SKEWED} sleeps, {_SLEEPS_SLOTS} slots"
    what, peer = "first start to last end, the second time", f"ninja {NINJA.version()} with its log"
    yield figure_row("commands-skewed", what, corpus, ratios, "x ninja", target=_AS_NINJA, peer=peer)


def _second_time(setting: Setting, runner: Runner, graph: Graph) -> float:
    directory = setting.scratch / runner.program
    side = runner.side(graph, directory, _SLEEPS_SLOTS)
    run_side(side)
    forget_witness(directory)
    run_side(Side(name=side.name, command=side.command, cwd=directory, environment=side.environment))
    _, seconds = _lengths(runner, graph, witnessed(directory))
    without(directory)()
    return seconds


def _lengths(runner: Runner, graph: Graph, spans: list[Span]) -> tuple[dict[str, float], float]:
    """Return the seconds of each job and of all together.

    Raises BrokenSideError if a job did not run exactly once, or did not run after the jobs that it needs.
    """
    began = {span.name: span.began for span in spans}
    ended = {span.name: span.ended for span in spans if span.ended is not None}
    if len(spans) != len(graph) or len(ended) != len(graph):
        raise BrokenSideError(f"{runner.name} ran {len(spans)} commands of {len(graph)}, {len(ended)} to their end")
    for job in graph:
        if any(ended[need] > began[job.name] for need in job.needs):
            raise BrokenSideError(f"{runner.name} ran {job.name} before what it needs")
    return {name: ended[name] - began[name] for name in began}, max(ended.values()) - min(began.values())


def large(setting: Setting) -> Iterator[Row]:
    """Measure ten thousand commands, independent and as a chain: memory, and the time of `status` afterwards."""
    for shape, graph in (("independent", independent(_LARGE)), ("a chain", chain(_LARGE))):
        corpus = f"{_LARGE:,} x `true`, {shape}, {_SLOTS} slots"
        directory = setting.scratch / CODEBATCH.program
        watched = watch(CODEBATCH.side(graph, directory, _SLOTS), _LARGE_SECONDS_MAX)
        if watched.status != 0:
            raise BrokenSideError(f"{corpus}: codebatch ended with {watched.status} after {watched.wall_s:.0f} s")
        wall = [watched.wall_s]
        yield figure_row("commands-large", "wall: codebatch", corpus, wall, "s")
        for what, peak, target in (
            ("coordinator, peak", watched.peak_bytes, _COORDINATOR_MB),
            ("the largest of its workers, peak", watched.child_peak_bytes, _WORKER_MB),
        ):
            yield figure_row("commands-large", what, corpus, [peak / 1e6], "MB", target=target)
        status = setting.codebatch("status", "status", "--store", directory / STORE)
        usages = alternate([status], setting.runs_of_short)[0]
        seconds = [usage.wall_s for usage in usages]
        yield figure_row("commands-large", "status, whole process", corpus, seconds, "s", target=_STATUS_SECONDS)
        without(directory)()
        yield from _large_peers(setting, graph, corpus)


def _large_peers(setting: Setting, graph: Graph, corpus: str) -> Iterator[Row]:
    for runner in runners_here(with_needs=any(job.needs for job in graph))[1:]:
        directory = setting.scratch / runner.program
        watched = watch(runner.side(graph, directory, _SLOTS), _PEER_SECONDS_MAX)
        without(directory)()
        if watched.status == 0:
            note = f"{watched.peak_bytes / 1e6:.0f} MB, the process itself"
            yield figure_row("commands-large", f"wall: {runner.name}", corpus, [watched.wall_s], "s", peer=note)
        else:
            ending = "did not end" if watched.status is None else f"ended with status {watched.status}"
            why = f"it {ending} after {watched.wall_s:.0f} s"
            yield SkippedRow(scenario="commands-large", what=f"{runner.name}, {corpus}", why=why)


def worker(setting: Setting) -> Iterator[Row]:
    """Measure a worker for commands, started as a coordinator does: the time until it is ready, and its memory then."""
    store = setting.scratch / STORE
    side = setting.probe("worker", "command_worker", store, str(_WORKERS * setting.runs), prepare=without(store))
    measurements = msgspec.json.decode(answer(side), type=list[tuple[float, int]])
    without(store)()
    # The first worker compiles bytecode.
    ready, peaks = [ms for ms, _ in measurements[1:]], [peak / 1e6 for _, peak in measurements[1:]]
    yield figure_row("commands-worker", "ready, from its start", "-", ready, "ms", target=_READY_MS)
    yield figure_row("commands-worker", "memory when it is ready", "-", peaks, "MB", target=_WORKER_MB)


def _missing(scenario: str) -> Iterator[Row]:
    for peer in PEERS:
        if peer.path() is None:
            yield SkippedRow(scenario=scenario, what=f"beside {peer.name}", why="it is not installed")
