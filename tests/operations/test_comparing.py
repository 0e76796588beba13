"""Tests of comparisons of two batches of real trees: new and fixed findings, and none in unchanged code."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

import codebatch
from codebatch.compare.differences import Change
from codebatch.compare.matching import trees
from codebatch.compare.matching.lines import SplitText, split_text
from codebatch.compare.matching.trees import TreeComparison
from codebatch.errors import BatchIncomplete, InvalidInput, NothingToDo, ObjectMissing
from codebatch.model.record import Diagnostic
from codebatch.operations.api.batch import Batch, compare_batches
from codebatch.operations.api.store import Store
from codebatch.operations.comparison.comparison import CHANGE_STATES, Comparison
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords
from tests.operations.histories import History
from tests.support.inline_workers import inline, run

_BEFORE = {
    "edited.py": "import os\nimport sys, re\n\ndef f(x=[]):\n    return x is 1\n",
    "gone.py": "import os\n",
    "moved.py": "import q\ndef h(y):\n    try:\n        y == 1\n    except:\n        pass\n    return y is 'a'\n",
    "untouched.py": "import os\n",
}
_AFTER = {
    "edited.py": "# A line more.\nimport os\nimport sys\n\ndef f(x=[]):\n    y == 3\n    return x is 1\n",
    "new/place.py": f"{_BEFORE['moved.py']}\nimport os\n",
    "untouched.py": "import os\n",
}

Row = tuple[str, str | None, str, int | None, int | None, str]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with a batch of each of the two trees."""
    tree = tmp_path_factory.mktemp("compared")
    (tree / ".git").mkdir()
    for files in (_BEFORE, _AFTER):
        _run(tree, files)
    with codebatch.open(tree / ".codebatch", project=tree) as opened:
        yield opened


def _run(tree: Path, files: Mapping[str, str | None], part: str = ".") -> None:
    """Make the tree contain exactly these files, and run it or a part of it."""
    for path in tree.rglob("*"):
        if path.is_file() and ".codebatch" not in path.parts and ".git" not in path.parts:
            path.unlink()
    for name, text in files.items():
        if text is not None:
            (tree / name).parent.mkdir(exist_ok=True, parents=True)
            (tree / name).write_text(text)
    with inline():
        run(tree / part, tree / ".codebatch", configured=tree, pipeline="full")


def _compare(
    store: Store, old: str = "latest~1", new: str = "latest", record_filter: RecordFilter | None = None
) -> Comparison:
    return compare_batches(store.batch(old), store.batch(new), record_filter=record_filter)


def _rows(changes: Iterator[Change]) -> list[Row]:
    return [_row(change) for change in changes]


def _row(change: Change) -> Row:
    about = change.new or change.old
    assert isinstance(about, Diagnostic)
    assert isinstance(about.path, str)
    old, new = (side.line if isinstance(side, Diagnostic) else None for side in (change.old, change.new))
    return change.state, change.by, about.path, old, new, about.code


_ROWS: list[Row] = [
    ("fixed", None, "edited.py", 2, None, "F401"),
    ("moved", "message", "edited.py", 2, 3, "F401"),
    ("new", None, "edited.py", None, 6, "B015"),
    ("new", None, "edited.py", None, 6, "F821"),
    ("removed", None, "gone.py", 1, None, "F401"),
    ("moved", "line", "new/place.py", 1, 1, "F401"),
    ("moved", "line", "new/place.py", 5, 5, "E722"),
    ("moved", "line", "new/place.py", 7, 7, "F632"),
    ("new", None, "new/place.py", None, 9, "F401"),
]


def test_comparison_reports_only_changed_findings(store: Store) -> None:
    """Findings below an added line and in an unchanged file are unchanged."""
    comparison = _compare(store)
    assert _rows(comparison.differences()) == _ROWS
    assert {state: number for state, number in comparison.counts.items() if number} == {
        "fixed": 1, "moved": 4, "new": 3, "removed": 1, "unchanged": 3,
    }  # fmt: skip


def test_comparison_of_a_batch_with_itself_has_no_differences(store: Store) -> None:
    comparison = _compare(store, "latest", "latest")
    assert not [*comparison.differences()]
    assert {state for state, number in comparison.counts.items() if number} == {"unchanged"}


def test_comparison_filter_applies_to_both_batches(store: Store) -> None:
    comparison = _compare(store, record_filter=RecordFilter(codes=("F401",)))
    assert _rows(comparison.differences()) == [row for row in _ROWS if row[-1] == "F401"]
    assert comparison.counts["unchanged"] == 2


def test_lines_of_a_moved_file_are_matched(store: Store) -> None:
    comparison = _compare(store)
    assert [*(comparison.lines(b"new/place.py") or ())][:9] == [0, 1, 2, 3, 4, 5, 6, 7, -1]
    assert [*(comparison.lines(b"edited.py") or ())][:6] == [-1, 0, -1, 2, 3, -1]


_X = "import os\nx = 1\n"
_RULE_OFF = '[tasks.lint]\noff = ["F401"]\n'
_OFF_BELOW = '[[tasks.lint.paths]]\nmatch = ["new/"]\noff = ["F401"]\n'
_CUSTOM_TASK = "[tasks.own]\npython = 'own.py:task'\n"
_RAISES = "def task(file):\n    raise ValueError\n"
_REPORTS = """from codebatch_workers.api import Diagnostic

def task(file):
    if file.path != b"a.py":
        return []
    return [Diagnostic(path="a.py", line=1, column=1, end_line=1, end_column=2, severity="error", code="O1",
                       message="own", tool="own")]
"""
_TODO = "[tasks.lint]\non = ['todo-comment']\n[tasks.lint.todo]\nwords = ['%s']\n"
_REPORTS_NOTHING = "def task(file):\n    return []\n"
_ALL = "[tasks.lint]\non = ['*']\n"
_RULE = """[[tasks.lint.rules]]
id = "no-f"
language = "python"
pattern = "int($X)"
message = "a call"
"""
_NOT = "not_comparable"

# Two trees, then state and reason of the finding that only one of them has, and those of the reverse comparison.
_CASES: dict[str, tuple[dict[str, str], dict[str, str], tuple[str, str | None], tuple[str, str | None]]] = {
    "mended": ({"a.py": _X}, {"a.py": "x = 1\n"}, ("fixed", None), ("new", None)),
    "gone with its file": ({"a.py": _X, "b": ""}, {"b": ""}, ("removed", None), ("new", None)),
    "rule off": (
        {"a.py": _X}, {"a.py": _X, "codebatch.toml": _RULE_OFF},
        ("suppressed", "configuration"), (_NOT, "configuration"),
    ),
    "rule off where it went": (
        {"a.py": _X, "codebatch.toml": _OFF_BELOW}, {"new/a.py": _X, "codebatch.toml": _OFF_BELOW},
        ("suppressed", "configuration"), (_NOT, "configuration"),
    ),
    "rule of one's own": (
        {"a.py": "int(1)\n", "codebatch.toml": _RULE}, {"a.py": "int(1)\n"},
        ("suppressed", "configuration"), (_NOT, "configuration"),
    ),
    "syntax error": ({"a.py": "x = (\n"}, {"a.py": "x = 1\n"}, ("fixed", None), ("new", None)),
    "noqa": (
        {"a.py": _X}, {"a.py": "import os  # noqa: F401\nx = 1\n"}, ("suppressed", "suppressed"), (_NOT, "suppressed"),
    ),
    "noqa of another rule": (
        {"a.py": "import os, sys\n"}, {"a.py": "import os  # noqa: E501\n"}, ("fixed", None), ("new", None),
    ),
    "note": (
        {"a.py": _X}, {"a.py": "import os  # codebatch: ignore\nx = 1\n"},
        ("suppressed", "suppressed"), (_NOT, "suppressed"),
    ),
    "note of the file": (
        {"a.py": _X}, {"a.py": "# codebatch: ignore-file[F4*]\nimport os\nx = 1\n"},
        ("suppressed", "suppressed"), (_NOT, "suppressed"),
    ),
    "few rules check": (
        {"a.js": "// TODO x\nf(1)\n", "codebatch.toml": _ALL}, {"a.js": "\0", "codebatch.toml": _ALL},
        (_NOT, "not_checked"), (_NOT, "not_checked"),
    ),
    "failed": (
        {"a.py": "x = 1\n", "codebatch.toml": _CUSTOM_TASK, "own.py": _REPORTS},
        {"a.py": "x = 2\n", "codebatch.toml": _CUSTOM_TASK, "own.py": _RAISES},
        (_NOT, "not_checked"), (_NOT, "not_checked"),
    ),
    "not run": (
        {"a.py": "x = 1\n", "codebatch.toml": _CUSTOM_TASK, "own.py": _REPORTS}, {"a.py": "x = 1\n"},
        (_NOT, "not_checked"), (_NOT, "not_checked"),
    ),
    "another version": (
        {"a.py": "x = 1\n", "codebatch.toml": _CUSTOM_TASK, "own.py": _REPORTS},
        {"a.py": "x = 1\n", "codebatch.toml": _CUSTOM_TASK, "own.py": _REPORTS_NOTHING},
        (_NOT, "configuration"), (_NOT, "configuration"),
    ),
    "configured otherwise": (
        {"a.py": "# HACK\n", "codebatch.toml": _TODO % "HACK"}, {"a.py": "# HACK\n", "codebatch.toml": _TODO % "NOTE"},
        (_NOT, "configuration"), (_NOT, "configuration"),
    ),
    "configured otherwise, and the line is new": (
        {"a.py": "# HACK\n", "codebatch.toml": _TODO % "HACK"}, {"a.py": "\n", "codebatch.toml": _TODO % "NOTE"},
        ("fixed", None), ("new", None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", _CASES)
def test_finding_absent_for_another_cause_is_neither_fixed_nor_new(tmp_path: Path, case: str) -> None:
    before, after, forwards, backwards = _CASES[case]
    (tmp_path / ".git").mkdir()
    for files in (before, after):
        _run(tmp_path, files)
    with codebatch.open(tmp_path / ".codebatch", project=tmp_path) as opened:
        pair = [opened.batch(reference, partial=True) for reference in ("latest~1", "latest")]
        for (old, new), expected in zip((pair, pair[::-1]), (forwards, backwards), strict=True):
            unmatched = [
                change for change in compare_batches(old, new).differences() if change.old is None or change.new is None
            ]
            assert [(change.state, change.reason) for change in unmatched] == [expected]


def test_restricted_batch_fixes_nothing_outside_its_paths(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    files = {"src/a.py": _X, "lib/b.py": _X}
    _run(tmp_path, files)
    _run(tmp_path, {**files, "src/a.py": "import re\n"}, part="src")
    with codebatch.open(tmp_path / ".codebatch", project=tmp_path) as opened:
        whole, part = (opened.batch(item.id) for item in opened.batches())
        rows = [(_row(item)[2], item.state, item.reason) for item in compare_batches(whole, part).differences()]
        assert rows == [
            ("lib/b.py", "not_comparable", "not_checked"),
            ("src/a.py", "fixed", None),
            ("src/a.py", "new", None),
        ]


def test_findings_without_file_contents_are_compared_by_message(tmp_path: Path) -> None:
    """Nothing is reported about files in only one batch, because they may have been moved."""
    (tmp_path / ".git").mkdir()
    for files in (_BEFORE, _AFTER):
        _run(tmp_path, files)
    for pack in (tmp_path / ".codebatch" / "objects").glob("*.pack"):
        pack.unlink()
    with codebatch.open(tmp_path / ".codebatch", project=tmp_path) as opened:
        comparison = _compare(opened)
        rows = [_row(change) for change in comparison.differences() if change.reason != "unknown"]
        assert [(state, by, path, code) for state, by, path, _, _, code in rows] == [
            ("moved", "message", "edited.py", "F401"),
            ("fixed", None, "edited.py", "F401"),
            ("moved", "message", "edited.py", "F401"),
            ("new", None, "edited.py", "B015"),
            ("new", None, "edited.py", "F821"),
            ("moved", "message", "edited.py", "F632"),
        ]
        assert comparison.counts["not_comparable"] == 8
        assert not comparison.is_complete


def test_text_cache_of_a_comparison_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = store.batch("latest~1"), store.batch("latest")
    rows = [_row(item) for item in compare_batches(old, new).differences()]
    bound = 300
    monkeypatch.setattr(trees, "_CACHED_SPLIT_BYTES_MAX", bound)
    cached_bytes: list[int] = []

    def noted(text: bytes) -> SplitText:
        cached_bytes.append(sum(item.size for item in comparison.trees._split_texts.values()))
        return split_text(text)

    monkeypatch.setattr(trees, "split_text", noted)
    comparison = compare_batches(old, new)
    assert [_row(item) for item in comparison.differences()] == rows
    assert len(cached_bytes) > 2
    assert 0 < max(cached_bytes) <= bound


def test_contents_lost_after_line_matching_are_reported(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = compare_batches(store.batch("latest~1"), store.batch("latest"))
    assert comparison.lines(b"edited.py") is not None
    for cache in (comparison.trees._contents, comparison.trees._split_texts):
        cache.clear()

    def gone(*_: object) -> bytes:
        raise ObjectMissing("it is gone")

    monkeypatch.setattr(BatchRecords, "read_object", gone)
    changes = list(comparison.differences())
    assert changes
    assert not comparison.is_complete


def test_incomplete_batch_is_compared_only_if_partial_is_requested(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for files in ({"a.py": "", "codebatch.toml": _CUSTOM_TASK, "own.py": text} for text in (_REPORTS, _RAISES)):
        _run(tmp_path, files)
    with codebatch.open(tmp_path / ".codebatch", project=tmp_path) as opened:
        with pytest.raises(BatchIncomplete):
            _compare(opened)
        assert not compare_batches(opened.batch("latest~1"), opened.batch("latest", partial=True)).is_complete


def test_batches_of_different_projects_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for files in ({"a.py": _X}, {"b.py": "import sys\n"}):
        _run(tmp_path, files)
    with (
        codebatch.open(tmp_path / ".codebatch", project=tmp_path) as opened,
        pytest.raises(InvalidInput, match="they have no file path and no file content in common"),
    ):
        compare_batches(opened.batch("latest~1"), opened.batch("latest"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 44))
def test_comparison_over_random_histories_is_symmetric_and_cache_independent(tmp_path: Path, seed: int) -> None:
    """Check invariants of comparisons after any change of a tree.

    Each finding is in one row. No finding in an unchanged file is new or fixed. The reverse comparison has the same
    pairs. Reused results compare like recomputed ones.
    """
    history = History(tmp_path / "tree", seed)
    stores = [tmp_path / "store", tmp_path / "anew"]
    for _ in range(4):
        with contextlib.suppress(InvalidInput, NothingToDo), inline():
            for store in stores:
                run(history.tree, store, pipeline="full", reuses=store.name == "store")
        history.step()
    with codebatch.open(stores[0]) as reusing, codebatch.open(stores[1]) as recomputing:
        batches = [
            [opened.batch(item.id, partial=True) for item in opened.batches()] for opened in (reusing, recomputing)
        ]
        for (old, new), (old_recomputed, new_recomputed) in zip(
            *(itertools.pairwise(item) for item in batches), strict=True
        ):
            if not _have_nothing_in_common(old, new):
                _check(old, new)
                assert _all_rows(compare_batches(old, new)) == _all_rows(
                    compare_batches(old_recomputed, new_recomputed)
                )


def _have_nothing_in_common(old: Batch, new: Batch) -> bool:
    return TreeComparison(old.question.records, new.question.records).are_unrelated


def _check(old: Batch, new: Batch) -> None:
    comparison, mirrored = compare_batches(old, new), compare_batches(new, old)
    every = [*comparison.differences(CHANGE_STATES)]
    sides = ((old, [change.old for change in every]), (new, [change.new for change in every]))
    for batch, records in sides:
        rows = [msgspec.json.encode(record) for record in records if record is not None]
        assert sorted(rows) == sorted(msgspec.json.encode(change) for change in batch.diagnostics())
    assert sum(comparison.counts.values()) == len(every)
    assert {state: sum(change.state == state for change in every) for state in CHANGE_STATES} == comparison.counts
    assert _pairs(every) == {(old, new) for new, old in _pairs(mirrored.differences(CHANGE_STATES))}
    for change in every:
        if change.old is None or change.new is None:
            path = (change.old or change.new).path_bytes  # type: ignore[union-attr]  # one side is a finding
            objects = [_object(side, path) for side in (old, new)]
            assert change.state in ("suppressed", "not_comparable") or objects[0] != objects[1], change


def _object(batch: Batch, path: bytes) -> str | None:
    entry = batch.question.records.snapshot.entry(path)
    return None if entry is None else entry.object


def _pairs(every: Iterable[Change]) -> set[tuple[bytes, bytes]]:
    return {
        (msgspec.json.encode(change.old), msgspec.json.encode(change.new))
        for change in every
        if change.old and change.new
    }


def _all_rows(comparison: Comparison) -> list[tuple[object, ...]]:
    return [tuple(change) for change in comparison.differences(CHANGE_STATES)]
