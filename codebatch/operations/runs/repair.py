"""Repair of damaged shard files. Each file is replaced, under all its names, by a file equal to the original.

If another intact file with the same digest exists, it is the replacement. Otherwise, new workers execute the tasks
again in a hidden batch of the same plan. This batch may reuse results even from the damaged file, because each reused
result is verified against its checksum. A new file is used only if it has the digest that the manifest or commit file
records for the original.

Runs may continue during a repair. A run that reuses a damaged shard verifies it first, and treats it as a cache miss. A
run that adopts a whole batch, or merges, can give a damaged file new names that the repair does not know. These names
stay damaged until the next repair.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from codebatch.coordinator.analysis.merge import make_shard_file
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import CodebatchError, Stopped, StoreCorrupt, StoreError, StoreUnwritable
from codebatch.model.digest import Digest
from codebatch.model.plan import Plan
from codebatch.model.text.quantities import count_text
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.analysis.chains import ChainLink
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, hidden_batch, hidden_directory, iter_batches
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.shard_survey import (
    ShardFileSurvey,
    ShardName,
    iter_shard_names,
    shard_names,
    survey_shard_files,
)
from codebatch.store.sharing import hardlink_or_copy, ignoring_link_refusals
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import FileLock

T = TypeVar("T")

_CONTINUE_HINT = "to continue, run the same command again: files that are already repaired are kept"


class RepairFailure(msgspec.Struct, frozen=True):
    """The reason why files with a digest could not be repaired, and a hint."""

    message: str
    hint: str = "make a new batch with: codebatch run --again PATH"


class RepairFailures(NamedTuple):
    """The digests of the files that could not be repaired, with the reasons.

    All other damaged files were repaired, unless a signal ended the repair. `signal_status` is 0, or the exit status of
    the signal.
    """

    reasons: dict[Digest, RepairFailure]
    signal_status: int = 0

    def reason(self, digest: Digest) -> RepairFailure:
        """Return the reason why files with a digest are still damaged."""
        if self.signal_status:
            failure = RepairFailure("the repair was stopped", hint=_CONTINUE_HINT)
        else:
            failure = RepairFailure("the repaired file is damaged again")
        return self.reasons.get(digest, failure)


def repair_shard_files(
    execution: ExecutionSettings, store: StoreDir, lock: FileLock, shard_survey: ShardFileSurvey, listener: Listener
) -> RepairFailures:
    """Repair the damaged files that a full survey found: replace them by intact files, or execute their tasks again.

    `lock` is the lock that `Store.writing` returned. On return the repaired files are durable. If the process is
    killed, each name is in a state that `relink_names` describes. If a name cannot be replaced, the repair continues
    with the other names.

    Raises StoreUnwritable if the disk is full or fails, or if the store is read-only. Some names may then already be
    repaired.
    """
    reasons: dict[Digest, RepairFailure] = {}
    unrepaired = _replace_with_equal(store, shard_survey, reasons)
    batches = {name.batch.id: name.batch for names in unrepaired.values() for name in names}
    for batch_id in sorted(batches, reverse=True):
        requested = {digest: name for digest in unrepaired for name in unrepaired[digest] if name.batch.id == batch_id}
        if not requested:
            continue
        listener.note(
            f"repairing {count_text(len(requested), 'shard file')} of batch {batch_id}: running the tasks again"
        )
        signal_status = 0
        try:
            with (
                _recording_failure(reasons, requested),
                _reexecuting_tasks(execution, store, lock, batches[batch_id], requested, listener) as (
                    replacements,
                    signal_status,
                ),
            ):
                for digest, path in replacements.items():
                    reason = relink_names(store, path, (name.path for name in unrepaired.pop(digest)))
                    reasons.pop(digest, None)
                    if reason is not None:
                        reasons[digest] = reason
        except Stopped as stopped:
            signal_status = stopped.exit_status
        if signal_status:
            return RepairFailures(reasons, signal_status)
    return RepairFailures(
        {**dict.fromkeys(unrepaired, RepairFailure("executing its task again gave a different result")), **reasons}
    )


def _replace_with_equal(
    store: StoreDir, shard_survey: ShardFileSurvey, reasons: dict[Digest, RepairFailure]
) -> dict[Digest, list[ShardName]]:
    """Replace damaged files by intact files with the same digest.

    Return the names of the damaged files without an intact file, by digest.
    """
    unrepaired: dict[Digest, list[ShardName]] = {}
    for fault in shard_survey.faults:
        equal = shard_survey.sound.get(fault.digest)
        if equal is None:
            unrepaired.setdefault(fault.digest, []).extend(fault.names)
            continue
        with _recording_failure(reasons, [fault.digest]):
            reason = relink_names(store, next(iter(equal.values()))[0].path, (name.path for name in fault.names))
            if reason is not None:
                reasons[fault.digest] = reason
    return unrepaired


def repair_batch(
    execution: ExecutionSettings, store: StoreDir, lock: FileLock, listener: Listener, batch: BatchDir
) -> bool:
    """Repair the shard files of a batch, under all their names. Return True if a file was damaged and is repaired now.

    Raises StoreCorrupt if a file cannot be repaired, Stopped if a signal ended the repair, or StoreUnwritable.
    """
    faults = survey_shard_files(store.files, shard_names(batch), is_full=True).faults
    if not faults:
        return False
    digests = {fault.digest for fault in faults}
    survey_of_all = survey_shard_files(store.files, iter_matching_names(iter_batches(store), digests), is_full=True)
    failures = repair_shard_files(execution, store, lock, survey_of_all, listener)
    if failures.signal_status:
        raise Stopped("stopped while repairing damage", hint=_CONTINUE_HINT, exit_status=failures.signal_status)
    for fault in survey_shard_files(store.files, shard_names(batch), is_full=True).faults:
        reason = failures.reason(fault.digest)
        message = f"{fault.names[0].path} is damaged ({fault.problem}) and could not be repaired: {reason.message}"
        raise StoreCorrupt(message, hint=reason.hint)
    return True


class RepairSession(NamedTuple):
    """A wrapper for actions that read a batch.

    If an action finds damaged shard files, they are repaired, and the action is repeated. One repetition is enough,
    because a repair ends with intact files or with an error.
    """

    execution: ExecutionSettings
    store: StoreDir
    lock: FileLock
    listener: Listener

    def __call__(self, batch: BatchDir, act: Callable[[], T], signal_status: int = 0) -> T:
        """Return the result of `act`. Raises the errors of `act` and `repair_batch`.

        If `signal_status` is not 0, a signal has ended the run. Then nothing is repaired, and damage raises Stopped.
        """
        try:
            return act()
        except StoreCorrupt as damage:
            if signal_status:
                raise Stopped.before_repair(damage, signal_status) from damage
            if not repair_batch(*self, batch):
                raise
        return act()


def iter_matching_names(batches: Iterable[BatchDir], digests: Collection[Digest]) -> Iterator[ShardName]:
    """Yield the names of all shard files in some batches that have one of the digests.

    Unreadable batches are skipped.
    """
    return (name for name in iter_shard_names(batches) if name.digest in digests)


def relink_names(store: StoreDir, source: Path, paths: Iterable[Path]) -> RepairFailure | None:
    """Replace names by hard links to a durable file, or by copies of it.

    If a name could not be replaced, return the reason, otherwise None. On return all replaced names are durable. If the
    process is killed, each name has its old or its new file. A name that was a directory can be missing. Raises
    StoreUnwritable.
    """
    refused: list[StoreError] = []
    files, directories = store.files, set()
    with hidden_directory(store) as hidden:
        for number, path in enumerate(paths):
            link = hidden / str(number)
            hardlink_or_copy(files, source, link)
            with ignoring_link_refusals(refused.append):
                files.make_directory(path.parent)
                status = files.stat(path)
                if status is not None and stat.S_ISDIR(status.st_mode):
                    files.replace(path, hidden / f"{number}.aside")
                files.replace(link, path)
                directories.add(path.parent)
                # The next link is made to this file. If `source` has reached its link limit, `path` is a copy that can
                # have further links.
                source = path
        for directory in sorted(directories):
            files.sync_directory(directory)
    return RepairFailure(refused[0].message, refused[0].hint or "") if refused else None


@contextlib.contextmanager
def _recording_failure(reasons: dict[Digest, RepairFailure], digests: Iterable[Digest]) -> Iterator[None]:
    """Record a CodebatchError that the block raises as the reason why files with some digests were not repaired.

    StoreUnwritable and Stopped propagate, because they end the whole repair.
    """
    try:
        yield
    except (StoreUnwritable, Stopped):
        raise
    except CodebatchError as error:
        reasons.update(dict.fromkeys(digests, RepairFailure(error.message)))


@contextlib.contextmanager
def _reexecuting_tasks(
    execution: ExecutionSettings,
    store: StoreDir,
    lock: FileLock,
    batch: BatchDir,
    requested: Mapping[Digest, ShardName],
    listener: Listener,
) -> Iterator[tuple[dict[Digest, Path], int]]:
    """Execute the tasks that produce some files again.

    Yield temporary replacement files by digest, and the exit status of a signal or 0. A file that differs from the
    original is left out.
    """
    plan = batch.plan()
    needed = frozenset().union(*(plan.needed_for(name.task) for name in requested.values()))
    is_of_files = {name.task for name in requested.values()}.isdisjoint(plan.project_tasks)
    scope = RunScope(tasks=needed, shards=frozenset(name.shard for name in requested.values()) if is_of_files else None)
    sources = batch.about.sources or (b"/",)
    with hidden_batch(
        store, plan, sources=sources, bases=(batch.id,), programs=batch.about.programs, at_ns=wall_ns()
    ) as rerun:
        executed = replace(execution, reuses=True).execute(store, lock, rerun, scope, listener)
        yield _equal_files(rerun, plan, requested), executed.signal_status


def _equal_files(rerun: BatchDir, plan: Plan, requested: Mapping[Digest, ShardName]) -> dict[Digest, Path]:
    outcomes = OutcomeRegisters(rerun.files, rerun.root)
    ledger = load_ledger(plan, outcomes)
    frame_writer = FrameWriter()
    places = {(name.task, name.shard) for name in requested.values()}
    replacements: dict[Digest, Path] = {}
    for task in sorted({task for task, _ in places}):
        for shard, items, links in ledger.iter_shard_results(task):
            if (task, shard) in places and _is_contiguous(links):
                data, trailer = make_shard_file(outcomes, frame_writer, items, links)
                if trailer.digest in requested and trailer.digest not in replacements:
                    replacements[trailer.digest] = rerun.root / layout.OUTPUTS / layout.adopted_name(trailer.digest)
                    rerun.files.write_new(replacements[trailer.digest], data)
    return replacements


def _is_contiguous(links: list[ChainLink]) -> bool:
    return not links or (links[0].start == 0 and all(left.end == right.start for left, right in pairwise(links)))
