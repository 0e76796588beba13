"""Tests of metrics in two trees: a change for the worse is reported at its function."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from codebatch.compare.metrics import compare_metrics, is_worse_when_more
from codebatch.compare.states import ChangeState
from codebatch.model.record import Metric
from tests.compare.trees import TextTrees, fields

_TEXT = "a\nb\nc\nd\n"

# Metric, value, symbol and line of each metric.
Numbers = list[tuple[str, int, str, int]]


def _file_metric(metric: str, value: int) -> tuple[str, int, str, int]:
    return metric, value, "", 1


def _metrics(path: str, numbers: Numbers) -> list[Metric]:
    return [
        Metric(path=path, metric=metric, value=value, symbol=symbol, line=line)
        for metric, value, symbol, line in numbers
    ]


def _states(trees: TextTrees, old: Mapping[str, Numbers], new: Mapping[str, Numbers]) -> list[tuple[object, ...]]:
    sides = [{path.encode(): _metrics(path, numbers) for path, numbers in side.items()} for side in (old, new)]
    rows = compare_metrics(sides[0], sides[1], trees)
    return [(row.state, fields(row.old, "value", "line"), fields(row.new, "value", "line")) for row in rows]


_FUNCTION_METRIC = ("complexity", 4, "f", 2)


@pytest.mark.parametrize(
    ("old", "new", "states"),
    [
        ([_FUNCTION_METRIC], [("complexity", 5, "f", 3)], ["worsened"]),
        ([("complexity", 5, "f", 3)], [_FUNCTION_METRIC], ["improved"]),
        ([_FUNCTION_METRIC], [("complexity", 4, "f", 9)], ["unchanged"]),
        # A new function does not count as worse.
        ([_FUNCTION_METRIC], [_FUNCTION_METRIC, ("complexity", 40, "g", 9)], ["unchanged", "added"]),
        ([_FUNCTION_METRIC], [], ["removed"]),
        # A missing metric is 0 if the others are present.
        ([_FUNCTION_METRIC], [_FUNCTION_METRIC, ("cognitive", 3, "f", 2)], ["unchanged", "worsened"]),
        ([_FUNCTION_METRIC, ("nesting", 3, "f", 2)], [_FUNCTION_METRIC], ["unchanged", "improved"]),
        ([("mine", 3, "f", 2)], [("mine", 2, "f", 2)], ["changed"]),
        ([("mine", 3, "f", 2)], [_FUNCTION_METRIC], ["removed", "added"]),
        # Sums over a file measure its size.
        ([_file_metric("complexity", 3)], [_file_metric("complexity", 9)], ["changed"]),
        ([_file_metric("max_complexity", 3)], [_file_metric("max_complexity", 9)], ["worsened"]),
        (
            [_file_metric("functions", 3)],
            [_file_metric("functions", 3), _file_metric("max_nesting", 2)],
            ["unchanged", "worsened"],
        ),
        ([], [_file_metric("duplicated_lines", 12)], ["worsened"]),
        ([_file_metric("dependents", 12)], [], ["changed"]),
        # A file that became too large to be parsed did not improve.
        (
            [_file_metric("functions", 3), _file_metric("max_nesting", 2)],
            [_file_metric("code", 9)],
            ["removed", "removed", "added"],
        ),
    ],
)
def test_metric_change_has_the_expected_state(old: Numbers, new: Numbers, states: list[ChangeState]) -> None:
    trees = TextTrees({"a.py": _TEXT}, {"a.py": _TEXT})
    assert [row[0] for row in _states(trees, {"a.py": old}, {"a.py": new})] == states


def test_zero_metric_has_a_location_on_both_sides() -> None:
    trees = TextTrees({"a.py": _TEXT}, {"b.py": _TEXT + "\n"})
    old: Numbers = [_FUNCTION_METRIC, ("nesting", 3, "f", 2)]
    new: Numbers = [("complexity", 4, "f", 7), _file_metric("max_cognitive", 2)]
    assert _states(trees, {"a.py": old}, {"b.py": new}) == [
        ("worsened", (0, 1), (2, 1)),
        ("unchanged", (4, 2), (4, 7)),
        ("improved", (3, 2), (0, 7)),
    ]


def test_functions_of_the_same_name_are_matched_by_their_lines() -> None:
    trees = TextTrees({"a.js": "a\nb\nc"}, {"a.js": "new\na\nb\nc"})
    old: Numbers = [("complexity", 9, "<anonymous>", 1), ("complexity", 2, "<anonymous>", 3)]
    new: Numbers = [
        ("complexity", 1, "<anonymous>", 1),
        *((name, value, symbol, line + 1) for name, value, symbol, line in old),
    ]
    assert _states(trees, {"a.js": old}, {"a.js": new}) == [
        ("unchanged", (9, 1), (9, 2)),
        ("unchanged", (2, 3), (2, 4)),
        ("added", None, (1, 1)),
    ]
    assert [
        row[0]
        for row in _states(TextTrees({"a.js": "new\na\nb\nc"}, {"a.js": "a\nb\nc"}), {"a.js": new}, {"a.js": old})
    ] == [
        "unchanged",
        "unchanged",
        "removed",
    ]


def test_remaining_function_of_the_same_name_is_matched_by_its_body() -> None:
    first, second = "def f(x):\n    if x: return 1\n    return 2\n", "def f(x):\n    return 1\n"
    two: Numbers = [("complexity", 2, "f", 1), ("complexity", 1, "f", 4)]
    one: Numbers = [("complexity", 1, "f", 1)]
    trees, back = (
        TextTrees({"a.py": first + second}, {"a.py": second}),
        TextTrees({"a.py": second}, {"a.py": first + second}),
    )
    assert _states(trees, {"a.py": two}, {"a.py": one}) == [("unchanged", (1, 4), (1, 1)), ("removed", (2, 1), None)]
    assert _states(back, {"a.py": one}, {"a.py": two}) == [("unchanged", (1, 1), (1, 4)), ("added", None, (2, 1))]


def test_metrics_follow_a_moved_file() -> None:
    trees = TextTrees({"a.py": _TEXT, "gone.py": "g"}, {"b.py": _TEXT, "new.py": "n"})
    old: dict[str, Numbers] = {"a.py": [_file_metric("max_nesting", 2)], "gone.py": [_file_metric("max_nesting", 2)]}
    new: dict[str, Numbers] = {"b.py": [_file_metric("max_nesting", 3)], "new.py": [_file_metric("max_nesting", 2)]}
    assert [row[0] for row in _states(trees, old, new)] == ["worsened", "removed", "added"]


def test_function_metric_of_a_whole_file_is_not_worse_when_more() -> None:
    assert is_worse_when_more(Metric(path="a", metric="complexity", value=1, symbol="f"))
    assert not is_worse_when_more(Metric(path="a", metric="complexity", value=1))


# The path, symbol, complexity and body of a function.
_Function = tuple[str, str, int, str]


@pytest.mark.parametrize(
    ("old", "new", "states"),
    [
        # Put into a class, renamed with its class, renamed itself, moved to another file.
        ([("a", "f", 9, "abc")], [("a", "C.f", 9, "abc")], ["unchanged"]),
        ([("a", "C.f", 9, "abcd")], [("a", "D.f", 12, "abcx")], ["worsened"]),
        ([("a", "f", 9, "abc")], [("a", "g", 9, "abc")], ["unchanged"]),
        ([("a", "f", 9, "abc")], [("b", "f", 9, "abc")], ["unchanged"]),
        ([("a", "f", 9, "abcd")], [("b", "f", 7, "abcx")], ["improved"]),
        # Another function of the same name, or of another name and with an edited body.
        ([("a", "C.run", 9, "abcd")], [("a", "D.run", 12, "axyz")], ["added", "removed"]),
        ([("a", "C.run", 9, "ab")], [("a", "D.run", 12, "abvwxyz")], ["added", "removed"]),
        ([("a", "f", 9, "abcd")], [("a", "g", 12, "abcx")], ["added", "removed"]),
        # Unknown bodies prove nothing.
        ([("a", "f", 9, "")], [("b", "f", 9, "")], ["added", "removed"]),
        # A copy of an existing function is new.
        ([("a", "f", 9, "abc")], [("a", "f", 9, "abc"), ("b", "f", 9, "abc")], ["added", "unchanged"]),
        # Equal bodies must be unique; the name in the same file then decides.
        (
            [("a", "C.f", 1, "a"), ("a", "C.g", 1, "a")],
            [("a", "D.f", 1, "a"), ("a", "D.g", 1, "a"), ("b", "f", 1, "a")],
            ["added", "unchanged", "unchanged"],
        ),
        ([("a", "f", 1, "a")], [("a", "g", 1, "a"), ("a", "h", 1, "a")], ["added", "added", "removed"]),
    ],
)
def test_moved_function_is_compared_with_its_old_place(
    old: list[_Function], new: list[_Function], states: list[ChangeState]
) -> None:
    trees = TextTrees({"a": _TEXT, "b": "other\n"}, {"a": _TEXT, "b": "other\n"})
    bodies = {
        (side, path.encode(), symbol): [*map(str.encode, body)]
        for side, functions in (("old", old), ("new", new))
        for path, symbol, _, body in functions
    }
    sides: list[dict[bytes, list[Metric]]] = []
    for functions in (old, new):
        by_path: dict[bytes, list[Metric]] = {}
        for line, (path, symbol, value, _) in enumerate(functions, 1):
            by_path.setdefault(path.encode(), []).extend(_metrics(path, [("complexity", value, symbol, line)]))
        sides.append(by_path)
    rows = compare_metrics(
        sides[0], sides[1], trees, lambda function: bodies[function.side, function.path, function.symbol]
    )
    assert sorted(row.state for row in rows) == states
