"""Test of the results that a worker reuses from older batches: the lines of exactly its assigned items."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.protocol.messages import ReusedRange
from codebatch.store.batches.store_directory import create_store
from codebatch.store.results.bases import BaseResults
from codebatch.system.files.files import RealFiles
from codebatch_workers.runtime.reused_results import ReusedBatches


class _NumberedBase:
    """A base in which the line of each item is its number."""

    def read_lines(self, task: str, start: int, end: int) -> list[bytes]:
        return [b"%d\n" % number for number in range(start, end)]

    def task_results(self, task: str) -> list[BaseResults]:
        return []


def test_reused_lines_belong_to_the_assigned_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch_workers.runtime.reused_results.open_base", lambda *_: _NumberedBase())
    bases = ReusedBatches(create_store(RealFiles(), tmp_path / "store")[0])
    reused = bases.find([ReusedRange(task="parse", start=2, end=9, base="old", first=102)], 4, 7)
    assert reused.lines == {("parse", item): b"%d\n" % (100 + item) for item in (4, 5, 6)}
