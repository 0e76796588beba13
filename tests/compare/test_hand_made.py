"""Tests of the changes of hand_made.py with two real batches, in both directions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import codebatch
from codebatch.compare.differences import ComparedRecord
from codebatch.operations.api.batch import Batch, compare_batches
from codebatch.operations.comparison.comparison import CHANGE_STATES, Comparison
from codebatch.query.filters.filters import RecordFilter
from tests.compare.hand_made import BACKWARDS, CASES, Row

_MARKS = '''
import re, time

def task(file):
    """calls of what is bad"""
    text = file.content.decode("utf-8-sig")
    if "# FAIL" in text:
        raise ValueError
    if "# WAIT" in text:
        time.sleep(60)
    grave = "error" if re.search("grave_.* = 1", text) else "warning"
    for number, line in enumerate(text.split("\\n"), 1):
        for found in re.finditer(r"\\b(bad|long)_(\\w+)", line):
            said = f"{len(line)} long" if found[1] == "long" else f"call of {found[0]}"
            code = found[0].replace("_", "-")
            yield file.report(number, said, column=found.start() + 1, code=code, severity=grave)
'''
_UPGRADED = '''
def task(file):
    """what another version finds"""
    if file.path.endswith(b"up.py"):
        for number, line in enumerate(file.text.split("\\n"), 1):
            if "RULE" in line:
                yield file.report(number, "it is bad", code="rule")
'''
_BEFORE = """
[tasks.marks]
python = "tools/marks.py:task"
[tasks.upgraded]
python = "tools/upgraded.py:task"
[tasks.lint]
off = ["F811", "F821", "B018"]
on = ["todo-comment"]
"""
_AFTER = """
[[tasks.lint.paths]]
match = ["rule-off/"]
off = ["todo-comment"]
"""

RowsByCase = Mapping[str, list[Row]]


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Batch, Batch]]:
    """A batch of the tree before all changes, and one of the tree after them."""
    root = tmp_path_factory.mktemp("hand_made")
    (root / ".git").mkdir()
    _write(root, {"tools/marks.py": _MARKS})
    for side, (configuration, rule) in enumerate(((_BEFORE, "old_"), (_BEFORE + _AFTER, "bad_"))):
        _write(root, {"codebatch.toml": configuration, "tools/upgraded.py": _UPGRADED.replace("RULE", rule)})
        shutil.rmtree(root / "cases", ignore_errors=True)
        for name, case in CASES.items():
            _write(root / "cases" / name, case.new if side else case.old, name)
        _run(root)
    with codebatch.open(root / ".codebatch", project=root) as store:
        yield store.batch("latest~1", partial=True), store.batch("latest", partial=True)


@pytest.fixture(scope="module")
def rows_by_case(batches: tuple[Batch, Batch]) -> tuple[RowsByCase, RowsByCase]:
    """The rows of each case, forwards and backwards."""
    old, new = batches
    return _by_case(compare_batches(old, new)), _by_case(compare_batches(new, old))


def _write(root: Path, tree: Mapping[str, str], name: str = "") -> None:
    for path, text in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.replace("@", name.replace("-", "_")).encode())


def _run(root: Path) -> None:
    command = [sys.executable, "-m", "codebatch", "run", ".", "--jobs", "1", "--file-seconds", "0.5"]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1, 3), ended.stderr


def _by_case(comparison: Comparison) -> RowsByCase:
    rows: dict[str, list[Row]] = defaultdict(list)
    for change in comparison.differences():
        _, _, below = _path(change.new or change.old).partition("cases/")
        rows[below.partition("/")[0]].append((change.state, change.by or "", _place(change.old), _place(change.new)))
    return rows


def _path(record: ComparedRecord | None) -> str:
    assert record is not None
    return str(record.path)


def _place(record: ComparedRecord | None) -> str:
    return "" if record is None else f"{_path(record).split('/', 2)[-1]}:{getattr(record, 'line', '')}"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_change_is_classified_in_both_directions(name: str, rows_by_case: tuple[RowsByCase, RowsByCase]) -> None:
    case = CASES[name]
    forwards, backwards = rows_by_case
    assert sorted(forwards.get(name, [])) == sorted(case.rows)
    states = case.back or [BACKWARDS.get(row[0], row[0]) for row in case.rows]
    turned = [(state, by, new, old) for state, (_, by, old, new) in zip(states, case.rows, strict=True)]
    assert sorted(backwards.get(name, [])) == sorted(turned)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "case", "rows"),
    [
        ("symbol", "function-moved-to-another-file", [("moved", "", "a.py:13", "b.py:5")]),
        ("symbol", "function-renamed", [("removed", "", "a.py:1", ""), ("added", "", "", "a.py:1")]),
        ("symbol", "line-on-top", []),
        ("symbol", "file-emptied", [("removed", "", "a.py:1", "")]),
        ("edge", "line-doubled", [("added", "", "", "a.py:4")]),
        ("edge", "line-on-top", [("added", "", "", "a.py:1")]),
        ("edge", "file-renamed", []),
        ("file", "file-renamed", [("moved", "", "a.py:", "b.py:")]),
        ("file", "file-renamed-and-edited", [("changed", "", "a.py:", "b/c.py:")]),
        ("file", "file-removed", [("removed", "", "a.py:", "")]),
        ("file", "nothing", []),
        ("duplicate", "long-file-copied", [("new", "", "", "a.py:1")]),
        ("duplicate", "copies-untouched", []),
        ("duplicate", "copies-edited-alike", [("changed", "", "a.py:1", "a.py:1")]),
        ("metric", "line-edited", [("changed", "", "a.py:1", "a.py:1")]),
    ],
)
def test_changes_of_other_record_types_are_classified(
    batches: tuple[Batch, Batch], kind: str, case: str, rows: list[Row]
) -> None:
    record_filter = RecordFilter(metrics=("bytes",)) if kind == "metric" else None
    assert sorted(_by_case(compare_batches(*batches, (kind,), record_filter=record_filter)).get(case, [])) == sorted(
        rows
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["diagnostic", "duplicate", "edge", "file", "metric", "symbol"])
@pytest.mark.parametrize("path", ["", "a.py"])
def test_counts_agree_with_the_listed_changes(batches: tuple[Batch, Batch], kind: str, path: str) -> None:
    for old, new in (batches, batches[::-1]):
        comparison = compare_batches(old, new, (kind,), record_filter=RecordFilter(path=path))
        listed = Counter(change.state for change in comparison.differences(CHANGE_STATES))
        assert listed == {state: count for state, count in comparison.counts.items() if count}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["duplicate", "edge", "file", "metric", "symbol"])
def test_unchanged_records_are_counted(batches: tuple[Batch, Batch], kind: str) -> None:
    """In a comparison with itself, all records of a batch are unchanged.

    In a comparison with an older batch, the counts of states that the newer one has sum up to that number.
    """
    old, new = batches
    states = compare_batches(old, new, (kind,)).counts
    every = compare_batches(new, new, (kind,)).counts
    only_old = ("removed", "fixed", "suppressed")
    assert {state for state, count in every.items() if count} == {"unchanged"}
    assert sum(count for state, count in states.items() if state not in only_old) == every["unchanged"]
