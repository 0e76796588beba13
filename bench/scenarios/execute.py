"""The execute phase of `full` compared with its floor, and the efficiency of two workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.measuring import Side, Usage, alternate, peak_together, run_side
from bench.rows import Row, Target, figure_row, pair_row
from bench.setting import Setting, answer, as_copy_of, without
from bench.trees import Corpus, copy_without_git

_CPU = Target(limit=2.0)
_EFFICIENCY = Target(limit=0.92, is_minimum=True)
_COORDINATOR_AND_WORKERS_BYTES = 250e6 + 400e6


class Phase(NamedTuple):
    """Wall and CPU seconds of the execute phase of one run."""

    wall_s: float
    cpu_s: float


def full(setting: Setting) -> Iterator[Row]:
    """Compare the execute phase with its floor. Snapshot and plan are made before and copied for each turn."""
    for corpus in setting.corpora:
        tree = copy_without_git(corpus, setting.scratch / "tree")
        planned, store, selection = (setting.scratch / name for name in ("planned", "store", "selection.json"))
        try:
            answer(setting.codebatch("snapshot", "snapshot", tree, "--store", planned))
            answer(setting.codebatch("batch init", "batch", "init", "--pipeline", "full", "--store", planned))
            answer(setting.probe("selection", "selection", planned, selection))
            sides = [_execute(setting, planned, store, jobs) for jobs in (1, 2)]
            floor = setting.probe("floor", "floor", selection, tree)
            alternate([*sides, floor], 0)
            phases: list[tuple[Phase, Phase]] = []
            turns: list[tuple[Usage, Usage, Usage]] = []
            for _ in range(setting.runs):
                one = run_side(sides[0])
                alone = _phase(store)
                two = run_side(sides[1])
                phases.append((alone, _phase(store)))
                turns.append((one, two, run_side(floor)))
            yield _execute_phase(corpus, [alone for alone, _ in phases], [floor for _, _, floor in turns])
            yield from _rows(corpus, *(list(column) for column in zip(*turns, strict=True)))
            yield _efficiency(corpus, phases)
            for jobs, side in enumerate(sides, start=1):
                yield _memory(corpus, side, jobs)
        finally:
            for path in (tree, planned, store):
                without(path)()
            selection.unlink(missing_ok=True)


def _execute(setting: Setting, planned: Path, store: Path, jobs: int) -> Side:
    arguments: list[str | Path] = ["run", "--batch", "latest", "--quiet", "--jobs", str(jobs), "--store", store]
    return setting.codebatch(f"run -j {jobs}", *arguments, prepare=as_copy_of(planned, store))


def _rows(corpus: Corpus, one: list[Usage], two: list[Usage], least: list[Usage]) -> Iterator[Row]:
    theirs = ("floor: tree-sitter + tags, ruff", least)
    for jobs, usages in ((1, one), (2, two)):
        yield pair_row(
            "full",
            f"run --batch, -j {jobs}",
            corpus.name,
            ours=(f"codebatch run --batch -j {jobs}", usages),
            theirs=theirs,
            by="cpu",
            target=_CPU,
            note="start of all processes, merge and summary included",
        )
    efficiency = [first.wall_s / (2 * second.wall_s) for first, second in zip(one, two, strict=True)]
    yield figure_row(
        "full",
        "parallel efficiency of the whole process, wall of -j 1 / (2 * wall of -j 2)",
        corpus.name,
        efficiency,
        "",
        note="start, merge and summary of the one process included",
    )


def _execute_phase(corpus: Corpus, phases: list[Phase], floors: list[Usage]) -> Row:
    return figure_row(
        "full",
        "execute phase, -j 1: CPU inside of units / floor",
        corpus.name,
        [phase.cpu_s / floor.cpu_s for phase, floor in zip(phases, floors, strict=True)],
        "",
        target=_CPU,
        note="what workers and their children spend from leasing a unit to its commit; the floor is a whole process",
    )


def _phase(store: Path) -> Phase:
    """Return the wall and CPU seconds of the units, from the journals.

    Wall is the time from the first unit's begin to the last unit's end.
    """
    lines = [
        msgspec.json.decode(line)
        for journal in store.glob("batches/*/journal/*.jsonl")
        for line in journal.read_bytes().splitlines()
    ]
    began = min(line["at_ns"] for line in lines if line["event"] == "began")
    ended = max(line["at_ns"] for line in lines if line["event"] == "finished")
    cpu = sum(line["cpu_seconds"] for line in lines if line["event"] == "finished")
    return Phase(wall_s=float(ended - began) / 1e9, cpu_s=float(cpu))


def _efficiency(corpus: Corpus, phases: list[tuple[Phase, Phase]]) -> Row:
    return figure_row(
        "full",
        "parallel efficiency of the execute phase, -j 1 / (2 * -j 2)",
        corpus.name,
        [alone.wall_s / (2 * together.wall_s) for alone, together in phases],
        "",
        target=_EFFICIENCY,
        note="first unit begun to last unit finished; where one worker starts before the other, that counts against us",
    )


def _memory(corpus: Corpus, side: Side, jobs: int) -> Row:
    limit = Target(limit=_COORDINATOR_AND_WORKERS_BYTES / 1e6 + 400 * (jobs - 1), source="design §12, on the kernel")
    peak = peak_together(side) / 1e6
    return figure_row(
        "full", f"peak memory of all processes together, -j {jobs}", corpus.name, [peak], "MB", target=limit
    )
