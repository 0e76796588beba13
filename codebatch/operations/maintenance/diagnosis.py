"""Diagnosis of damage in a store, and its repair."""

from __future__ import annotations

import contextlib
import math
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from codebatch.errors import ObjectMissing, StoreError, UnknownId
from codebatch.index.build import build_generation
from codebatch.index.generations import index_directory, index_hint
from codebatch.index.read import open_index
from codebatch.model.digest import Digest
from codebatch.model.entry import SnapshotId
from codebatch.model.text.quantities import count_text
from codebatch.model.work.command import CommandId
from codebatch.operations import ignore_note
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.repair import RepairFailures, iter_matching_names, repair_shard_files
from codebatch.store import layout
from codebatch.store.batches.batch_directory import (
    BatchDir,
    BatchId,
    batch_ids,
    is_work,
    load_batch_snapshot,
    open_batch,
)
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.maintenance.collection import iter_record_objects
from codebatch.store.objects.survey import may_miss_objects, survey_objects
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.shard_files import DAMAGE_HINT
from codebatch.store.results.shard_survey import SampleChooser, ShardFault, ShardName, shard_names, survey_shard_files
from codebatch.store.results.untrusted import load_untrusted
from codebatch.store.snapshots.snapshots import load_snapshot, snapshot_ids
from codebatch.store.work.applications import ApplicationStore
from codebatch.store.work.attempts import AttemptReader, unreadable_last
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import read_command_ids, read_work


class DamageReport(msgspec.Struct, frozen=True, kw_only=True):
    """Damage in the store: the problem, the names of the file relative to the store, and a hint. Repaired damage has no
    hint.

    For a result file, `digest` is the digest in its trailer. Missing files with the same digest are reported as one
    file.

    For other damage, `digest` is empty. `names` has only the name of the batch, index or snapshot, and `problem`
    contains the name of the file.
    """

    problem: str
    names: tuple[str, ...]
    digest: str = ""
    hint: str = ""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch diagnose`: what was checked, and what is damaged.

    - `full`: whether all bytes were read. Otherwise, only metadata and the sizes of result files were checked.
    - `files`: the number of result files.
    - `names`: the number of names of these files. Several batches can share a file, each with its own name.
    - `fully_read`: the number of result files that were read completely.
    """

    full: bool
    batches: int
    snapshots: int
    files: int
    names: int
    fully_read: int
    repaired: tuple[DamageReport, ...] = ()
    damaged: tuple[DamageReport, ...] = ()


def diagnose_store(store: StoreDir, *, is_full: bool, share: float = 0.0) -> Diagnosis:
    """Check the store for damage without changing it: documents, snapshots, and the shard files of all batches.

    If `is_full` is False, only a random `share` of the shard files is read completely. At least one file is read,
    unless `share` is 0. Raises StoreError if the store itself cannot be read.
    """

    def choose(digests: Sequence[Digest]) -> Container[Digest]:
        count = min(math.ceil(share * len(digests)), len(digests))
        return frozenset(Random().sample(digests, count))  # noqa: S311 (a sample, no secret)

    return _StoreInspection(store, is_full=is_full, choose=choose).make_diagnosis()


def repair_store(execution: ExecutionSettings, store: StoreDir, listener: Listener) -> tuple[Diagnosis, int]:
    """Read all bytes of the store, repair damaged shard files, and rebuild damaged indexes.

    Return the diagnosis, and the exit status of the signal that stopped the repair, or 0. On return the repaired files
    are durable. Raises StoreUnwritable; some files may then already be repaired.
    """
    with store.writing() as lock:
        state = _StoreInspection(store, is_full=True)
        before = state.survey.faults
        if not before:
            state.rebuild_indexes()
            return state.make_diagnosis(), 0
        failures = repair_shard_files(execution, store, lock, state.survey, listener)
        digests = {fault.digest for fault in before}
        remaining = survey_shard_files(store.files, iter_matching_names(state.batches, digests), is_full=True).faults
        if not failures.signal_status:
            state.rebuild_indexes()
        return state.make_diagnosis(before, remaining, failures), failures.signal_status


class _StoreInspection:
    """The snapshots, batches and shard files of a store at the time of the check, and the damage found in them."""

    def __init__(self, store: StoreDir, *, is_full: bool, choose: SampleChooser = lambda _: ()) -> None:
        self._store = store
        self._is_full = is_full
        self._unreadable_damage: list[DamageReport] = []
        self._indexes: dict[BatchId, DamageReport] = {}
        self._rebuilt_indexes: list[DamageReport] = []
        self.batches: list[BatchDir] = []
        with self._recording_damage(store.root / layout.UNTRUSTED_FILE):
            load_untrusted(store)
        # Batches are listed before snapshots. A snapshot is published before its batch. So for each listed batch, its
        # snapshot is listed too.
        names = [name for batch_id in reversed(batch_ids(store)) for name in self._batch_shard_names(batch_id)]
        self._snapshot_ids = snapshot_ids(store.files, store.root)
        for snapshot_id in self._snapshot_ids:
            with self._recording_damage(store.root / layout.SNAPSHOTS / snapshot_id):
                snapshot = load_snapshot(store.files, store.root, snapshot_id)
                if is_full:
                    snapshot.check()
                else:
                    snapshot.check_length()
        if is_full or may_miss_objects(store.objects()):
            self._check_objects()
        self.survey = survey_shard_files(store.files, names, is_full=is_full, choose=choose)
        for name in (layout.PINS, layout.CACHE, layout.LOCKS):
            self._is_readable_directory(store.root / name)
        indexes = store.root / layout.INDEXES
        if self._is_readable_directory(indexes):
            self._is_readable_directory(indexes / layout.TERMS)
            for batch in self.batches:
                if self._is_readable_directory(index_directory(store, batch.id)):
                    self._check_index(batch)

    def _is_readable_directory(self, path: Path) -> bool:
        """Return whether a path is a directory or does not exist.

        Otherwise, no file can be created below the path; this is recorded as damage.
        """
        status = self._store.files.stat(path)
        if status is None or stat.S_ISDIR(status.st_mode):
            return True
        problem, hint = f"{path} is not a directory", f"move it away: {path}"
        self._unreadable_damage.append(DamageReport(problem=problem, names=(self._relative_path(path),), hint=hint))
        return False

    def _check_index(self, batch: BatchDir) -> None:
        try:
            index = open_index(self._store, batch.id)
            if index is not None:
                index.check()
        except StoreError as error:
            path = self._relative_path(index_directory(self._store, batch.id))
            self._indexes[batch.id] = DamageReport(problem=error.message, names=(path,), hint=index_hint(batch.id))

    def _check_objects(self) -> None:
        """Check that all objects named by snapshots and records exist.

        All missing objects of a snapshot or batch are recorded as one damage.
        """
        objects = self._store.objects()
        required: dict[str, Path] = {}
        for batch in self.batches:
            with self._recording_damage(batch.root):
                required.update(dict.fromkeys(iter_record_objects(self._store, batch), batch.root))
        for snapshot_id in self._snapshot_ids:
            path = self._store.root / layout.SNAPSHOTS / snapshot_id
            with self._recording_damage(path):
                snapshot = load_snapshot(self._store.files, self._store.root, snapshot_id, objects=objects)
                required.update(dict.fromkeys(snapshot.object_digests(), path))
        missing_objects: dict[Path, list[ObjectMissing]] = {}
        for name, error in survey_objects(objects, required, is_full=self._is_full):
            if error is not None:
                missing_objects.setdefault(required[name], []).append(error)
        for path, (first, *other_paths) in missing_objects.items():
            if self._store.files.stat(path) is not None:  # If the path is missing, prune deleted it during the check.
                more = f", and {count_text(len(other_paths), 'more object')}" if other_paths else ""
                problem = f"{first.message}{more}"
                self._unreadable_damage.append(
                    DamageReport(problem=problem, names=(self._relative_path(path),), hint=first.hint or "")
                )

    def rebuild_indexes(self) -> None:
        """Rebuild the damaged indexes of batches with intact outputs."""
        for batch in self.batches:
            if batch.id in self._indexes:
                with self._recording_damage(batch.root):
                    if (outputs := current_outputs(batch)) is not None:
                        build_generation(self._store, batch, outputs, ignore_note, rebuilds=True)
                        self._rebuilt_indexes.append(replace(self._indexes.pop(batch.id), hint=""))

    def _batch_shard_names(self, batch_id: str) -> list[ShardName]:
        names: list[ShardName] = []
        root = self._store.batches / batch_id
        with self._recording_damage(root):
            batch = open_batch(self._store, batch_id)
            self.batches.append(batch)
            with self._recording_damage(root):
                batch.plan()
            if self._store.files.stat(self._store.root / layout.SNAPSHOTS / batch.about.snapshot_id) is None:
                with self._recording_damage(root):
                    load_batch_snapshot(self._store, batch)
            with self._recording_damage(root):
                RequestStore(self._store.files, root).read()
            if is_work(batch):
                with self._recording_damage(root):
                    work = read_work(batch)
                    self._check_attempts(batch, read_command_ids(self._store, batch, work))
                    if work.trees is not UNSET and work.trees.snapshot:
                        self._check_tree_snapshot(batch, work.trees.snapshot)
                with self._recording_damage(root):
                    ApplicationStore(self._store.files, root).read()
            names += shard_names(batch)
        return names

    def _check_tree_snapshot(self, batch: BatchDir, snapshot_id: SnapshotId) -> None:
        """Record damage if the snapshot with which trees of a batch start is missing."""
        if self._store.files.stat(self._store.root / layout.SNAPSHOTS / snapshot_id) is None:
            hint = "make a new batch with: codebatch work run"
            problem = f"snapshot {snapshot_id}, with which the trees of its tasks start, is missing"
            self._unreadable_damage.append(
                DamageReport(problem=problem, names=(self._relative_path(batch.root),), hint=hint)
            )

    def _check_attempts(self, batch: BatchDir, commands: Sequence[CommandId]) -> None:
        """Record damage for each attempt whose outcome file is unreadable. No other file has the outcome."""
        for item in unreadable_last(AttemptReader(batch.plan(), OutcomeRegisters(batch.files, batch.root)).read()):
            problem = (
                f"the outcome of the last attempt of {commands[item]} cannot be read; "
                "the attempt is treated as interrupted"
            )
            hint = f"see what happens next with: codebatch status --batch {batch.id}"
            self._unreadable_damage.append(
                DamageReport(problem=problem, names=(self._relative_path(batch.root),), hint=hint)
            )

    @contextlib.contextmanager
    def _recording_damage(self, path: Path) -> Iterator[None]:
        """Record a StoreError that the block raises as damage.

        Ignore the error if `prune` has deleted the batch or snapshot in the meantime.
        """
        try:
            yield
        except UnknownId:
            pass
        except StoreError as error:
            if self._store.files.stat(path) is not None:
                self._unreadable_damage.append(
                    DamageReport(problem=error.message, names=(self._relative_path(path),), hint=error.hint or "")
                )

    def make_diagnosis(
        self,
        before: Iterable[ShardFault] = (),
        remaining: Iterable[ShardFault] | None = None,
        failures: RepairFailures | None = None,
    ) -> Diagnosis:
        """Return the diagnosis.

        After a repair, `before` is the damage that was found before it, and `remaining` is the damage that is left.
        """
        remaining = self.survey.faults if remaining is None else remaining
        remaining_digests = {fault.digest for fault in remaining}
        return Diagnosis(
            full=self._is_full,
            batches=len(self.batches),
            snapshots=len(self._snapshot_ids),
            files=self.survey.files,
            names=self.survey.names,
            fully_read=self.survey.read,
            repaired=(
                *(
                    self._make_damage(fault, fault.problem, "")
                    for fault in before
                    if fault.digest not in remaining_digests
                ),
                *self._rebuilt_indexes,
            ),
            damaged=(
                *self._unreadable_damage,
                *self._indexes.values(),
                *(self._remaining_damage(fault, failures) for fault in remaining),
            ),
        )

    def _remaining_damage(self, fault: ShardFault, failures: RepairFailures | None) -> DamageReport:
        if failures is None:
            return self._make_damage(fault, fault.problem, DAMAGE_HINT)
        reason = failures.reason(fault.digest)
        return self._make_damage(fault, f"{fault.problem}; not repaired: {reason.message}", reason.hint)

    def _make_damage(self, fault: ShardFault, problem: str, hint: str) -> DamageReport:
        names = tuple(self._relative_path(name.path) for name in fault.names)
        return DamageReport(problem=problem, names=names, digest=fault.digest, hint=hint)

    def _relative_path(self, path: Path) -> str:
        return str(path.relative_to(self._store.root))
