"""The cost of dispatching one unit: the scheduler alone, with its lease, with its durable commit."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.measuring import environment
from bench.rows import Row, SkippedRow, Target, figure_row
from bench.setting import Setting, answer, without

_ITEMS = 100_000
_SHARD_ITEMS = (1, 8, 64)
_JOBS = 2
_ENGINE = Target(limit=30)
_WITH_LEASE = Target(limit=100)
_FSYNCS = Target(limit=3)
_COMMITS = 1000
_COMMITS_TRACED = (10, 60)
_POOL_TASKS = 20_000


class _Engine(msgspec.Struct, frozen=True):
    start_us: float
    dispatch_us: float
    events_per_second: float


class _Durable(msgspec.Struct, frozen=True):
    lease_us: float
    encode_us: float
    commit_us: float


def dispatch(setting: Setting) -> Iterator[Row]:
    """Measure the scheduler, a lease and a durable commit, in processes of their own that take turns."""
    engines: dict[int, list[_Engine]] = {size: [] for size in _SHARD_ITEMS}
    durables: list[_Durable] = []
    pools: list[float] = []
    for _ in range(setting.runs):
        for size, engine in engines.items():
            side = setting.probe("engine", "engine", str(_ITEMS), str(size), str(_JOBS))
            engine.append(msgspec.json.decode(answer(side), type=_Engine))
        durables.append(_durable(setting, _COMMITS))
        pools.append(float(answer(setting.probe("pool", "process_pool", str(_POOL_TASKS), str(_JOBS)))))
    pool = f"ProcessPoolExecutor, empty task: {sorted(pools)[len(pools) // 2]:.0f} µs"
    yield from _engine_rows(engines, pool)
    yield from _durable_rows(engines[max(_SHARD_ITEMS)], durables, pool)
    yield _fsyncs(setting)


def _engine_rows(engines: dict[int, list[_Engine]], pool: str) -> Iterator[Row]:
    for size, measured in engines.items():
        corpus = f"{_ITEMS:,} items in shards of {size}"
        events = [one.events_per_second for one in measured]
        yield figure_row(
            "dispatch",
            "engine, each dispatch",
            corpus,
            [one.dispatch_us for one in measured],
            "µs",
            target=_ENGINE,
            peer=pool,
            note="four tasks a unit; an Assign, the handling of its Committed and its Finished",
        )
        yield figure_row("dispatch", "engine, events per second", corpus, events, "/s")
        yield figure_row("dispatch", "engine, start", corpus, [one.start_us / 1e6 for one in measured], "s")


def _durable_rows(engine: list[_Engine], durables: list[_Durable], pool: str) -> Iterator[Row]:
    leases = [one.lease_us for one in durables]
    both = [one.dispatch_us + lease for one, lease in zip(engine, leases, strict=True)]
    where = "scratch directory"
    yield figure_row("dispatch", "lease, one link(2)", where, leases, "µs")
    yield figure_row("dispatch", "engine and lease", where, both, "µs", target=_WITH_LEASE, peer=pool)
    yield figure_row("dispatch", "encoding four outcomes", where, [one.encode_us for one in durables], "µs")
    yield figure_row("dispatch", "durable commit of four outcomes", where, [one.commit_us for one in durables], "µs")


def _durable(setting: Setting, count: int) -> _Durable:
    directory = setting.scratch / "durable"
    side = setting.probe("durable", "durable", directory, str(count), prepare=without(directory))
    try:
        return msgspec.json.decode(answer(side), type=_Durable)
    finally:
        without(directory)()


def _fsyncs(setting: Setting) -> Row:
    """Return a row with the fsyncs of each commit: the difference between few and many commits, counted by strace."""
    strace = shutil.which("strace")
    what = "fsyncs of a durable commit of four outcomes"
    if strace is None:
        return SkippedRow(scenario="dispatch", what=what, why="strace is not here to count them")
    few, many = (_fsyncs_of(setting, strace, count) for count in _COMMITS_TRACED)
    per_commit = (many - few) / (_COMMITS_TRACED[1] - _COMMITS_TRACED[0])
    return figure_row("dispatch", what, "strace", [per_commit], "", target=_FSYNCS)


def _fsyncs_of(setting: Setting, strace: str, count: int) -> int:
    directory: Path = setting.scratch / "durable"
    without(directory)()
    side = setting.probe("durable", "durable", directory, str(count))
    done = subprocess.run(
        [strace, "-f", "-e", "trace=fsync,fdatasync", *side.command],
        cwd=side.cwd,
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    without(directory)()
    return len(re.findall(r"\bf(?:data)?sync\(", done.stderr))
