"""The quality of schedules: simulated makespans compared with a lower bound, and real ones compared with peers."""

from __future__ import annotations

import importlib.util
import random
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bench.measuring import Side, Usage, alternate
from bench.probes.executors import PEERS
from bench.rows import Row, SkippedRow, Target, figure_row, pair_row
from bench.setting import REPOSITORY, Setting, answer, as_copy_of, without

_SIMULATED_ITEMS = 1_000_000
_SIMULATED_JOBS = (2, 16, 128, 1024)
_SKEWS = ("10 % x 20", "one giant", "log-normal")
_MAKESPAN = Target(limit=1.05)

_JOBS = 2
_ITEMS = 2000
_EMPTY_ITEMS = 5000
_CPU_SECONDS = 5.0
_BLOCKS_PER_SECOND = 100_000
_FILES_PER_CALL = 16
_PLUGIN = REPOSITORY / "bench" / "probes" / "burn"


class _Simulated(msgspec.Struct, frozen=True):
    makespan: float
    bound: float
    units: int
    steals: int
    twice: float
    cpu_s: float


def makespan(setting: Setting) -> Iterator[Row]:
    """Simulate a million items. One run each is enough, because the simulation is deterministic."""
    for skew in _SKEWS:
        for kind in ("exact", "wrong"):
            for jobs in _SIMULATED_JOBS:
                side = setting.probe("makespan", "makespan", skew, str(_SIMULATED_ITEMS), str(jobs), kind)
                simulated = msgspec.json.decode(answer(side), type=_Simulated)
                bound = "max(largest, total / workers)" if kind == "exact" else "total / workers + largest"
                yield figure_row(
                    "makespan",
                    f"{skew}, {kind} estimates, {jobs:,} workers",
                    f"{_SIMULATED_ITEMS:,} items",
                    [simulated.makespan / simulated.bound],
                    f"x {bound}",
                    target=_MAKESPAN,
                    note=f"{simulated.units:,} units, {simulated.steals:,} steals, {simulated.twice:.3%} done twice",
                )


def skews(setting: Setting) -> Iterator[Row]:
    """Run the same costs in two real processes, compared with other executors; then tasks that do nothing."""
    for name, blocks in _workloads().items():
        tree, store, template = (setting.scratch / part for part in ("burn-tree", "burn-store", "burn-template"))
        for directory in (tree, template):
            without(directory)()
        tree.mkdir()
        for number, count in enumerate(blocks):
            (tree / f"{number:05}.txt").write_text(str(count))
        plugin = {"PYTHONPATH": str(_PLUGIN)}
        answer(_with(setting.probe("plan", "burn_batch", template, tree), plugin))
        ours = setting.codebatch(
            "codebatch", "run", "--batch", "latest", "--store", store, "-j", str(_JOBS), "-q",
            prepare=as_copy_of(template, store),
        )  # fmt: skip
        sides = [_with(ours, plugin), *_peers(setting, tree)]
        yield from _rows(name, len(blocks), sides, alternate(sides, setting.runs))
        for directory in (tree, store, template):
            without(directory)()
    for missing in _missing():
        yield SkippedRow(scenario="skews", what=missing, why="it is not installed")


def _workloads() -> Mapping[str, Sequence[int]]:
    generator = random.Random(1)
    weights = {
        "all alike": [1.0] * _ITEMS,
        "10 % x 20": [20.0 if generator.random() < 0.1 else 1.0 for _ in range(_ITEMS)],
        "one giant": [1.0] * (_ITEMS - 1) + [_ITEMS / 4],
        "log-normal": [generator.lognormvariate(0.0, 1.5) for _ in range(_ITEMS)],
    }
    blocks = _CPU_SECONDS * _BLOCKS_PER_SECOND
    scaled = {name: [round(blocks * cost / sum(costs)) for cost in costs] for name, costs in weights.items()}
    return {**scaled, "empty": [0] * _EMPTY_ITEMS}


def _peers(setting: Setting, tree: Path) -> Iterator[Side]:
    for peer in PEERS:
        if peer not in _missing():
            yield setting.probe(peer, "executors", peer, tree, str(_JOBS))
    call = f"{sys.executable} {_PLUGIN / 'burn.py'}"
    listing = f"find {tree} -type f -print0"
    lines = {
        "xargs": f"{listing} | xargs -0 -P {_JOBS} -n {_FILES_PER_CALL} {call}",
        "parallel": f"{listing} | parallel -0 -j {_JOBS} -n {_FILES_PER_CALL} {call}",
    }
    for peer, line in lines.items():
        if peer not in _missing():
            yield Side(name=peer, command=["bash", "-c", line], cwd=setting.scratch)


def _missing() -> list[str]:
    libraries = [name for name in ("joblib", "dask") if importlib.util.find_spec(name) is None]
    return libraries + [name for name in ("xargs", "parallel") if shutil.which(name) is None]


def _rows(name: str, items: int, sides: Sequence[Side], turns: Sequence[Sequence[Usage]]) -> Iterator[Row]:
    for side, theirs in zip(sides[1:], turns[1:], strict=True):
        yield pair_row(
            "skews",
            f"{name}, beside {side.name}",
            f"{items:,} items, {_JOBS} processes",
            ours=(sides[0].name, turns[0]),
            theirs=(side.name, theirs),
        )


def _with(side: Side, environment: Mapping[str, str]) -> Side:
    return Side(name=side.name, command=side.command, cwd=side.cwd, prepare=side.prepare, environment=environment)
