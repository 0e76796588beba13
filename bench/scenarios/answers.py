"""Queries of a full run: in one process compared with SQLite with like indexes, then as processes compared with rg."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.measuring import Side, alternate
from bench.probes.answers import Answers
from bench.rows import Row, SkippedRow, Target, figure_row, pair_row
from bench.setting import Setting, answer, without
from bench.trees import Corpus

_SCAN = 3.0
_OF_FILES = 0.2
_SOURCE = "issue 13"


def answers(setting: Setting) -> Iterator[Row]:
    """Compare look-ups, counts and scattered records with SQLite, a scan with rg, a definition with readtags."""
    for corpus in setting.corpora:
        store = setting.scratch / "store"
        try:
            answer(setting.codebatch("run", "run", corpus.root, "--store", store, "--quiet"))
            answer(setting.codebatch("index", "index-build", "--store", store, "--quiet"))
            yield from _beside_sqlite(setting, corpus, store)
            yield from _beside_readtags(setting, corpus, store)
            shutil.rmtree(store / "indexes")
            yield from _beside_rg(setting, corpus, store)
        finally:
            without(store)()


def _beside_sqlite(setting: Setting, corpus: Corpus, store: Path) -> Iterator[Row]:
    database = setting.scratch / "records.sqlite"
    side = setting.probe("answers", "answers", store, database, str(setting.runs), prepare=lambda: _remove(database))
    measured = msgspec.json.decode(answer(side), type=Answers)
    _remove(database)
    name = f"{corpus.name}, {measured.records:,} records"
    for question in measured.compared:
        ratios = [ours / theirs for ours, theirs in zip(question.ours, question.sqlite, strict=True)]
        target = None if question.limit is None else Target(limit=question.limit, source=_SOURCE)
        times = f"{_ms(question.ours)} against {_ms(question.sqlite)}"
        yield figure_row("answers", question.what, name, ratios, "x sqlite", target=target, note=times)
    size = measured.ours_bytes / measured.sqlite_bytes
    yield figure_row(
        "answers", "outputs and index", name, [size], "x sqlite", target=Target(limit=_OF_FILES, source=_SOURCE)
    )


def _beside_rg(setting: Setting, corpus: Corpus, store: Path) -> Iterator[Row]:
    if shutil.which("rg") is None or shutil.which("zstdcat") is None:
        yield SkippedRow(scenario="answers", what="a scan", why="rg or zstdcat is not installed")
        return
    shard_files = f"{shlex.quote(str(store))}/batches/*/outputs/*/*/*.zst"
    theirs = Side(
        name="zstdcat to rg", command=["sh", "-c", f'zstdcat {shard_files} | rg -c \'"name":"main"\''], statuses=(0, 1)
    )
    for what, words in (
        ("a name, without index", ["query", "outputs", "--name", "main"]),
        ("a part of a path", ["query", "outputs", "--path", "tests/test_a", "--count"]),
        ("a condition", ["query", "outputs", "--where", 'name == "main" and line > 9']),
    ):
        ours = setting.codebatch(" ".join(words), *words, "--json", "--quiet", "--store", store)
        turns = alternate([ours, theirs], setting.runs)
        yield pair_row(
            "answers", f"scan: {what}", corpus.name, ours=(ours.name, turns[0]), theirs=(theirs.name, turns[1]),
            target=Target(limit=_SCAN, source=_SOURCE),
        )  # fmt: skip


def _beside_readtags(setting: Setting, corpus: Corpus, store: Path) -> Iterator[Row]:
    if shutil.which("readtags") is None or shutil.which("ctags") is None:
        yield SkippedRow(scenario="answers", what="a definition", why="readtags is not installed")
        return
    tags = setting.scratch / "tags"
    answer(Side(name="ctags", command=["ctags", "-R", "-f", str(tags), str(corpus.root)]))
    ours = setting.codebatch("def main", "def", "main", "--quiet", "--store", store)
    theirs = Side(name="readtags main", command=["readtags", "-t", str(tags), "main"])
    turns = alternate([ours, theirs], setting.runs_of_short)
    _remove(tags)
    yield pair_row("answers", "a definition", corpus.name, ours=(ours.name, turns[0]), theirs=(theirs.name, turns[1]))


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _ms(seconds: list[float]) -> str:
    return f"{1000 * sorted(seconds)[len(seconds) // 2]:.2f} ms"
