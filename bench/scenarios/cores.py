"""Runs of a large tree with more and more workers: how much faster each is, and where the rest of the time goes."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.measuring import BrokenSideError, Usage, run_side
from bench.probes.phases import PhasedRun
from bench.rows import Row, SkippedRow, Target, figure_row
from bench.setting import Setting, answer, without
from bench.trees import copy_sources
from codebatch.system.host import usable_cores

_FILES_MAX = 12_000
_BYTES_MAX = 150_000_000
_EFFICIENCY_TARGETS: Mapping[int, Target] = {
    8: Target(limit=0.85, is_minimum=True),
    16: Target(limit=0.75, is_minimum=True),
}
_PARSING_TURNS = 3
_SINGLE_TURN_JOBS_MAX = 2
"""With so few workers, a run takes long, and one turn is enough."""

_SHARES: Mapping[str, Sequence[str]] = {
    "start and freezing": ("start of Python", "preparing", "listing", "reading"),
    "planning and start of workers": ("planning", "starting workers"),
    "file units": ("file units",),
    "project tasks after the last file unit": ("project tasks", "ending workers"),
    "merging": ("merging",),
    "counting": ("counting",),
    "indexing": ("indexing",),
}
"""The phases of a run, grouped for the table. Together they are the whole run, except for the end of the process."""


class _Turn(NamedTuple):
    """One run: what the probe reports, and the usage of all its processes."""

    run: PhasedRun
    usage: Usage

    def share(self, *names: str) -> float:
        """Return the percentage of the wall-clock time that some phases took."""
        phases = (*self.run.phases, *self.run.execution)
        return 100 * sum(phase.wall_s for phase in phases if phase.name in names) / self.usage.wall_s


def many_cores(setting: Setting) -> Iterator[Row]:
    """Run one tree cold with each number of workers, compare the digests, and divide the wall time into phases."""
    tree, store = setting.scratch / "tree", setting.scratch / "store"
    cores = usable_cores()
    jobs_counts = [jobs for jobs in setting.jobs if jobs <= cores] or [1]
    try:
        copied = copy_sources(setting.corpora, tree, files_max=_FILES_MAX, bytes_max=_BYTES_MAX)
        corpus = f"{copied.files:,} files, {copied.bytes / 1e6:.0f} MB"
        _log({"tree": corpus, "of": [str(source.root) for source in setting.corpora], "cores": cores})
        alone_s = _parsing_seconds(setting, 1)
        machine = {jobs: alone_s / _parsing_seconds(setting, jobs) for jobs in jobs_counts}
        _log({"machine_efficiency": machine})
        _measure(setting, tree, store, max(jobs_counts))
        turns: dict[int, list[_Turn]] = {jobs: [] for jobs in jobs_counts}
        for number in range(setting.runs):
            for jobs in jobs_counts:
                if number == 0 or jobs > _SINGLE_TURN_JOBS_MAX:
                    turns[jobs].append(_measure(setting, tree, store, jobs))
        _check_digests(turns)
        for jobs in jobs_counts:
            yield from _rows(corpus, jobs, turns[jobs], turns[jobs_counts[0]], machine[jobs])
        for jobs in sorted(set(setting.jobs) - set(jobs_counts)):
            yield SkippedRow(scenario="many-cores", what=f"-j {jobs}", why=f"this machine has {cores} cores")
    finally:
        without(tree)()
        without(store)()


def _measure(setting: Setting, tree: Path, store: Path, jobs: int) -> _Turn:
    out = setting.scratch / "run.json"
    without(store)()
    side = setting.probe(f"run -j {jobs}", "phases", tree, store, str(jobs), str(time.monotonic_ns()), out)
    usage = run_side(side)
    run = msgspec.json.decode(out.read_bytes(), type=PhasedRun)
    _log({"usage": usage, "run": run})
    return _Turn(run, usage)


def _parsing_seconds(setting: Setting, count: int) -> float:
    """Return the wall-clock seconds of processes that share nothing: the shortest of several turns."""
    return min(float(answer(setting.probe("parsing", "parsing", str(count)))) for _ in range(_PARSING_TURNS))


def _check_digests(turns: Mapping[int, Sequence[_Turn]]) -> None:
    """Raise BrokenSideError if a run had another result than the others, or a failure."""
    digests = {turn.run.result_digest for several in turns.values() for turn in several}
    if len(digests) != 1 or not all(digests):
        raise BrokenSideError(f"the runs have different results: {sorted(digests)}")


def _rows(corpus: str, jobs: int, turns: Sequence[_Turn], base: Sequence[_Turn], machine: float) -> Iterator[Row]:
    base_s = statistics.median(turn.usage.wall_s * turn.run.jobs for turn in base)
    runs = [turn.run for turn in turns]
    coordinator_s = _median(runs, lambda run: run.coordinator_cpu_s)
    longest_s = max(run.longest_unit_s for run in runs)
    all_s = statistics.median(turn.usage.cpu_s for turn in turns)
    yield figure_row(
        "many-cores",
        f"-j {jobs}, wall",
        corpus,
        [turn.usage.wall_s for turn in turns],
        "s",
        peer=f"speed-up {base_s / statistics.median(turn.usage.wall_s for turn in turns):.2f}",
        note=f"{runs[0].workers} workers, {runs[0].units} units, the longest {longest_s:.2f} s; "
        f"CPU of the coordinator {coordinator_s:.2f} s, of other processes {all_s - coordinator_s:.1f} s; "
        f"workers busy during file units {100 * _median(runs, lambda run: run.busy_share):.1f} %",
    )
    yield figure_row(
        "many-cores",
        f"-j {jobs}, efficiency",
        corpus,
        [base_s / (jobs * turn.usage.wall_s) for turn in turns],
        "",
        target=_EFFICIENCY_TARGETS.get(jobs),
        peer=f"{machine:.2f} for processes that share nothing",
    )
    for what, names in _SHARES.items():
        seconds = statistics.median(turn.share(*names) * turn.usage.wall_s / 100 for turn in turns)
        shares = [turn.share(*names) for turn in turns]
        yield figure_row("many-cores", f"-j {jobs}, {what}", corpus, shares, "%", peer=f"{seconds:.2f} s")


def _median(runs: Sequence[PhasedRun], figure: Callable[[PhasedRun], float]) -> float:
    return statistics.median(map(figure, runs))


def _log(line: object) -> None:
    """Print a JSON line to standard error, so that a measurement that is stopped early still shows its runs."""
    print(msgspec.json.encode(line).decode(), file=sys.stderr, flush=True)
