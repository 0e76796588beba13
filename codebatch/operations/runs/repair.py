"""Mending shard files: a damaged one is replaced, under each of its names, by one that is equal to what it was.

That is a sound file of another inode where there is one. Else what it held is executed again, by new workers, in a
batch of the same plan that nobody finds. It may be served by the damaged one: what is taken over is held against its
rows. What is made must have the digest that the manifest names, or the commit file; what does not is not put anywhere.

Runs may go on beside it. Who takes a damaged shard over meanwhile checks it first, and finds a miss. Who adopts a whole
batch, or merges, gives a damaged file names that were not looked for: they are damaged still, and mended the next time.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from codebatch.coordinator.analysis.merge import make_shard_file
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import CodebatchError, Stopped, StoreCorrupt, StoreError, StoreUnwritable
from codebatch.model.digest import Digest
from codebatch.model.plan import Plan
from codebatch.model.text.quantities import count_of
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.analysis.chains import Link
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir, hidden_batch, hidden_directory, iter_batches
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import Outcomes
from codebatch.store.results.shard_survey import ShardFileSurvey, ShardName, shard_names, shard_names_of, survey
from codebatch.store.sharing import hardlink_or_copy, ignoring_link_refusals
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import Lock

if TYPE_CHECKING:
    from codebatch.operations.runs.execution import ExecutionSettings, Listener

T = TypeVar("T")

_GO_ON = "to continue, run the same command again: files that are already repaired are kept"


class RepairFailure(msgspec.Struct, frozen=True):
    """Why files of a digest could not be mended, and what to do about it."""

    told: str
    hint: str = "make a new batch with: codebatch run --again PATH"


class RepairFailures(NamedTuple):
    """Why files of some digests could not be mended; those of all others were, but for a signal.

    `signal_status`: 0, or the exit status of the one that ended it.
    """

    reasons: dict[Digest, RepairFailure]
    signal_status: int = 0

    def reason(self, digest: Digest) -> RepairFailure:
        """Why a file of a digest is damaged still."""
        if self.signal_status:
            left = RepairFailure("the repair was stopped", hint=_GO_ON)
        else:
            left = RepairFailure("the repaired file is damaged again")
        return self.reasons.get(digest, left)


def repair_shard_files(
    execution: ExecutionSettings, store: StoreDir, lock: Lock, found: ShardFileSurvey, listener: Listener
) -> RepairFailures:
    """Mend what a full survey found to be damaged, from what it found sound, or by executing it again.

    On return what was mended is on disk. Killed at any call each name has what `give` leaves it. `lock` is that of
    `Store.writing`. A name that is refused hinders no other. Raises StoreUnwritable where the disk is full or fails, or
    the store may not be written: then some names are done, and others as before.
    """
    reasons: dict[Digest, RepairFailure] = {}
    lacking = _give_equal(store, found, reasons)
    batches = {name.batch.id: name.batch for names in lacking.values() for name in names}
    for batch_id in sorted(batches, reverse=True):
        wanted = {digest: name for digest in lacking for name in lacking[digest] if name.batch.id == batch_id}
        if not wanted:
            continue
        listener.note(f"re-executing damaged results: {count_of(len(wanted), 'shard file')} of {batch_id}")
        signal_status = 0
        try:
            with (
                _reason_told(reasons, wanted),
                _executed_again(execution, store, lock, batches[batch_id], wanted, listener) as (made, signal_status),
            ):
                for digest, path in made.items():
                    reason = give(store, path, (name.path for name in lacking.pop(digest)))
                    reasons.pop(digest, None)
                    if reason is not None:
                        reasons[digest] = reason
        except Stopped as stopped:
            signal_status = stopped.exit_status
        if signal_status:
            return RepairFailures(reasons, signal_status)
    return RepairFailures(
        {**dict.fromkeys(lacking, RepairFailure("executing its task again gave a different result")), **reasons}
    )


def _give_equal(
    store: StoreDir, found: ShardFileSurvey, reasons: dict[Digest, RepairFailure]
) -> dict[Digest, list[ShardName]]:
    """Mend what has an equal file that is sound; returns the damaged names of what has none."""
    lacking: dict[Digest, list[ShardName]] = {}
    for fault in found.faults:
        equal = found.sound.get(fault.digest)
        if equal is None:
            lacking.setdefault(fault.digest, []).extend(fault.names)
            continue
        with _reason_told(reasons, [fault.digest]):
            reason = give(store, next(iter(equal.values()))[0].path, (name.path for name in fault.names))
            if reason is not None:
                reasons[fault.digest] = reason
    return lacking


def repair_batch(
    execution: ExecutionSettings, store: StoreDir, lock: Lock, listener: Listener, batch: BatchDir
) -> bool:
    """Mend the shard files of a batch, under all names that they have; False where none is damaged.

    Raises StoreCorrupt where one is beyond repair, Stopped where a signal ended it, or StoreUnwritable.
    """
    faults = survey(store.files, shard_names(batch), is_full=True).faults
    if not faults:
        return False
    digests = {fault.digest for fault in faults}
    found = survey(store.files, names_of(iter_batches(store), digests), is_full=True)
    mended = repair_shard_files(execution, store, lock, found, listener)
    if mended.signal_status:
        raise Stopped("stopped while repairing damage", hint=_GO_ON, exit_status=mended.signal_status)
    for fault in survey(store.files, shard_names(batch), is_full=True).faults:
        reason = mended.reason(fault.digest)
        told = f"{fault.names[0].path} is damaged ({fault.problem}) and could not be repaired: {reason.told}"
        raise StoreCorrupt(told, hint=reason.hint)
    return True


class RepairSession(NamedTuple):
    """Has what needs sound shard files of a batch done once more where damaged ones are met and mended.

    Once is enough: mending ends with sound files or with an error.
    """

    execution: ExecutionSettings
    store: StoreDir
    lock: Lock
    listener: Listener

    def __call__(self, batch: BatchDir, act: Callable[[], T], signal_status: int = 0) -> T:
        """What `act` gives. Raises what it raises, or as `repair_batch` does.

        Nothing is mended after a signal, whose `signal_status` is not 0: then damage is Stopped.
        """
        try:
            return act()
        except StoreCorrupt as damage:
            if signal_status:
                raise Stopped.before_mending(damage, signal_status) from damage
            if not repair_batch(*self, batch):
                raise
        return act()


def names_of(batches: Iterable[BatchDir], digests: Collection[Digest]) -> Iterator[ShardName]:
    """The names that files of some digests have in batches, but for those that cannot be read."""
    return (name for name in shard_names_of(batches) if name.digest in digests)


def give(store: StoreDir, source: Path, paths: Iterable[Path]) -> RepairFailure | None:
    """Have names be those of a file that is on disk, whatever has them now; returns why one was refused.

    On return the others are on disk. Killed at any call, each name has what it had, or the file; none, where it was
    that of a directory. Raises StoreUnwritable.
    """
    refused: list[StoreError] = []
    files, directories = store.files, set()
    with hidden_directory(store) as hidden:
        for number, path in enumerate(paths):
            link = hidden / str(number)
            hardlink_or_copy(files, source, link)
            with ignoring_link_refusals(refused.append):
                files.make_directory(path.parent)
                there = files.stat(path)
                if there is not None and stat.S_ISDIR(there.st_mode):
                    files.replace(path, hidden / f"{number}.aside")
                files.replace(link, path)
                directories.add(path.parent)
                source = path  # Where it got no further name, this is a copy that does.
        for directory in sorted(directories):
            files.sync_directory(directory)
    return RepairFailure(refused[0].message, refused[0].hint or "") if refused else None


@contextlib.contextmanager
def _reason_told(reasons: dict[Digest, RepairFailure], digests: Iterable[Digest]) -> Iterator[None]:
    """Note why files of some digests could not be had. A disk that refuses to be written ends it all, and a signal."""
    try:
        yield
    except (StoreUnwritable, Stopped):
        raise
    except CodebatchError as error:
        reasons.update(dict.fromkeys(digests, RepairFailure(error.message)))


@contextlib.contextmanager
def _executed_again(
    execution: ExecutionSettings,
    store: StoreDir,
    lock: Lock,
    batch: BatchDir,
    wanted: Mapping[Digest, ShardName],
    listener: Listener,
) -> Iterator[tuple[dict[Digest, Path], int]]:
    """Files of those digests that came out, for the time being, and the exit status of a signal that ended it, or 0."""
    plan = batch.plan()
    needed = frozenset().union(*(plan.needed_for(name.task) for name in wanted.values()))
    is_of_files = {name.task for name in wanted.values()}.isdisjoint(plan.project_tasks)
    scope = RunScope(tasks=needed, shards=frozenset(name.shard for name in wanted.values()) if is_of_files else None)
    sources = batch.about.sources or (b"/",)
    with hidden_batch(store, plan, sources=sources, bases=(batch.id,), at_ns=wall_ns()) as again:
        executed = replace(execution, reuses=True).execute(store, lock, again, scope, listener)
        yield _equal_files(again, plan, wanted), executed.signal_status


def _equal_files(again: BatchDir, plan: Plan, wanted: Mapping[Digest, ShardName]) -> dict[Digest, Path]:
    outcomes = Outcomes(again.files, again.root)
    ledger = load_ledger(plan, outcomes)
    frame_writer = FrameWriter()
    places = {(name.task, name.shard) for name in wanted.values()}
    made: dict[Digest, Path] = {}
    for task in sorted({task for task, _ in places}):
        for shard, items, links in ledger.pieces(task):
            if (task, shard) in places and _is_without_holes(links):
                data, trailer = make_shard_file(outcomes, frame_writer, items, links)
                if trailer.digest in wanted and trailer.digest not in made:
                    made[trailer.digest] = again.root / layout.OUTPUTS / layout.adopted_name(trailer.digest)
                    again.files.write_new(made[trailer.digest], data)
    return made


def _is_without_holes(links: list[Link]) -> bool:
    return not links or (links[0].start == 0 and all(one.end == other.start for one, other in pairwise(links)))
