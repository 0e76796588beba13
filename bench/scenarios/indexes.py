"""The index of a batch: its cost in a run, and a comparison with SQLite with the same five indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from bench.measuring import alternate
from bench.probes.index_beside_sqlite import Compared
from bench.rows import Row, Target, figure_row, pair_row
from bench.setting import Setting, answer, without
from bench.trees import Corpus, copy_without_git

RECORDS = (1_000_000, 10_000_000)


def index(setting: Setting) -> Iterator[Row]:
    """Measure a cold run with and without an index, then an index of copies of the first corpus."""
    for corpus in setting.corpora:
        yield _cost_of_a_run(setting, corpus)
    for records in RECORDS:
        yield from _beside_sqlite(setting, setting.corpora[0], records)


def _cost_of_a_run(setting: Setting, corpus: Corpus) -> Row:
    store, configured = setting.scratch / "store", setting.scratch / "codebatch.toml"

    def prepare(build: str) -> Callable[[], None]:
        def do() -> None:
            without(store)()
            configured.write_text(f'[index]\nbuild = "{build}"\n', encoding="utf-8")

        return do

    command = ("run", corpus.root, "--store", store, "--pipeline", "full", "--quiet")
    sides = [setting.codebatch(f"build = {build}", *command, prepare=prepare(build)) for build in ("run", "never")]
    try:
        usages = alternate(sides, setting.runs)
    finally:
        without(store)()
        configured.unlink(missing_ok=True)
    return pair_row(
        "index",
        "cold run",
        corpus.name,
        ours=(sides[0].name, usages[0]),
        theirs=(sides[1].name, usages[1]),
        by="cpu",
        target=Target(limit=1.08),
    )


def _beside_sqlite(setting: Setting, corpus: Corpus, records: int) -> Iterator[Row]:
    tree, store, database = (setting.scratch / name for name in ("tree", "store", "records.sqlite"))
    try:
        copies = 0
        done = 0
        while done < records:  # The first copy shows how many copies are needed.
            for copy in range(copies, copies + (1 if not done else -(-records * copies // done) - copies)):
                copy_without_git(corpus, tree / f"copy-{copy:03}")
                copies = copy + 1
            answer(setting.codebatch("run", "run", tree, "--store", store, "--pipeline", "full", "--quiet"))
            done = _compared(setting, store, database).records if copies == 1 else records
        turns = [_compared(setting, store, database) for _ in range(setting.runs)]
    finally:
        for path in (tree, store):
            without(path)()
        database.unlink(missing_ok=True)
    name = f"{corpus.name} x {copies}, {turns[0].records:,} records"
    yield from _rows(name, turns)


def _compared(setting: Setting, store: Path, database: Path) -> Compared:
    side = setting.probe("index beside sqlite", "index_beside_sqlite", store, database)
    return msgspec.json.decode(answer(side), type=Compared)


def _rows(corpus: str, turns: list[Compared]) -> Iterator[Row]:
    last = turns[-1]
    figures = (
        (
            "build from terms to sqlite, CPU",
            [comparison.index_cpu_s / comparison.sqlite_cpu_s for comparison in turns],
            0.2,
        ),
        ("keys to sqlite", [comparison.index_keys_s / comparison.sqlite_keys_s for comparison in turns], 1.0),
        (
            "prefixes to sqlite",
            [comparison.index_prefixes_s / comparison.sqlite_prefixes_s for comparison in turns],
            1.0,
        ),
        ("size to outputs", [last.index_bytes / last.outputs_bytes], 0.5),
        ("size of both to sqlite's", [(last.index_bytes + last.outputs_bytes) / last.sqlite_bytes], 0.2),
    )
    for what, values, limit in figures:
        yield figure_row("index", what, corpus, values, "x", target=Target(limit=limit))
    yield figure_row("index", "open", corpus, [1000 * comparison.index_open_s for comparison in turns], "ms")
