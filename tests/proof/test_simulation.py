"""Batches in simulated machines that kill, stop, refuse, lose replies and lose power: see tests/proof/invariants.py.

CODEBATCH_PROOF_SEEDS says how many seeds; `python -m tests.proof FIRST COUNT` runs any.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.errors import CodebatchError
from codebatch.system.calls import SystemCalls
from codebatch.system.files import Appender, RealFiles
from tests.proof.case import draw, run, run_all, shrink
from tests.proof.world import MakeFiles

SEEDS = int(os.environ.get("CODEBATCH_PROOF_SEEDS", "2000"))
BLOCK = 100
SEEDS_OF_CONTROL_MAX = 400


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_nothing_is_lost_doubled_or_changed_whatever_happens(first: int) -> None:
    told = run_all(range(first, first + BLOCK))
    assert told.happened.total() > BLOCK, "too little went wrong for this to prove anything"


class _ReplacingFiles(RealFiles):
    """A register that the last writer wins, as with rename(2)."""

    def create_exclusive(self, source: Path, path: Path) -> bool:
        self.remove(path)
        return super().create_exclusive(source, path)


class _BelievingFiles(RealFiles):
    """Believes the reply of link(2)."""

    def create_exclusive(self, source: Path, path: Path) -> bool:
        try:
            self._calls.link(source, path)
        except FileExistsError:
            return False
        return True


class _LazyFiles(RealFiles):
    """Never syncs a directory."""

    def sync_directory(self, path: Path) -> None:
        pass


class _ForgetfulFiles(RealFiles):
    """Never syncs what it appended."""

    def open_append(self, path: Path) -> Appender:
        return _ForgetfulAppender(super().open_append(path))


class _ForgetfulAppender:
    def __init__(self, appender: Appender) -> None:
        self.append = appender.append
        self.close = appender.close

    def sync(self) -> None:
        pass


@pytest.mark.parametrize("make_files", [_ReplacingFiles, _BelievingFiles, _LazyFiles, _ForgetfulFiles])
def test_a_store_that_cheats_is_found_out(make_files: Callable[[SystemCalls], RealFiles]) -> None:
    """Negative controls: each planted bug fails some seed."""
    assert _first_failing(make_files) is not None


def test_a_failing_case_is_shrunk_to_a_few_faults() -> None:
    seed = _first_failing(_LazyFiles)
    assert seed is not None
    smallest = shrink(draw(seed), _LazyFiles)
    assert len(smallest.faults) <= 2
    assert smallest.items <= 3
    with pytest.raises((AssertionError, CodebatchError)):
        run(smallest, _LazyFiles)


def _first_failing(make_files: MakeFiles) -> int | None:
    for seed in range(SEEDS_OF_CONTROL_MAX):
        try:
            run(draw(seed), make_files)
        except Exception:
            return seed
    return None
