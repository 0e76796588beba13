"""Batches in simulated machines that kill, stop, refuse, lose replies and lose power: see tests/support/invariants.py.

CODEBATCH_PROOF_SEEDS says how many seeds; `python -m tests.proof FIRST COUNT` runs any.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from codebatch.coordinator.processes.worker_backend import WorkerExited
from codebatch.errors import CodebatchError
from codebatch.scheduling.analysis.driver import ExecutableAction
from codebatch.scheduling.events import OutcomesCommitted, SessionEvent, WorkerLost
from codebatch.system.files.files import FileAppender, RealFiles
from codebatch.system.files.system_calls import SHARED_MODE, SystemCalls
from tests.proof.case import draw, run, run_all, shrink
from tests.proof.loop import WatchedLoop
from tests.proof.world import MakeFiles

SEEDS = int(os.environ.get("CODEBATCH_PROOF_SEEDS", "50"))
BLOCK = 50
SEEDS_OF_CONTROL_MAX = 400


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_simulated_batches_keep_all_invariants(first: int) -> None:
    told = run_all(range(first, first + BLOCK))
    assert told.happened.total() > BLOCK, "too little went wrong for this to prove anything"
    assert told.terms_kept > BLOCK, "too little was kept"
    assert told.started_by_reports > 0, "none was started for what is reported"


def test_simulation_of_a_seed_does_not_depend_on_machine_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    tick = itertools.count(step=10**9)

    def steps(now_ns: Callable[[], int]) -> list[int]:
        monkeypatch.setattr(time, "monotonic_ns", now_ns)
        return [run(draw(seed)).steps for seed in range(6)]

    assert steps(lambda: 1) == steps(lambda: next(tick))


def test_simulation_of_a_seed_does_not_depend_on_set_order() -> None:
    def told(hash_seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.check_output([sys.executable, "-m", "tests.proof", "118", "3"], env=environment)

    assert told("1") == told("4")


class _ReplacingFiles(RealFiles):
    """A register that the last writer wins, as with rename(2)."""

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        self.remove(path)
        return super().create_exclusive(source, path)


class _LazyFiles(RealFiles):
    """Never syncs a directory."""

    def sync_directory(self, path: Path) -> None:
        pass


class _UnsyncedAppendFiles(RealFiles):
    """Never syncs what it appended."""

    def open_append(self, path: Path | str, *, directory_mode: int = SHARED_MODE) -> FileAppender:
        return _UnsyncedAppender(super().open_append(path, directory_mode=directory_mode))


class _UnsyncedAppender:
    def __init__(self, appender: FileAppender) -> None:
        self.append = appender.append
        self.close = appender.close

    def sync(self) -> None:
        pass


@pytest.mark.parametrize("make_files", [_ReplacingFiles, _LazyFiles, _UnsyncedAppendFiles])
def test_broken_store_is_detected(make_files: Callable[[SystemCalls], RealFiles]) -> None:
    """Negative controls: each planted bug fails some seed."""
    assert _find_failing_seed(make_files) is not None


class _DroppingLoop(WatchedLoop):
    """Drops what an action brings about."""

    _is_doing = False

    def _handle_event(self, event: SessionEvent) -> None:
        if not self._is_doing:
            super()._handle_event(event)

    def _execute_action(self, action: ExecutableAction) -> None:
        self._is_doing = True
        super()._execute_action(action)
        self._is_doing = False


class _MiscountingLoop(WatchedLoop):
    """Does not count what it found on disk."""

    def _note_handled_event(self, event: SessionEvent) -> None:
        super()._note_handled_event(event)
        if isinstance(event, OutcomesCommitted) and len(event.commits) > 1:
            self._counter._changed_chains.clear()


class _TrustingExitStatusLoop(WatchedLoop):
    """Takes a worker for well that ended with status 0, be it at work."""

    def _handle_exit(self, died: WorkerExited) -> None:
        if died.returncode == 0 and self._driver.end is None:
            self._read_commits()
            del self._workers[died.worker]
            self._handle_event(WorkerLost(died.worker, None, "crash"))
        else:
            super()._handle_exit(died)


class _HastyLoop(WatchedLoop):
    """Does not look at the disk when a worker has died, which may have committed and not said so."""

    _is_burying = False

    def _handle_exit(self, died: WorkerExited) -> None:
        self._is_burying = True
        super()._handle_exit(died)
        self._is_burying = False

    def _read_commits(self) -> None:
        if not self._is_burying:
            super()._read_commits()
        self._is_burying = False


class _IgnoringUnreadableRegistersLoop(WatchedLoop):
    """Takes note of a register that cannot be read, and does not tell the session."""

    def _handle_event(self, event: SessionEvent) -> None:
        if isinstance(event, OutcomesCommitted) and event.unreadable:
            for register in event.unreadable:
                self.ledger.mark_unreadable(register)
            event = OutcomesCommitted(event.commits)
        super()._handle_event(event)


@pytest.mark.parametrize(
    ("loop", "found_by"),
    [
        (_DroppingLoop, 1),
        (_MiscountingLoop, 1),
        (_TrustingExitStatusLoop, 3),
        (_HastyLoop, 101),
        (_IgnoringUnreadableRegistersLoop, 250),
    ],
)
def test_broken_loop_is_detected(loop: type[WatchedLoop], found_by: int) -> None:
    """Negative controls: the loop that is proven is the one that ships, so a fault planted in it fails some seed.

    The seed that found it last is tried first; what the simulator draws may have changed since.
    """
    assert _find_failing_seed(loop=loop, before=found_by) is not None


def test_failing_case_is_reduced_to_a_few_faults() -> None:
    seed = _find_failing_seed(_LazyFiles)
    assert seed is not None
    smallest = shrink(draw(seed), _LazyFiles)
    assert len(smallest.faults) <= 2
    assert smallest.items <= 3
    with pytest.raises((AssertionError, CodebatchError)):
        run(smallest, _LazyFiles)


def _find_failing_seed(
    make_files: MakeFiles = RealFiles, loop: type[WatchedLoop] = WatchedLoop, before: int = 0
) -> int | None:
    for seed in chain([before], range(SEEDS_OF_CONTROL_MAX)):
        try:
            run(draw(seed), make_files, loop)
        except (AssertionError, CodebatchError):
            return seed
    return None
