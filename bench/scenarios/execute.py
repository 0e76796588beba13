"""The execute phase of `full` against its floor, and how well two workers share it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.measuring import Side, Usage, alternate, peak_together
from bench.rows import Row, Target, figure_row, pair_row
from bench.setting import Setting, answer, as_copy_of, without
from bench.trees import Corpus, copy_without_git

_CPU = Target(limit=2.0)
_EFFICIENCY = Target(limit=0.92, is_minimum=True)
_COORDINATOR_AND_WORKERS_BYTES = 250e6 + 400e6


def full(setting: Setting) -> Iterator[Row]:
    """The execute phase against its floor. Snapshot and plan are made before, and copied anew for each turn."""
    for corpus in setting.corpora:
        tree = copy_without_git(corpus, setting.scratch / "tree")
        planned, store, selection = (setting.scratch / name for name in ("planned", "store", "selection.json"))
        try:
            answer(setting.codebatch("snapshot", "snapshot", tree, "--store", planned))
            answer(setting.codebatch("batch init", "batch", "init", "--pipeline", "full", "--store", planned))
            answer(setting.probe("selection", "selection", planned, selection))
            sides = [_execute(setting, planned, store, jobs) for jobs in (1, 2)]
            floor = setting.probe("floor", "floor", selection, tree)
            one, two, least = alternate([*sides, floor], setting.runs)
            yield from _rows(corpus, one, two, least)
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
            f"execute phase, -j {jobs}",
            corpus.name,
            ours=(f"codebatch run --batch -j {jobs}", usages),
            theirs=theirs,
            by="cpu",
            target=_CPU,
        )
    efficiency = [first.wall_s / (2 * second.wall_s) for first, second in zip(one, two, strict=True)]
    yield figure_row(
        "full",
        "parallel efficiency, wall of -j 1 / (2 * wall of -j 2)",
        corpus.name,
        efficiency,
        "",
        target=_EFFICIENCY,
        note="start, merge and summary of the one process included; the target speaks of the execute phase",
    )


def _memory(corpus: Corpus, side: Side, jobs: int) -> Row:
    limit = Target(limit=_COORDINATOR_AND_WORKERS_BYTES / 1e6 + 400 * (jobs - 1), source="design §12, on the kernel")
    peak = peak_together(side) / 1e6
    return figure_row(
        "full", f"peak memory of all processes together, -j {jobs}", corpus.name, [peak], "MB", target=limit
    )
