"""One number of duplicate blocks: the run, the list, the report and the API agree, whatever the limit of the list."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import codebatch
from codebatch.operations.api.batch import Batch
from codebatch.operations.queries import duplicates
from codebatch.operations.runs.headline import make_headline
from codebatch.report.report import make_report
from tests.support.inline_workers import inline, run

pytestmark = pytest.mark.slow

_GROUPS = 320


def _write_copies(tree: Path, groups: int) -> None:
    """Write blocks in two files each. A part of every third block is also in a third file, and some are in tests."""
    chance = random.Random(7)
    files: dict[str, list[str]] = {}
    for number in range(groups):
        lines = [f"v{number}_{at} = call_{number}({at}, {chance.random()})\n" for at in range(12 + number % 9)]
        place = "tests/" if number % 5 == 0 else ""
        for name in (f"{place}a{number % 7}.py", f"{place}b{number % 11}.py"):
            files.setdefault(name, []).append("".join(lines) + f"end_{len(files)}_{name[:1]}_{number} = 1\n")
        if number % 3 == 0:
            files.setdefault(f"c{number % 4}.py", []).append("".join(lines[:11]) + f"other_{number} = 2\n")
    for name, texts in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("".join(texts))


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    root = tmp_path_factory.mktemp("copied")
    _write_copies(root / "tree", _GROUPS)
    with inline():
        run(root / "tree", root / "store")
    with codebatch.open(root / "store", project=root / "tree") as store:
        yield store.batch()


def _report_totals(batch: Batch) -> dict[str, object]:
    """Return the totals in the data of the report."""
    page = make_report(batch).result.decode()
    (data,) = re.findall(r'type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    totals = json.loads(data)["in_all"]
    assert isinstance(totals, dict)
    return totals


def test_number_of_blocks_is_the_same_everywhere(copied: Batch) -> None:
    listed = copied.copies().result
    every = copied.copies(everything=True).result
    assert listed.count == len(listed.blocks) >= 200
    assert len(every.blocks) == every.count == listed.count + listed.excluded
    assert len({record.group for record in copied.duplicates()}) > every.count, "no block is part of a longer one"
    for limit in (1, 7, 64, 10_000):
        cut = copied.copies(limit=limit).result
        assert (cut.count, cut.count_is_upper_bound) == (listed.count, False)
        assert (cut.excluded, cut.excluded_is_upper_bound) == (listed.excluded, False)
        assert cut.blocks == listed.blocks[:limit]
    headline = make_headline(copied.question)
    assert (headline.duplicates_count, headline.duplicates_count_is_upper_bound) == (listed.count, False)
    totals = _report_totals(copied)
    assert (totals["copies"], totals["copies_left_out"], totals["copies_bound"]) == (listed.count, listed.excluded, "")


def test_number_that_is_not_exact_says_so(copied: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = copied.copies().result
    monkeypatch.setattr(duplicates, "_GROUPS_COMPLETED_MAX", 100)
    unlimited = copied.copies().result
    assert unlimited.blocks == exact.blocks
    assert (unlimited.count, unlimited.count_is_upper_bound) == (exact.count, False)
    assert (unlimited.excluded >= exact.excluded, unlimited.excluded_is_upper_bound) == (True, True)
    for limit in (1, 150):
        cut = copied.copies(limit=limit).result
        assert [block.group for block in cut.blocks] == [block.group for block in exact.blocks[:limit]]
        assert (cut.count > exact.count, cut.count_is_upper_bound) == (True, True)
    assert make_headline(copied.question).duplicates_count_is_upper_bound
    assert _report_totals(copied)["copies_bound"] == "at most "


def test_project_of_tests_alone_lists_what_the_run_counts(tmp_path: Path) -> None:
    _write_copies(tmp_path / "tree" / "tests", 6)
    with inline():
        run(tmp_path / "tree", tmp_path / "store")
    with codebatch.open(tmp_path / "store", project=tmp_path / "tree") as store:
        batch = store.batch()
        listed = batch.copies().result
        assert make_headline(batch.question).duplicates_count == listed.count == 6
        assert listed.excluded == 0
