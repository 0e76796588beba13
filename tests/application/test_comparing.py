"""Two batches of real trees, compared: what is new, what went, and nothing that was not touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import codebatch
from codebatch.application.comparing import Comparison, compare
from codebatch.application.opened import OpenedStore
from codebatch.compare.differences import Difference
from codebatch.model.record import Diagnostic
from codebatch.query.filters import RecordFilter

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
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedStore]:
    """With a batch of each of the two trees."""
    tree = tmp_path_factory.mktemp("compared")
    (tree / ".git").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        for files in (_BEFORE, _AFTER):
            for path in _BEFORE:
                (tree / path).unlink(missing_ok=True)
            for path, text in files.items():
                (tree / path).parent.mkdir(exist_ok=True)
                (tree / path).write_text(text)
            assert codebatch.run(".", pipeline="full", jobs=1).shortfall is None
        with codebatch.open(tree / ".codebatch") as opened:
            yield opened


def _compare(
    store: OpenedStore, old: str = "latest~1", new: str = "latest", asked: RecordFilter | None = None
) -> Comparison:
    return compare(store.batch(old), store.batch(new), asked=asked)


def _rows(found: Iterator[Difference]) -> list[Row]:
    return [_row(each) for each in found]


def _row(each: Difference) -> Row:
    about = each.new or each.old
    assert isinstance(about, Diagnostic)
    assert isinstance(about.path, str)
    old, new = (side.line if isinstance(side, Diagnostic) else None for side in (each.old, each.new))
    return each.state, each.by, about.path, old, new, about.code


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


def test_what_was_touched_is_told_and_nothing_else(store: OpenedStore) -> None:
    """The findings below a line that was added, and those of a file that nobody touched, are unchanged."""
    comparison = _compare(store)
    assert _rows(comparison.differences()) == _ROWS
    assert {state: number for state, number in comparison.counts.items() if number} == {
        "fixed": 1, "moved": 4, "new": 3, "removed": 1, "unchanged": 3,
    }  # fmt: skip


def test_batch_is_as_it_is_itself(store: OpenedStore) -> None:
    comparison = _compare(store, "latest", "latest")
    assert not [*comparison.differences()]
    assert {state for state, number in comparison.counts.items() if number} == {"unchanged"}


def test_filter_holds_for_either_side(store: OpenedStore) -> None:
    comparison = _compare(store, asked=RecordFilter(codes=("F401",)))
    assert _rows(comparison.differences()) == [row for row in _ROWS if row[-1] == "F401"]
    assert comparison.counts["unchanged"] == 2


def test_lines_of_a_file_that_moved(store: OpenedStore) -> None:
    comparison = _compare(store)
    assert [*(comparison.lines(b"new/place.py") or ())][:9] == [0, 1, 2, 3, 4, 5, 6, 7, -1]
    assert [*(comparison.lines(b"edited.py") or ())][:6] == [-1, 0, -1, 2, 3, -1]
