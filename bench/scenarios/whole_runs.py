"""Whole runs: repeated with nothing changed, over ten files, and compared with tools that do a part of the work."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.measuring import Side, alternate
from bench.rows import Row, SkippedRow, Target, figure_row, pair_row
from bench.scenarios.waiting import workers_started
from bench.setting import Setting, answer, without
from bench.trees import Corpus, copy_without_git

_AGAIN_RATIO = 0.1
_AGAIN_SECONDS = 0.4
_TEN_FILES = Target(limit=0.6)
_ONE_WORKER = Target(limit=1, source="SPEC.md Scheduling")
_TEN = 10
_EDITED = Target(limit=0.1, source="SPEC.md Reuse")
_MANY_EDITED = 500
_TAKES_A_BLANK_LINE = (".py", ".c", ".h", ".ts", ".js", ".go", ".rs", ".java")
_SMALL_BYTES = range(200, 8000)


def again(setting: Setting) -> Iterator[Row]:
    """Compare `run` with nothing changed with a cold run before it."""
    for corpus in setting.corpora:
        tree = copy_without_git(corpus, setting.scratch / "tree")
        store = setting.scratch / "store"
        try:
            cold = setting.codebatch("run, cold", "run", tree, "--store", store, "--quiet", prepare=without(store))
            warm = setting.codebatch("run, again", "run", tree, "--store", store, "--quiet")
            first, second = alternate([cold, warm], setting.runs)
            # The larger of the two limits counts. It is expressed as a ratio so that one column can hold it.
            seconds = [usage.wall_s for usage in first]
            limit = max(_AGAIN_RATIO, _AGAIN_SECONDS / (sum(seconds) / len(seconds)))
            yield pair_row(
                "again",
                "run, nothing changed",
                corpus.name,
                ours=("codebatch run, again", second),
                theirs=("codebatch run, cold", first),
                target=Target(limit=round(limit, 3)),
            )
        finally:
            without(tree)()
            without(store)()


def edited(setting: Setting) -> Iterator[Row]:
    """Compare the CPU of `run` after one edited file, and after 500, with a cold run."""
    for corpus in setting.corpora:
        tree = copy_without_git(corpus, setting.scratch / "tree")
        store, fresh = setting.scratch / "store", setting.scratch / "fresh"
        try:
            sources = sorted(path for path in tree.rglob("*") if path.suffix in _TAKES_A_BLANK_LINE and path.is_file())
            spread_out = sources[:: max(1, len(sources) // _MANY_EDITED)][:_MANY_EDITED]
            answer(setting.codebatch("run", "run", tree, "--store", store, "--quiet"))
            for what, files in (
                ("one file", sources[len(sources) // 2 :][:1]),
                (f"{len(spread_out)} files", spread_out),
            ):
                cold = setting.codebatch("run, cold", "run", tree, "--store", fresh, "--quiet", prepare=without(fresh))
                warm = setting.codebatch("run", "run", tree, "--store", store, "--quiet", prepare=partial(_edit, files))
                ours, theirs = alternate([warm, cold], setting.runs)
                yield pair_row(
                    "edited",
                    f"run, {what} of {len(sources):,} sources edited",
                    corpus.name,
                    ours=("codebatch run, edited", ours),
                    theirs=("codebatch run, cold", theirs),
                    by="cpu",
                    target=_EDITED if len(files) == 1 or len(sources) > 10 * len(files) else None,
                )
        finally:
            for path in (tree, store, fresh):
                without(path)()


def _edit(files: Sequence[Path]) -> None:
    for path in files:
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n")


def ten_files(setting: Setting) -> Iterator[Row]:
    """Run over ten small files of a corpus, from an empty store to the first screen."""
    for corpus in setting.corpora:
        tree, store = setting.scratch / "ten", setting.scratch / "store"
        tree.mkdir()
        try:
            for index, path in enumerate(_some_small(corpus)):
                shutil.copy2(path, tree / f"{index}{path.suffix}")
            side = setting.codebatch("run", "run", tree, "--store", store, "--quiet", prepare=without(store))
            bare = Side(name="bare", command=[sys.executable, "-c", "pass"])
            ours, theirs = alternate([side, bare], setting.runs_of_short)
            yield figure_row(
                "ten-files",
                "run over ten small files, cold, whole process, wall",
                corpus.name,
                [usage.wall_s for usage in ours],
                "s",
                target=_TEN_FILES,
                peer=f"`python -c pass` {sorted(usage.wall_s for usage in theirs)[len(theirs) // 2]:.3f} s",
            )
            yield figure_row(
                "ten-files", "workers started", corpus.name, [workers_started(store)], "", target=_ONE_WORKER
            )
        finally:
            without(tree)()
            without(store)()


def _some_small(corpus: Corpus) -> list[Path]:
    """Return ten small source files, spread over a corpus: Python files if there are enough."""
    small = [path for path in sorted(corpus.root.rglob("*.*")) if path.is_file() and not path.is_symlink()]
    small = [path for path in small if path.stat().st_size in _SMALL_BYTES and ".git" not in path.parts]
    python = [path for path in small if path.suffix == ".py"]
    chosen = python if len(python) >= _TEN else small
    return chosen[:: max(1, len(chosen) // _TEN)][:_TEN]


def peers(setting: Setting) -> Iterator[Row]:
    """Compare a cold run with tools that people use for a part of its work. They do less, so there are no targets."""
    for corpus in setting.corpora:
        tree = copy_without_git(corpus, setting.scratch / "tree")
        store, old = setting.scratch / "store", setting.scratch / "old"
        try:
            ours = setting.codebatch("run, cold", "run", tree, "--store", store, "--quiet", prepare=without(store))
            rivals: list[tuple[str, Side]] = []
            for what, side in _rivals(setting, tree, old):
                if side is None:
                    yield SkippedRow(scenario="peers", what=what, why="it is not here")
                else:
                    rivals.append((what, side))
            usages = alternate([ours, *(side for _, side in rivals)], setting.runs)
            for (what, side), theirs in zip(rivals, usages[1:], strict=True):
                yield pair_row(
                    "peers", what, corpus.name, ours=("codebatch run, cold", usages[0]), theirs=(side.name, theirs)
                )
        finally:
            for path in (tree, store, old):
                without(path)()


def _rivals(setting: Setting, tree: Path, old: Path) -> Iterator[tuple[str, Side | None]]:
    ctags = shutil.which("ctags") or shutil.which("universal-ctags")
    command = [ctags or "", "-R", "-f", "/dev/null", "."]
    yield "full against tags alone", Side(name="ctags -R", command=command, cwd=tree) if ctags else None
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff), "check", "--isolated", "--no-cache", "--quiet", "."]
    lint = Side(name="ruff check, its defaults, all cores", command=command, cwd=tree, statuses=(0, 1))
    yield "full against lint alone", lint if ruff.exists() else None
    console = setting.old_codebatch / "bin/codebatch" if setting.old_codebatch else None
    name = "full against CodeBatch 1.0.2"
    yield name, _old_run(console, tree, old) if console is not None and console.exists() else None


def _old_run(console: Path, tree: Path, store: Path) -> Side:
    """Return a side that runs the same four tasks with CodeBatch 1.0.2, in the steps that it needs."""
    script = f"""
        set -e
        '{console}' init '{store}'
        '{console}' snapshot '{tree}' --store '{store}'
        snapshot=$(ls '{store}/snapshots' | head -1)
        '{console}' batch init --snapshot "$snapshot" --pipeline full --store '{store}'
        batch=$(ls '{store}/batches' | head -1)
        '{console}' run --batch "$batch" --store '{store}'
    """
    return Side(name="CodeBatch 1.0.2", command=["sh", "-c", script], prepare=without(store))
