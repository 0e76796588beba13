"""Findings that several tasks report: one record of the first task, in every command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from codebatch.errors import StoreCorrupt
from codebatch.index.keys import TermLookup
from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.record import Diagnostic, Metric
from codebatch.query.sources.repeated_findings import (
    MergingSource,
    merge_repeated_findings,
    merging_source,
    source_of_task,
    unmerged_source,
)
from codebatch.query.sources.sources import EmptySource, ShardRecords


def line(severity: str = "warning", **members: object) -> bytes:
    """Return the line of a finding in a.py, with other members. A member None is omitted."""
    about = {"path": "a.py", "line": 1, "column": 2, "end_line": 1, "end_column": 3, "code": "C", "message": "m"}
    given = {**about, "tool": "t", "severity": severity, **members}
    finding = msgspec.convert({name: value for name, value in given.items() if value is not None}, Diagnostic)
    return msgspec.json.encode(finding) + b"\n"


METRIC = msgspec.json.encode(Metric(path="a.py", metric="lines", value=1)) + b"\n"


def test_equal_findings_are_one_with_the_most_severe_severity() -> None:
    lines = {
        "lint": METRIC + line() + line(code="D"),
        "b": line("hint", code="E") + line("hint", tool="u"),
        "c": line("error") + METRIC,
    }
    assert merge_repeated_findings(lines) == {
        "lint": METRIC + line("error", also=["b", "c"]) + line(code="D"),
        "b": line("hint", code="E"),
        "c": METRIC,
    }


@pytest.mark.parametrize(
    "members",
    [
        {"path": "b.py"},
        {"path": None, "path_b64": "/w=="},
        {"line": 2},
        {"column": 1},
        {"end_line": 2},
        {"end_column": 4},
        {"code": "D"},
        {"message": "n"},
    ],
)
def test_findings_that_differ_are_not_merged(members: dict[str, Any]) -> None:
    lines = {"lint": line(), "b": line(**members)}
    assert merge_repeated_findings(lines) == lines


def test_equal_findings_of_one_task_are_not_merged() -> None:
    lines = {"lint": line() + line() + line("error"), "b": line("error", code="D")}
    assert merge_repeated_findings(lines) == lines
    assert merge_repeated_findings({"lint": line() * 2, "b": line()})["b"] == b""


class Shards(EmptySource):
    """A source with the lines of each task and shard. `reads` are the pieces that were read."""

    def __init__(self, lines: Mapping[str, Sequence[bytes]]) -> None:
        super().__init__("shards")
        self.task_names = tuple(lines)
        self.reads: list[tuple[str, int]] = []
        self._lines = lines

    def iter_pieces(self, task: str, lookups: Sequence[TermLookup] = ()) -> Iterator[ShardRecords]:
        for index, lines in enumerate(self._lines[task]):
            yield ShardRecords(count_lines(lines), partial(self._read, task, index, lines), task)

    def _read(self, task: str, index: int, lines: bytes) -> Iterator[bytes]:
        self.reads.append((task, index))
        yield lines

    def item_lines(self, task: str, item: int) -> bytes | None:
        return self._lines[task][item]


SHARDS = {
    "parse": [line(code="P")] * 3,
    "lint": [line(), line(), b""],
    "b": [line("error"), line(code="D"), line()],
}


def test_only_shards_with_a_shared_rule_are_read() -> None:
    shards = Shards(SHARDS)
    source = merging_source(shards)
    assert isinstance(source, MergingSource)
    counts = {task: [piece.counts for piece in source.iter_pieces(task)] for task in SHARDS}
    assert shards.reads == [("lint", 0), ("b", 0)]
    assert counts == {
        "parse": [count_lines(line(code="P"))] * 3,
        "lint": [count_lines(line("error")), count_lines(line()), count_lines(b"")],
        "b": [count_lines(b""), count_lines(line(code="D")), count_lines(line())],
    }
    pieces = {task: [b"".join(piece.read()) for piece in source.iter_pieces(task)] for task in SHARDS}
    assert pieces == {**SHARDS, "lint": [line("error", also=["b"]), line(), b""], "b": [b"", line(code="D"), line()]}
    assert [piece.uncovered_inputs for piece in source.iter_pieces("lint")] == ["lint"] * 3
    assert (source.item_lines("lint", 0), source.item_lines("b", 0)) == (line("error", also=["b"]), b"")
    assert [source.item_lines("b", item) for item in (1, 2)] == [line(code="D"), line()]
    assert [source.merges(task) for task in SHARDS] == [False, True, True]
    assert unmerged_source(source) is shards
    assert [source_of_task(source, task) is shards for task in SHARDS] == [False, True, True]


def test_only_requested_tasks_are_merged() -> None:
    shards = Shards({**SHARDS, "c": [line()] * 3})
    source = merging_source(shards, {"parse", "b", "c"})
    pieces = {task: [b"".join(piece.read()) for piece in source.iter_pieces(task)] for task in shards.task_names}
    assert pieces["lint"] == SHARDS["lint"]
    assert (pieces["b"][0], pieces["c"]) == (line("error", also=["c"]), [b"", line(), b""])
    assert merging_source(shards, {"parse", "lint"}) is shards


@pytest.mark.parametrize("names", [["parse", "lint"], []])
def test_built_in_tasks_are_not_merged(names: list[str]) -> None:
    shards = Shards({name: [line()] for name in names})
    assert merging_source(shards) is shards


def test_damaged_line_is_an_error() -> None:
    shards = Shards({"a": [line()], "b": [line().replace(b'"line":1', b'"line":"x"')]})
    with pytest.raises(StoreCorrupt):
        list(merging_source(shards).iter_pieces("a"))
