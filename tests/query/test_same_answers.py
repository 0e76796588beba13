"""Test that queries of three real codebases have the same answers with 1 worker and 3, and with any index or none.

The queries are generated from the records. `CODEBATCH_TEST_QUESTIONS` sets their number for each codebase.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import codebatch
from codebatch.cli.framework.record_types import RECORD_TYPES_BY_NOUN
from codebatch.errors import CodebatchError, InvalidInput
from codebatch.model.record import RECORD_KINDS
from codebatch.operations.api.batch import Batch
from codebatch.operations.api.record_queries import Records
from codebatch.operations.queries.batch_query import Answer
from codebatch.query.fields import JsonRecord
from tests.support import corpora
from tests.support.command_line import CommandLine

pytestmark = [pytest.mark.slow, pytest.mark.corpus]

QUESTIONS = int(os.environ.get("CODEBATCH_TEST_QUESTIONS", "25"))
CONFIGURED = '[index]\nbuild = "{}"\n[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n'

# The directory, its file that is edited, and the text appended to that file.
CODEBASES: dict[str, tuple[Callable[[], Path], str, bytes]] = {
    "python": (
        lambda: corpora.sdist("Flask", "3.0.3") / "src", "flask/signals.py", b"\n\ndef f_new():\n    return abort(4)\n"
    ),
    "typescript": (
        lambda: corpora.npm("zod", "3.23.8") / "lib", "helpers/parseUtil.d.ts", b"\nexport declare const f_new: util;\n"
    ),
    "rust": (
        lambda: corpora.sdist("tokenizers", "0.13.3") / "tokenizers-lib" / "src", "utils/iter.rs",
        b"\nfn f_new() -> u8 { std::mem::drop(1); 2 }\n",
    ),
}  # fmt: skip
OWN = {"diagnostic": ("severity", "code", "tool"), "symbol": ("name", "symbol_type"), "metric": ("metric",)}
"""Filters that only records of a kind have."""


class Batches:
    """Batches grouped by state of a tree, and the records of the last state.

    Batches of a group must give equal answers.

    Records of the edited file are repeated until they are half of all, because overlays contain them.
    """

    def __init__(self, states: Sequence[Sequence[Batch]], edited: str, notes: list[str]) -> None:
        self.states, self.notes = states, notes
        self.rows: dict[object, list[JsonRecord]] = {}
        for row in states[-1][0].outputs().result:
            self.rows.setdefault(row["kind"], []).append(row)
        for rows in self.rows.values():
            edited_rows = [row for row in rows if row.get("path") == edited]
            rows += edited_rows * (len(rows) // max(len(edited_rows), 1))


@pytest.fixture(scope="module", params=CODEBASES)
def batches(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Batches:
    directory = tmp_path_factory.mktemp(request.param)
    corpus, edited, added = CODEBASES[request.param]
    tree = directory / "tree"
    shutil.copytree(corpus(), tree)
    for jobs, build in ((1, "never"), (3, "run")):
        place = directory / str(jobs)
        place.mkdir()
        (place / "codebatch.toml").write_text(CONFIGURED.format(build), encoding="utf-8")
    _run(directory)
    path = tree / edited
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + added)
    _run(directory)
    assert list((directory / "3" / "store" / "indexes").glob("*/*/overlay-*"))
    shutil.copytree(directory / "3" / "store", directory / "anew", symlinks=True)
    for batch in ("latest~1", "latest"):
        CommandLine(directory)("index-build", "--rebuild", "--batch", batch, "--store", "anew", "-q")
    notes: list[str] = []
    stores = [
        codebatch.open(directory / place, project=directory / "tree", note=notes.append)
        for place in ("1/store", "3/store", "anew")
    ]
    # Without `partial`, an answer that may lack uses would be an error.
    states = [[store.batch(batch, partial=True) for store in stores] for batch in ("latest~1", "latest")]
    return Batches(states, edited, notes)


def _run(directory: Path) -> None:
    for jobs in (1, 3):
        arguments = ("run", "../tree", "--store", "store", "--pipeline", "full", "-j", str(jobs), "-q")
        CommandLine(directory)(*arguments, cwd=directory / str(jobs))


class QueryGenerator:
    """A generator of random queries about existing records."""

    def __init__(self, rows: Mapping[object, Sequence[JsonRecord]], chance: random.Random) -> None:
        self._rows = rows
        self._random = chance

    def ask(self) -> tuple[str, dict[str, object]]:
        """Return a method of a batch and its arguments."""
        return self._other() if self._happens(0.2) else self._noun(self._random.choice(sorted(RECORD_TYPES_BY_NOUN)))

    def _other(self) -> tuple[str, dict[str, object]]:
        row, limit, kind = self._row("symbol"), self._random.choice([None, 1, 2, 10]), self._several(RECORD_KINDS)
        metric, target = self._row("metric")["metric"], self._row("edge")["target"]
        by = ["kind", "code", "severity", "lang", "path", "file", "dir", f"metric:{metric}"]
        arguments_by_method: dict[str, dict[str, object]] = {
            "definitions": {"name": row[self._random.choice(["name", "qualified"])]},
            "callers": {"name": self._random.choice([row["name"], target])},
            "outline": {"path": row["path"]},
            "impact": {"path": row["path"], "depth": limit},
            "top": {"by": self._random.choice(by), "limit": limit},
            "inspect": {"path": row["path"], "kind": kind},
            "inspect_line": {"path": row["path"], "line": row["line"], "kind": kind},
            **{name: {} for name in ("summary", "errors", "imports", "import_cycles")},
        }
        method = self._random.choice(list(arguments_by_method))
        return method, arguments_by_method[method]

    def _noun(self, noun: str) -> tuple[str, dict[str, object]]:
        """Return a query with up to three filters that match a record, and a shape."""
        kinds = [kind for kind in self._rows if f"{kind}s" == noun] or list(self._rows)
        row = self._row(self._random.choice(kinds))
        names = ["path", "lang", "task", *["where"] * 3, *OWN.get(str(row["kind"]), ()) * 2]
        if noun in ("outputs", "stats"):
            names.append("kind")
        elif noun != f"{row['kind']}s":
            row, names = {"path": row["path"]}, ["path", "lang", "task", "where"]
        chosen = {self._random.choice(names) for _ in range(3)}
        filters = {name: self._filter(name, row) for name in sorted(chosen) if self._happens(0.6)}
        fields = [*row, "dir", *["lang"] * self._happens(0.1)]
        if noun == "stats":
            return noun, {**filters, "by": self._random.choice(fields)}
        shape: dict[str, object] = {
            "sort": self._random.choice(["", "-"]) + self._random.choice(fields),
            "limit": self._random.randrange(1, 40),
            "offset": self._random.randrange(10),
            "fields": self._several(fields),
        }
        return noun, {**filters, **{name: value for name, value in shape.items() if self._happens(0.3)}}

    def _filter(self, name: str, row: JsonRecord) -> object:
        match name:
            case "where":
                return self._condition(row)
            case "path":
                path, start = str(row["path"]), self._random.randrange(9)
                return self._random.choice(
                    [path, path[start : start + 9], path[:start].upper(), f"*{path[-4:]}", "[a-m]*"]
                )
            case "lang":
                return self._several([str(file["lang"]) for file in self._rows["file"]])
            case "task":
                return self._random.choice(
                    ["symbols", "symbols", "lint", "analyze", "parse", "duplicates", "dependencies"]
                )
            case "code" | "name":
                text, other_text = str(row[name]), str(self._row(row["kind"])[name])
                return self._random.choice(
                    [text, f"{text[:3]}*", [text, other_text], [f"{other_text[:2]}*", text], "nope"]
                )
            case _:
                return self._several([str(row[name]), str(self._row(row["kind"])[name])])

    def _condition(self, row: JsonRecord) -> str:
        condition = " and ".join(self._comparison(row) for _ in range(self._random.choice([1, 2, 2, 3])))
        match self._random.randrange(8):
            case 0:
                return f"not ({condition})"
            case 1:
                return f"({condition}) or {self._comparison(row)}"
            case _:
                return condition

    def _comparison(self, row: JsonRecord) -> str:
        field = self._random.choice([name for name, value in row.items() if not isinstance(value, list)])
        value, name = row[field], "class_" if field == "class" else field
        if isinstance(value, str) and field != "kind" and self._happens(0.1):
            return f"{value[:3]!r} in {name}"
        sign = self._random.choice(["==", "!=", "<=", ">"]) if isinstance(value, int) or self._happens(0.1) else "=="
        return f"{name} {sign} {value!r}"

    def _row(self, kind: object) -> JsonRecord:
        return self._random.choice(self._rows[kind])

    def _several(self, texts: Sequence[str]) -> object:
        return self._random.choice([self._random.choice(texts), [self._random.choice(texts) for _ in range(2)]])

    def _happens(self, share: float) -> bool:
        return self._random.random() < share


def _answered(batch: Batch, method: str, arguments: Mapping[str, object]) -> bytes:
    try:
        answer: Answer[object] = getattr(batch, method)(**arguments)
        result = [*answer.result] if isinstance(answer, Records) else answer.result
        return msgspec.json.encode((result, answer.completeness)).replace(batch.id.encode(), b"")
    except InvalidInput as error:
        return f"{error.message}; {error.hint}".encode()
    except CodebatchError as error:
        pytest.fail(f"{method} {arguments}: {error}")


@settings(max_examples=QUESTIONS, deadline=None, database=None, phases=[Phase.generate])
@given(chance=st.randoms(use_true_random=True))
def test_answers_are_the_same_for_any_workers_and_any_index(batches: Batches, chance: random.Random) -> None:
    method, arguments = QueryGenerator(batches.rows, chance).ask()
    for state in batches.states:
        answers = []
        for batch in state:
            answers.append((_answered(batch, method, arguments), [*batches.notes]))
            batches.notes.clear()
        assert answers[1:] == answers[:-1], f"{method} {arguments}"
