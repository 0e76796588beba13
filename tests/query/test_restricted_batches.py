"""A batch that is restricted to paths: its answers cover these paths only, with an index or without, and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import codebatch
from codebatch.errors import InvalidInput
from codebatch.operations.api.batch import Batch
from codebatch.operations.runs.indexing import build_index
from tests.support.inline_workers import inline, run

_OTHERS = 40
"""Files with other contents. The words of few contents are not distinguished."""
_FILES = {
    "a/first.py": "def wanted(): pass\n",
    **{f"b/m{number:02}.py": f"def f{number}(): pass\n" for number in range(_OTHERS)},
    "b/one.py": "def other(): pass\n",
    "b/two.py": "from a.first import wanted\nwanted()\n",
    "c/last.py": "from b.one import other\nother(); only_here()\n",
}


@pytest.fixture(scope="module")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    """An indexed batch of the directory `b` of a project."""
    root = tmp_path_factory.mktemp("restricted")
    for path, text in {"codebatch.toml": "", **_FILES}.items():
        (root / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "tree" / path).write_text(text)
    (root / "tree" / "c" / "link").symlink_to("only_here")
    with inline():
        batch = run(root / "tree" / "b", root / "store", configured=root / "tree").batch
    with codebatch.open(root / "store", project=root / "tree") as store:
        assert batch.about.paths == (b"b",)
        build_index(store.store, batch)
        yield store.batch(batch.id, partial=True)


def test_items_are_those_of_the_paths(restricted: Batch) -> None:
    paths = [entry.path for entry in restricted.question.records.items]
    assert (paths[0], paths[_OTHERS:]) == (b"b/m00.py", [b"b/one.py", b"b/two.py"])


def test_index_finds_items_by_their_number_in_the_batch(restricted: Batch) -> None:
    """The snapshot has files before and behind the paths, so numbers in the snapshot differ."""
    records = restricted.question.records
    for name, expected in (("other", b"b/one.py"), ("wanted", b"b/two.py")):
        found = list(records.items_with_name(name))
        assert expected in [entry.path for _, entry in found]
        assert len(found) < _OTHERS, "the index was used"
        assert found == [(number, records.items[number]) for number, _ in found]
    numbers = records.find_items([b"b/two.py", b"a/first.py", b"b/one.py"])
    assert numbers == {b"b/two.py": _OTHERS + 1, b"b/one.py": _OTHERS}


def test_references_are_those_in_the_paths(restricted: Batch) -> None:
    found = [(use["path"], use["line"]) for use in restricted.references("wanted").result]
    assert found == [("b/two.py", 1), ("b/two.py", 2)]
    assert [use["path"] for use in restricted.references("other").result] == ["b/one.py"]


def test_name_outside_of_the_paths_is_doubt(restricted: Batch) -> None:
    """The target of a symbolic link is not code."""
    coverage = restricted.references("only_here").coverage
    assert coverage is not None
    assert [(file.path, file.reason) for file in coverage.doubtful] == [("c/last.py", "outside")]
    assert (coverage.files, coverage.parsed) == (len(_FILES) + 1, _OTHERS + 2)
    with pytest.raises(InvalidInput, match="no name 'no_such_name'"):
        restricted.references("no_such_name")


def test_files_outside_of_the_path_of_a_question_are_no_doubt(restricted: Batch) -> None:
    coverage = restricted.references("only_here", path="/b").coverage
    assert coverage is not None
    assert (coverage.doubtful, coverage.files) == ((), _OTHERS + 2)


@pytest.mark.parametrize(
    ("filters", "lacks_files"),
    [
        ({}, False),
        ({"kind": "symbol"}, False),
        ({"kind": "duplicate"}, True),
        ({"kind": ("symbol", "metric")}, True),
        ({"task": "symbols"}, False),
        ({"task": "duplicates"}, True),
    ],
)
def test_answer_that_needs_all_files_is_incomplete(
    restricted: Batch, filters: dict[str, object], lacks_files: bool
) -> None:
    assert restricted.stats(**filters).completeness.lacks_files == lacks_files  # type: ignore[arg-type]
    assert restricted.copies().completeness.lacks_files
