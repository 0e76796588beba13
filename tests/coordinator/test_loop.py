"""What the coordinator learns from the disk, beside another that works on the same batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codebatch.coordinator.costs import estimate
from codebatch.coordinator.crew import Died, Heard, Member
from codebatch.coordinator.loop import Coordinator, Scope
from codebatch.engine.actions import Fail
from codebatch.engine.events import Lost, Ready, Started, WorkerId
from codebatch.errors import EnvironmentBroken
from codebatch.model.outcome import Commit, HolderId, Outcome, Register, encode_commit
from codebatch.model.plan import items_of
from codebatch.protocol.messages import Assign, Drain, GaveUp, ToWorker
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store import layout
from codebatch.store.batches import Batch
from codebatch.store.holders import HolderFile, LeaseReader, new_holder_id
from codebatch.store.outcomes import Committer, failed_outcome
from codebatch.store.snapshots import load_snapshot
from codebatch.store.store import create_store
from codebatch.system.cell import Step
from codebatch.system.files import RealFiles
from codebatch.system.host import this_host
from tests.proof.plans import make_batch

OTHER = HolderId("f" * 32)


class _Crew:
    """Implements Crew: workers that do nothing. `sent` is what they are told, `heard` what is to be heard of them."""

    def __init__(self) -> None:
        self.sent: list[tuple[WorkerId, ToWorker]] = []
        self.heard: list[Heard] = []

    @property
    def drained(self) -> list[WorkerId]:
        """Who was told to drain, once for each time."""
        return [worker for worker, message in self.sent if isinstance(message, Drain)]

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def start(self, worker: WorkerId) -> Member:
        return Member(holder=HolderId(f"{worker:032x}"), pid=1)

    def send(self, worker: WorkerId, message: ToWorker) -> None:
        self.sent.append((worker, message))

    def wait(self) -> list[Heard]:
        """What `heard` has, then that those who were told to drain have died."""
        if self.heard:
            return [self.heard.pop(0)]
        assert self.drained, "nobody is ever heard"
        return [Died(worker=worker, returncode=-9, how="SIGKILL") for worker in self.drained]

    def step(self, worker: WorkerId) -> Step | None:
        return None

    def is_stuck(self, holder: HolderFile) -> bool:
        return False

    def is_silent(self, holder: HolderFile, commits: int) -> bool:
        return False

    def kill_left_of(self, dead: set[HolderId]) -> None:
        pass


class _Bench:
    """A coordinator that was set up, and has not begun."""

    def __init__(self, root: Path, crew: _Crew | None = None) -> None:
        store, _ = create_store(RealFiles(), root / "store")
        self.batch: Batch = make_batch(store, [b"a", b"b"], shard_items=2)
        plan = self.batch.plan()
        self.shard = plan.shards[0].id
        about = HolderFile(holder=new_holder_id(), role="coordinator", pid=1, host=this_host(), since_ns=1)
        items = items_of(load_snapshot(store.files, store.root, plan.snapshot_id).entries)
        self.crew = crew or _Crew()
        self.coordinator = Coordinator(
            self.batch,
            plan,
            items,
            self.crew,
            about=about,
            jobs=2,
            costs=estimate(plan, items, None),
            cost_per_worker=1.0,
            scope=Scope(),
            watcher=None,
            wall_ns=lambda: 0,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[_Bench]:
    made = _Bench(tmp_path)
    yield made
    made.coordinator.close()


def test_a_failure_that_another_committed_first_is_learnt(bench: _Bench) -> None:
    """Else the item counts as being failed here for ever, and the run never ends."""
    register = Register(bench.shard, 0, "parse", 1)
    failed = failed_outcome(b"a", register, "timeout", FrameWriter())
    Committer(bench.batch.files, bench.batch.root, OTHER).commit([failed], epoch=0, round_=1)
    assert not bench.coordinator.ledger.knows(register)
    bench.coordinator._fail(Fail(bench.shard, 0, ("parse",), 1, "crash"))
    (link,) = bench.coordinator.ledger.walk(bench.shard, "parse")
    assert (link.segment, link.outcome.reason) == (OTHER, "timeout")


def _link(bench: _Bench, register: Register, data: bytes) -> None:
    (bench.batch.root / layout.OUTCOMES / layout.register_name(*register)).write_bytes(data)


def _strange(register: Register) -> bytes:
    """A commit under this name that says more than the plan has."""
    outcome = Outcome(shard=register.shard, task=register.task, start=register.start, end=9, type="result")
    return encode_commit(Commit(segment=OTHER, epoch=1, round=register.round, outcomes=(outcome,)))


@pytest.mark.parametrize("make", [lambda register: b"torn", _strange])
def test_a_register_that_cannot_be_read_is_taken_and_its_work_queued_one_round_up(
    bench: _Bench, make: Callable[[Register], bytes]
) -> None:
    """Else what was queued is not open as it was, and nobody queues what is."""
    bench.coordinator._handle(Started())
    register = Register(bench.shard, 0, "parse", 1)
    _link(bench, register, make(register))
    bench.coordinator._learn()
    bench.coordinator._handle(Ready(WorkerId(1)))
    ((_, message),) = bench.crew.sent
    assert isinstance(message, Assign)
    assert (message.unit.tasks, message.unit.round) == (("parse",), 2)
    rounds = {unit.tasks: unit.round for unit in bench.coordinator.ledger.open_units(bench.shard)}
    assert rounds == {("symbols", "lint"): 1, ("parse",): 2}


def test_a_failure_whose_name_is_taken_by_nothing_is_tried_one_round_up(bench: _Bench) -> None:
    """Else the item counts as being failed here for ever, and the run never ends."""
    bench.coordinator._handle(Started())
    _link(bench, Register(bench.shard, 0, "parse", 1), b"torn")
    deaths = [Lost(WorkerId(number), (0, 1), "crash", task="parse") for number in (1, 2)]
    for death in deaths:
        bench.coordinator._handle(Ready(death.worker))
        bench.coordinator._handle(death)
    bench.crew.sent.clear()
    bench.coordinator._handle(Ready(WorkerId(3)))
    ((_, message),) = bench.crew.sent
    assert isinstance(message, Assign)
    assert ("parse" in message.unit.tasks, message.unit.round) == (True, 2)


def test_where_a_worker_gives_up_the_others_are_told_to_drain(bench: _Bench) -> None:
    """Else each goes on to the end of its unit, for minutes, on a disk that refuses what comes of it."""
    bench.coordinator._handle(Started())
    bench.coordinator._receive(WorkerId(1), GaveUp(code="store_unwritable", message="full", hint=None))
    assert bench.crew.drained == [WorkerId(1), WorkerId(2)]


def test_where_the_machine_is_blamed_who_lives_is_told_to_drain(bench: _Bench) -> None:
    bench.crew.heard = [Died(worker=WorkerId(number), returncode=-9, how="SIGKILL") for number in (1, *range(3, 8))]
    with pytest.raises(EnvironmentBroken):
        bench.coordinator.run()
    assert bench.crew.drained == [WorkerId(2)]


class _RefusingCrew(_Crew):
    def kill_left_of(self, dead: set[HolderId]) -> None:
        raise RuntimeError("refused")


def test_a_coordinator_that_cannot_be_made_holds_nothing(tmp_path: Path) -> None:
    """Else its batch is held until the process ends."""
    with pytest.raises(RuntimeError, match="refused"):
        _Bench(tmp_path, _RefusingCrew())
    ((_, is_live),) = LeaseReader(RealFiles(), next(tmp_path.glob("store/batches/batch-*"))).holders()
    assert not is_live


def test_where_the_machine_is_blamed_the_last_words_are_told(bench: _Bench) -> None:
    words = "Traceback:\n  File\nOSError: [Errno 24] Too many open files\n"
    bench.crew.heard = [Died(worker=WorkerId(n), returncode=1, how="exit status 1", stderr=words) for n in range(1, 8)]
    with pytest.raises(EnvironmentBroken, match=r"the last one: OSError: \[Errno 24\] Too many open files$"):
        bench.coordinator.run()
