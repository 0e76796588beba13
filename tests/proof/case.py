"""Cases of the simulator: a small batch and its faults, drawn from a seed. Also a search for a smaller failing case."""

from __future__ import annotations

import functools
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import get_args

from codebatch.system.files.files import RealFiles
from tests.proof.loop import WatchedLoop
from tests.proof.world import SWITCH_RATE, Fault, FaultKind, MakeFiles, Older, Refusal, World
from tests.support.batches import make_paths
from tests.support.invariants import Merged, check_batch, check_served, check_terms, merged

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
STEPS_OF_ITEM = 22
TRIALS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of the simulator.

    `failing` items fail, `healing` items fail until the batch is resumed, and `killing` items kill their worker.
    `is_resumed`: failed work is executed again in a second round. `changed`: there is an older batch, `changed` items
    differ from it, and the results of the others are reused. `keeps_terms`: workers write terms files for an index.
    `is_observed`: workers are started by reported progress; otherwise one is started for each unit.
    """

    seed: int
    items: int
    failing: int
    healing: int
    killing: int
    shard_items: int
    jobs: int
    coordinators: int
    faults: tuple[Fault, ...]
    is_resumed: bool = False
    changed: int | None = None
    keeps_terms: bool = False
    is_observed: bool = False


@dataclass(slots=True, kw_only=True)
class RunSummary:
    """The sums of the counts of several runs."""

    cases: int = 0
    steps: int = 0
    refused_late: int = 0
    terms_kept: int = 0
    started_by_reports: int = 0
    happened: Counter[str] = field(default_factory=Counter)

    def add(self, other: RunSummary) -> None:
        """Add the counts of other runs."""
        self.cases += other.cases
        self.steps += other.steps
        self.refused_late += other.refused_late
        self.terms_kept += other.terms_kept
        self.started_by_reports += other.started_by_reports
        self.happened += other.happened


def draw(seed: int) -> Case:
    """Draw the case of a seed."""
    chance = random.Random(seed)
    items = chance.randint(1, 24)
    span = 60 + items * STEPS_OF_ITEM
    kinds = chance.sample(KINDS, chance.randint(1, len(KINDS)))
    faults = (
        Fault(at=chance.randrange(span), kind=chance.choice(kinds), seed=chance.getrandbits(32))
        for _ in range(chance.randint(0, 12))
    )
    return Case(
        seed=seed,
        items=items,
        failing=chance.choice((0, 0, 1, 2)),
        healing=chance.choice((0, 0, 1, 2)),
        killing=chance.choice((0, 0, 0, 1)),
        shard_items=chance.choice((1, 3, 8, 24)),
        jobs=chance.randint(1, 4),
        coordinators=chance.choice((1, 1, 2, 3)),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        is_resumed=chance.random() < 0.3,
        changed=chance.choice((None, None, None, None, 0, 1, 5)),
        keeps_terms=chance.random() < 0.3,
        is_observed=chance.random() < 0.3,
    )


def run(case: Case, make_files: MakeFiles = RealFiles, loop: type[WatchedLoop] = WatchedLoop) -> RunSummary:
    """Run a case to its end and check all invariants. Raises the first violation."""
    world = _world(case, make_files, loop)
    world.run(coordinators=case.coordinators, is_resumed=case.is_resumed)
    serial = _serial_of(case)
    check_batch(world.batch(), serial)
    terms_kept = check_terms(world.store(), world.batch())
    world.disk.lose_power()  # The finished batch must be durable.
    check_batch(world.batch(), serial)
    # If a register is torn, a result that was reused may be computed later.
    is_torn = any(fault.kind == "tear register" for fault in case.faults)
    if case.changed is not None and not is_torn:
        check_served(world.store(), world.batch())
    check_terms(world.store(), world.batch())
    return RunSummary(
        cases=1,
        steps=world.schedule.steps,
        refused_late=world.refused_late,
        terms_kept=terms_kept,
        started_by_reports=world.started_by_reports,
        happened=world.happened,
    )


def run_refused(case: Case, refusal: Refusal | None = None) -> list[int]:
    """Run a case on a disk that refuses a write. Return the step of each write.

    No terms files are written, because workers do not report it if such a write fails.
    """
    world = _world(replace(case, keeps_terms=False))
    world.refusal = refusal
    world.run(coordinators=1)
    check_batch(world.batch(), _serial_of(case))
    return world.writes


def run_all(seeds: range) -> RunSummary:
    """Run the cases of some seeds. The first failing case is shrunk, and its smallest form is in the error."""
    summary = RunSummary()
    for seed in seeds:
        try:
            summary.add(run(draw(seed)))
        except Exception as error:
            smallest = shrink(draw(seed))
            raise AssertionError(f"seed {seed} fails: {error}\nas does {smallest}") from error
    return summary


def shrink(case: Case, make_files: MakeFiles = RealFiles) -> Case:
    """Return the smallest case that a greedy search finds to fail, with any error."""
    trials = 0
    is_smaller = True
    while is_smaller and trials < TRIALS_MAX:
        is_smaller = False
        for smaller in _smaller(case):
            trials += 1
            if _fails(smaller, make_files):
                case, is_smaller = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for index in range(len(case.faults)):
        yield replace(case, faults=case.faults[:index] + case.faults[index + 1 :])
    if case.changed is not None:
        yield replace(case, changed=None)
    if case.keeps_terms:
        yield replace(case, keeps_terms=False)
    if case.is_observed:
        yield replace(case, is_observed=False)
    if case.is_resumed:
        yield replace(case, is_resumed=False)
    for name, least in (("coordinators", 1), ("jobs", 1), ("killing", 0), ("healing", 0), ("failing", 0), ("items", 1)):
        value: int = getattr(case, name)
        for less in dict.fromkeys((least, value // 2, value - 1)):
            if least <= less < value:
                yield replace(case, **{name: less})  # type: ignore[arg-type] # All of these are integers.


def _fails(case: Case, make_files: MakeFiles) -> bool:
    try:
        run(case, make_files)
    except Exception:
        return True
    return False


def _world(
    case: Case,
    make_files: MakeFiles = RealFiles,
    loop: type[WatchedLoop] = WatchedLoop,
    switch_rate: float = SWITCH_RATE,
) -> World:
    return World(
        random.Random(case.seed),
        _paths(case),
        shard_items=case.shard_items,
        jobs=case.jobs,
        faults=case.faults,
        make_files=make_files,
        loop=loop,
        switch_rate=switch_rate,
        older=None
        if case.changed is None
        else _older(replace(case, jobs=1, coordinators=1, faults=(), keeps_terms=False, is_observed=False)),
        keeps_terms=case.keeps_terms,
        is_observed=case.is_observed,
    )


def _paths(case: Case) -> list[bytes]:
    return make_paths(
        random.Random(case.seed),
        items=case.items,
        failing=case.failing,
        healing=case.healing,
        killing=case.killing,
    )


def _older(case: Case) -> Older:
    """Return the disk of an older tree, in which `changed` files differ, with a finished batch over that tree."""
    older = pickle.loads(_pickled_older(case))
    assert isinstance(older, Older)
    return older


@functools.lru_cache(maxsize=1)
def _pickled_older(case: Case) -> bytes:
    """Return a pickle, so that each world that starts there gets its own copy of the disk."""
    assert case.changed is not None
    paths, changed = _paths(case), case.changed
    chance = random.Random(case.seed)
    gone = set(chance.sample(paths, min(changed, len(paths) - 1)))
    others = [b"does/old-%d" % number for number in range(chance.randint(0, changed))]
    world = World(
        chance,
        sorted([path for path in paths if path not in gone] + others),
        shard_items=case.shard_items,
        jobs=1,
        faults=(),
        switch_rate=0.0,
    )
    world.run(coordinators=1)
    return pickle.dumps(Older(world.disk, world.batch_id))


def _serial_of(case: Case) -> Merged:
    serial = replace(case, jobs=1, coordinators=1, faults=(), changed=None, keeps_terms=False, is_observed=False)
    return _serial(serial)


@functools.lru_cache(maxsize=1)
def _serial(case: Case) -> Merged:
    """Return the outputs of one coordinator with one worker, without faults and without concurrency."""
    world = _world(case, switch_rate=0.0)
    world.is_healed = case.is_resumed
    world.run(coordinators=1)
    return merged(world.batch())
