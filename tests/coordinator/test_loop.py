"""Tests of the coordinator's event loop: what it reads from disk while another coordinator works on the same batch."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from codebatch.coordinator.analysis.costs import estimate_costs
from codebatch.coordinator.analysis.loop import Coordinator
from codebatch.coordinator.analysis.progress_counter import RunPhase, RunProgress, RunScope
from codebatch.coordinator.processes.worker_backend import TickPassed, WorkerEvent, WorkerExited, WorkerHandle
from codebatch.errors import EnvironmentBroken
from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, TaskOutcome, encode_commit
from codebatch.model.plan import plan_items
from codebatch.protocol.messages import Assign, Drain, GaveUp, MessageToWorker
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.actions import CommitFailure
from codebatch.scheduling.analysis.session import FAILED_STARTS_MAX
from codebatch.scheduling.events import SessionStarted, WorkerId, WorkerIdle, WorkerLost
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, LeaseReader, new_holder_id
from codebatch.store.batches.store_directory import create_store
from codebatch.store.results.outcomes import OutcomeCommitter, failed_outcome
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host
from codebatch.system.processes.progress_cell import PHASE_COMMIT, PHASE_ITEM, PHASE_LEASE, WorkerStep
from tests.support.batches import make_batch

OTHER = HolderId("f" * 32)
STARTS_MAX = 4


class _Crew:
    """A `Crew` whose workers do nothing.

    `sent` has the messages to workers, `heard` the events to return, `steps` the progress of workers. `asked` has the
    workers whose start was tried, `started` those that started, at most `starts_max`.
    """

    def __init__(self, starts_max: int = 100) -> None:
        self.sent: list[tuple[WorkerId, MessageToWorker]] = []
        self.heard: list[WorkerEvent | TickPassed] = []
        self.steps: dict[WorkerId, WorkerStep] = {}
        self.asked: list[WorkerId] = []
        self.started: list[WorkerId] = []
        self._starts_max = starts_max

    @property
    def drained(self) -> list[WorkerId]:
        """The workers that were told to drain, once for each message."""
        return [worker for worker, message in self.sent if isinstance(message, Drain)]

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def start(self, worker: WorkerId) -> WorkerHandle:
        self.asked.append(worker)
        if len(self.started) == self._starts_max:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self.started.append(worker)
        return WorkerHandle(holder=HolderId(f"{worker:032x}"), pid=1)

    def send(self, worker: WorkerId, message: MessageToWorker) -> None:
        self.sent.append((worker, message))

    def wait(self) -> list[WorkerEvent | TickPassed]:
        """Return the events of `heard`, then the exits of the draining workers."""
        if self.heard:
            return [self.heard.pop(0)]
        assert self.drained, "the coordinator waits although no event can come"
        return [WorkerExited(worker=worker, returncode=-9, how="SIGKILL") for worker in self.drained]

    def step(self, worker: WorkerId) -> WorkerStep | None:
        return self.steps.get(worker)

    def is_holder_stuck(self, holder: HolderFile) -> bool:
        return False

    def is_holder_silent(self, holder: HolderFile, commits: int) -> bool:
        return False

    def kill_orphans(self, dead: set[HolderId]) -> None:
        pass


class _Listener:
    """A `Watcher` that records the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def phase(self, phase: RunPhase, done: int = 0, planned: int = 0) -> None:
        pass

    def update(self, progress: RunProgress) -> None:
        pass


class _CoordinatorFixture:
    """A coordinator that was set up and has not begun."""

    def __init__(self, root: Path, crew: _Crew | None = None, *, cost_per_worker: float = 1.0, items: int = 2) -> None:
        store, _ = create_store(RealFiles(), root / "store")
        self.batch: BatchDir = make_batch(store, [b"%c" % (97 + item) for item in range(items)], shard_items=items)
        plan = self.batch.plan()
        self.shard = plan.shards[0].id
        about = HolderFile(holder=new_holder_id(), role="coordinator", pid=1, host=this_host(), since_ns=1)
        entries = plan_items(load_snapshot(store.files, store.root, plan.snapshot_id).entries)
        self.crew = crew or _Crew()
        self.listener = _Listener()
        self.coordinator = Coordinator(
            self.batch,
            plan,
            entries,
            self.crew,
            about=about,
            jobs=items,
            costs=estimate_costs(plan, entries, None),
            cost_per_worker=cost_per_worker,
            starts_max=STARTS_MAX,
            scope=RunScope(),
            watcher=self.listener,
            wall_ns=lambda: 0,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[_CoordinatorFixture]:
    fixture = _CoordinatorFixture(tmp_path)
    yield fixture
    fixture.coordinator.close()


def test_failure_committed_by_another_coordinator_is_adopted(bench: _CoordinatorFixture) -> None:
    """Otherwise the item would count as being failed here for ever, and the run would never end."""
    register = OutcomeRegister(bench.shard, 0, "parse", 1)
    failed = failed_outcome(b"a", register, "timeout", FrameWriter())
    with closing(OutcomeCommitter(bench.batch.files, bench.batch.root, OTHER)) as committer:
        committer.commit_outcomes([failed], epoch=0, round_=1)
    assert not bench.coordinator.ledger.has_outcome(register)
    bench.coordinator._commit_failure(CommitFailure(bench.shard, 0, ("parse",), 1, "crash"))
    (link,) = bench.coordinator.ledger.iter_links(bench.shard, "parse")
    assert (link.segment, link.outcome.reason) == (OTHER, "timeout")


def _link(bench: _CoordinatorFixture, register: OutcomeRegister, data: bytes) -> None:
    (bench.batch.root / layout.OUTCOMES / layout.register_name(*register)).write_bytes(data)


def _oversized_commit(register: OutcomeRegister) -> bytes:
    """Return a commit for this register that covers more items than the plan has."""
    outcome = TaskOutcome(shard=register.shard, task=register.task, start=register.start, end=9, type="result")
    return encode_commit(Commit(segment=OTHER, epoch=1, round=register.round, outcomes=(outcome,)))


@pytest.mark.parametrize("make", [lambda register: b"torn", _oversized_commit])
def test_unreadable_register_is_replaced_and_its_work_queued_in_the_next_round(
    bench: _CoordinatorFixture, make: Callable[[OutcomeRegister], bytes]
) -> None:
    """Otherwise the queued unit would not match the open work, and the open work would never be queued."""
    bench.coordinator._handle_event(SessionStarted())
    register = OutcomeRegister(bench.shard, 0, "parse", 1)
    _link(bench, register, make(register))
    bench.coordinator._read_commits()
    bench.coordinator._handle_event(WorkerIdle(WorkerId(1)))
    ((_, message),) = bench.crew.sent
    assert isinstance(message, Assign)
    assert (message.unit.tasks, message.unit.round) == (("parse",), 2)
    rounds = {unit.tasks: unit.round for unit in bench.coordinator.ledger.open_units(bench.shard)}
    assert rounds == {("symbols", "lint"): 1, ("parse",): 2}


def test_failure_behind_an_unreadable_register_is_retried_in_the_next_round(bench: _CoordinatorFixture) -> None:
    """Otherwise the item would count as being failed here for ever, and the run would never end."""
    bench.coordinator._handle_event(SessionStarted())
    _link(bench, OutcomeRegister(bench.shard, 0, "parse", 1), b"torn")
    deaths = [WorkerLost(WorkerId(number), (0, 1), "crash", task="parse") for number in (1, 2)]
    for death in deaths:
        bench.coordinator._handle_event(WorkerIdle(death.worker))
        bench.coordinator._handle_event(death)
    bench.crew.sent.clear()
    bench.coordinator._handle_event(WorkerIdle(WorkerId(3)))
    ((_, message),) = bench.crew.sent
    assert isinstance(message, Assign)
    assert ("parse" in message.unit.tasks, message.unit.round) == (True, 2)


def test_other_workers_drain_when_a_worker_gives_up(bench: _CoordinatorFixture) -> None:
    """Otherwise each worker would continue to the end of its unit, for minutes, on a disk that refuses its result."""
    bench.coordinator._handle_event(SessionStarted())
    bench.coordinator._receive_message(WorkerId(1), GaveUp(code="store_unwritable", message="full", hint=None))
    assert bench.crew.drained == [WorkerId(1), WorkerId(2)]


def test_live_workers_drain_when_the_session_breaks(bench: _CoordinatorFixture) -> None:
    bench.crew.heard = [
        WorkerExited(worker=WorkerId(number), returncode=-9, how="SIGKILL") for number in (1, *range(3, 8))
    ]
    with pytest.raises(EnvironmentBroken):
        bench.coordinator.run()
    assert bench.crew.drained == [WorkerId(2)]


class _RefusingCrew(_Crew):
    def kill_orphans(self, dead: set[HolderId]) -> None:
        raise RuntimeError("refused")


def test_failed_coordinator_setup_releases_its_holder(tmp_path: Path) -> None:
    """Otherwise the batch would be held until the process ends."""
    with pytest.raises(RuntimeError, match="refused"):
        _CoordinatorFixture(tmp_path, _RefusingCrew())
    ((_, is_live),) = LeaseReader(RealFiles(), next(tmp_path.glob("store/batches/batch-*"))).read_holders()
    assert not is_live


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[_CoordinatorFixture]:
    """A coordinator of ten items whose first worker has all of them. By cost alone, no second worker is started."""
    fixture = _CoordinatorFixture(tmp_path, _Crew(starts_max=3), cost_per_worker=1e9, items=10)
    fixture.coordinator._handle_event(SessionStarted())
    fixture.coordinator._handle_event(WorkerIdle(WorkerId(1)))
    yield fixture
    fixture.coordinator.close()


def _advance_time(bench: _CoordinatorFixture, phase: int, item: int, *, unit: int = 1) -> list[WorkerId]:
    """Let some seconds pass while the first worker is at an item. Return the workers started so far."""
    bench.crew.steps[WorkerId(1)] = WorkerStep(0, 0, 0, unit, item, item + 1, phase)
    bench.crew.heard = [TickPassed(1.0)] * 3
    for _ in range(3):
        bench.coordinator._run_turn()
    return bench.crew.started


def test_workers_are_started_for_a_slow_unit(slow: _CoordinatorFixture) -> None:
    assert _advance_time(slow, PHASE_ITEM, 0) == [WorkerId(1), WorkerId(2), WorkerId(3)]


@pytest.mark.parametrize(("phase", "item", "unit"), [(PHASE_LEASE, 0, 1), (PHASE_ITEM, 0, 0), (PHASE_COMMIT, 0, 1)])
def test_finished_or_unstarted_unit_starts_no_worker(
    slow: _CoordinatorFixture, phase: int, item: int, unit: int
) -> None:
    """The progress of an earlier unit does not count for this unit."""
    assert _advance_time(slow, phase, item, unit=unit) == [WorkerId(1)]


def test_refused_process_start_is_reported_and_other_workers_continue(slow: _CoordinatorFixture) -> None:
    assert len(_advance_time(slow, PHASE_ITEM, 0)) == 3
    assert slow.listener.notes == [
        "cannot start another worker: Resource temporarily unavailable; continuing with 3 workers"
    ]
    before = len(slow.crew.asked)
    assert before <= 1 + STARTS_MAX + FAILED_STARTS_MAX
    _advance_time(slow, PHASE_ITEM, 0)
    assert len(slow.crew.asked) == before, "starting a worker was tried again after the last failure"


def test_refusal_of_every_process_ends_the_run(tmp_path: Path) -> None:
    bench = _CoordinatorFixture(tmp_path, _Crew(starts_max=0))
    with pytest.raises(BlockingIOError):
        bench.coordinator.run()
    bench.coordinator.close()


def test_broken_session_reports_the_last_error_of_a_worker(bench: _CoordinatorFixture) -> None:
    words = "Traceback:\n  File\nOSError: [Errno 24] Too many open files\n"
    bench.crew.heard = [
        WorkerExited(worker=WorkerId(n), returncode=1, how="exit status 1", stderr=words) for n in range(1, 8)
    ]
    with pytest.raises(EnvironmentBroken, match=r"last worker: OSError: \[Errno 24\] Too many open files$"):
        bench.coordinator.run()
