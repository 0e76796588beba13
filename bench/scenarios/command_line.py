"""Short commands as whole processes, compared with an interpreter that imports their indispensable packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measuring import Side, Usage, alternate
from bench.rows import Row, Target, pair_row
from bench.setting import Setting, answer, without
from bench.trees import Corpus

_HELP = Target(limit=1.5)
_QUERY = Target(limit=2.0)
_IMPORTS_OF_HELP = "import click"
_IMPORTS_OF_QUERIES = "import click, msgspec, lmdb, zstandard"


def command_line(setting: Setting) -> Iterator[Row]:
    """Measure `--help`, then queries of a store that contains a full run of each corpus and its index."""
    ours = setting.codebatch("--help", "--help")
    usages = alternate([ours, _imports(_IMPORTS_OF_HELP)], setting.runs_of_short)
    yield _row("--help", "-", usages, _IMPORTS_OF_HELP, _HELP)
    for corpus in setting.corpora:
        store = setting.scratch / "store"
        try:
            answer(setting.codebatch("run", "run", corpus.root, "--store", store, "--quiet"))
            answer(setting.codebatch("index", "index-build", "--store", store, "--quiet"))
            questions = _questions(corpus, store)
            sides = [setting.codebatch(name, *arguments) for name, arguments in questions]
            turns = alternate([*sides, _imports(_IMPORTS_OF_QUERIES)], setting.runs_of_short)
            for side, usages_of_side in zip(sides, turns, strict=False):
                yield _row(side.name, corpus.name, [usages_of_side, turns[-1]], _IMPORTS_OF_QUERIES, _QUERY)
        finally:
            without(store)()


def _questions(corpus: Corpus, store: Path) -> list[tuple[str, list[str]]]:
    where = ["--store", str(store)]
    file = next(path for path in sorted(corpus.root.rglob("*.*")) if path.is_file() and ".git" not in path.parts)
    name = str(file.relative_to(corpus.root))
    return [
        ("query diagnostics --json --limit 1", ["query", "diagnostics", "--json", "--limit", "1", *where]),
        ("query symbols --name main", ["query", "symbols", "--name", "main", *where]),
        ("def main", ["def", "main", *where]),
        ("impact FILE", ["impact", name, *where]),
        ("inspect FILE", ["inspect", name, *where]),
        ("hotspots", ["hotspots", *where]),
        ("findings", ["findings", *where]),
        ("duplicates", ["duplicates", *where]),
        ("status", ["status", *where]),
        ("summary", ["summary", *where]),
    ]


def _imports(statement: str) -> Side:
    return Side(name=f"python -c '{statement}'", command=[sys.executable, "-c", statement])


def _row(name: str, corpus: str, usages: list[list[Usage]], peer: str, target: Target) -> Row:
    return pair_row(
        "command-line",
        name,
        corpus,
        ours=(f"codebatch {name}", usages[0]),
        theirs=(f"python -c '{peer}'", usages[1]),
        target=target,
    )
