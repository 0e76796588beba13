"""Batches in simulated machines with kills, pauses, refused writes, lost replies and power loss.

The invariants are in tests/support/invariants.py. CODEBATCH_PROOF_SEEDS is the number of seeds;
`python -m tests.proof FIRST COUNT` runs other seeds.
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
    summary = run_all(range(first, first + BLOCK))
    assert summary.happened.total() > BLOCK, "too few faults happened to prove anything"
    assert summary.terms_kept > BLOCK, "too few terms files were written"
    assert summary.started_by_reports > 0, "no worker was started by reported progress"


def test_simulation_of_a_seed_does_not_depend_on_machine_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    tick = itertools.count(step=10**9)

    def steps(now_ns: Callable[[], int]) -> list[int]:
        monkeypatch.setattr(time, "monotonic_ns", now_ns)
        return [run(draw(seed)).steps for seed in range(6)]

    assert steps(lambda: 1) == steps(lambda: next(tick))


def test_simulation_of_a_seed_does_not_depend_on_set_order() -> None:
    def summary(hash_seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.check_output([sys.executable, "-m", "tests.proof", "118", "3"], env=environment)

    assert summary("1") == summary("4")


class _ReplacingFiles(RealFiles):
    """Files whose last writer wins a register, as with rename(2)."""

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        self.remove(path)
        return super().create_exclusive(source, path)


class _LazyFiles(RealFiles):
    """Files that never sync a directory."""

    def sync_directory(self, path: Path) -> None:
        pass


class _UnsyncedAppendFiles(RealFiles):
    """Files that never sync appended data."""

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
    """Negative controls: each planted bug makes some seed fail."""
    assert _find_failing_seed(make_files) is not None


class _DroppingLoop(WatchedLoop):
    """A loop that drops the events that an action causes."""

    _is_doing = False

    def _handle_event(self, event: SessionEvent) -> None:
        if not self._is_doing:
            super()._handle_event(event)

    def _execute_action(self, action: ExecutableAction) -> None:
        self._is_doing = True
        super()._execute_action(action)
        self._is_doing = False


class _MiscountingLoop(WatchedLoop):
    """A loop that does not count outcomes that it read from disk."""

    def _note_handled_event(self, event: SessionEvent) -> None:
        super()._note_handled_event(event)
        if isinstance(event, OutcomesCommitted) and len(event.commits) > 1:
            self._counter._changed_chains.clear()


class _TrustingExitStatusLoop(WatchedLoop):
    """A loop that treats a worker that exits with status 0 as healthy, even in the middle of a unit."""

    def _handle_exit(self, died: WorkerExited) -> None:
        if died.returncode == 0 and self._driver.end is None:
            self._read_commits()
            del self._workers[died.worker]
            self._handle_event(WorkerLost(died.worker, None, "crash"))
        else:
            super()._handle_exit(died)


class _HastyLoop(WatchedLoop):
    """A loop that does not read the disk after a worker died, although the worker may have committed before."""

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
    """A loop that marks an unreadable register in the ledger, but does not inform the session."""

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
    """Negative controls: the simulator runs the real loop, so each planted bug makes some seed fail.

    The seed that last found the bug is tried first. The simulator may draw other cases since then.
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
