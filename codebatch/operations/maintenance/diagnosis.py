"""Diagnosing a store: what of it is not what was written, and mending what can be mended."""

from __future__ import annotations

import contextlib
import math
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec
from msgspec.structs import replace

from codebatch.errors import ObjectMissing, StoreError, UnknownId
from codebatch.index.build import build
from codebatch.index.generations import index_hint, indexes_of
from codebatch.index.read import open_index
from codebatch.model.digest import Digest
from codebatch.model.text.quantities import count_of
from codebatch.model.work.command import CommandId
from codebatch.operations import ignore_note
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.repair import RepairFailures, names_of, repair_shard_files
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir, BatchId, batch_ids, is_work, open_batch, snapshot_of
from codebatch.store.batches.store import StoreDir
from codebatch.store.maintenance.collection import objects_of_records
from codebatch.store.objects.survey import may_lack_objects, survey_objects
from codebatch.store.results.outcomes import Outcomes
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.shard_files import DAMAGE_HINT
from codebatch.store.results.shard_survey import Choose, Fault, ShardName, shard_names, survey
from codebatch.store.results.untrusted import load_untrusted
from codebatch.store.snapshots.snapshots import load_snapshot, snapshot_ids
from codebatch.store.work.attempts import Attempts, unreadable_last
from codebatch.store.work.requests import Requests
from codebatch.store.work.work_batches import commands_of, read_work


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """Damage in the store: the problem, the names of the file relative to the store, and a hint.

    For a result file, `digest` is the digest of its trailer. Missing files with the same digest are reported as one
    file. For other damage, `digest` is empty, the only name is the name of the batch, index or snapshot, and `problem`
    contains the file name. Repaired damage has no hint.
    """

    problem: str
    names: tuple[str, ...]
    digest: str = ""
    hint: str = ""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch diagnose`: what was checked, and what is damaged.

    `full` is set if all bytes were read; otherwise, only metadata and the sizes of result files were checked. `files`
    is the number of result files, `names` the number of their names, and `fully_read` the number of files that were
    read completely.
    """

    full: bool
    batches: int
    snapshots: int
    files: int
    names: int
    fully_read: int
    repaired: tuple[Damage, ...] = ()
    damaged: tuple[Damage, ...] = ()


def diagnose(store: StoreDir, *, is_full: bool, share: float = 0.0, chance: Random | None = None) -> Diagnosis:
    """Look for damage in documents, in snapshots and in the shard files of all batches. Changes nothing.

    Where it is not full, of a `share` of the shard files, at least one where it is not 0, every byte is read all the
    same: those that `chance` gives. Raises StoreError where the store itself cannot be read.
    """

    def choose(digests: Sequence[Digest]) -> Container[Digest]:
        count = min(math.ceil(share * len(digests)), len(digests))
        return frozenset((chance or Random()).sample(digests, count))  # noqa: S311 (a sample, no secret)

    return _StoreState(store, is_full=is_full, choose=choose).told()


def repair(execution: ExecutionSettings, store: StoreDir, listener: Listener) -> tuple[Diagnosis, int]:
    """Look for damage in every byte, mend damaged shard files, and make damaged indexes anew.

    On return what was mended is on disk.

    The number is 0, or the exit status of the signal that ended it. Raises StoreUnwritable: then some names are done,
    and others as before.
    """
    with store.writing() as lock:
        look = _StoreState(store, is_full=True)
        before = look.survey.faults
        if not before:
            look.remake_indexes()
            return look.told(), 0
        mended = repair_shard_files(execution, store, lock, look.survey, listener)
        digests = {fault.digest for fault in before}
        left = survey(store.files, names_of(look.batches, digests), is_full=True).faults
        if not mended.signal_status:
            look.remake_indexes()
        return look.told(before, left, mended), mended.signal_status


class _StoreState:
    """What a store looks like now."""

    def __init__(self, store: StoreDir, *, is_full: bool, choose: Choose = lambda _: ()) -> None:
        self._store = store
        self._is_full = is_full
        self._unreadable: list[Damage] = []
        self._indexes: dict[BatchId, Damage] = {}
        self._remade: list[Damage] = []
        self.batches: list[BatchDir] = []
        with self._noting(store.root / layout.UNTRUSTED_FILE):
            load_untrusted(store)
        # Those first: whoever makes a batch has published its snapshot before.
        names = [name for batch_id in reversed(batch_ids(store)) for name in self._names_in(batch_id)]
        self._snapshots = snapshot_ids(store.files, store.root)
        for snapshot_id in self._snapshots:
            with self._noting(store.root / layout.SNAPSHOTS / snapshot_id):
                snapshot = load_snapshot(store.files, store.root, snapshot_id)
                if is_full:
                    snapshot.check()
                else:
                    snapshot.check_length()
        if is_full or may_lack_objects(store.objects()):
            self._look_at_objects()
        self.survey = survey(store.files, names, is_full=is_full, choose=choose)
        for name in (layout.PINS, layout.CACHE, layout.LOCKS):
            self._is_directory(store.root / name)
        indexes = store.root / layout.INDEXES
        if self._is_directory(indexes):
            self._is_directory(indexes / layout.TERMS)
            for batch in self.batches:
                if self._is_directory(indexes_of(store, batch.id)):
                    self._look_at_index(batch)

    def _is_directory(self, path: Path) -> bool:
        """Whether nothing but a directory has a name, if anything; else it is told: nothing is written there."""
        found = self._store.files.stat(path)
        if found is None or stat.S_ISDIR(found.st_mode):
            return True
        problem, hint = f"{path} is not a directory", f"move it away: {path}"
        self._unreadable.append(Damage(problem=problem, names=(self._shown(path),), hint=hint))
        return False

    def _look_at_index(self, batch: BatchDir) -> None:
        try:
            index = open_index(self._store, batch.id)
            if index is not None:
                index.check()
        except StoreError as error:
            path = self._shown(indexes_of(self._store, batch.id))
            self._indexes[batch.id] = Damage(problem=error.message, names=(path,), hint=index_hint(batch.id))

    def _look_at_objects(self) -> None:
        """See whether all that snapshots and records name is there. Of each it is told once, by its first loss."""
        objects = self._store.objects()
        wanted: dict[str, Path] = {}
        for batch in self.batches:
            with self._noting(batch.root):
                wanted.update(dict.fromkeys(objects_of_records(batch), batch.root))
        for snapshot_id in self._snapshots:
            path = self._store.root / layout.SNAPSHOTS / snapshot_id
            with self._noting(path):
                snapshot = load_snapshot(self._store.files, self._store.root, snapshot_id, objects=objects)
                wanted.update(dict.fromkeys(snapshot.objects(), path))
        lost: dict[Path, list[ObjectMissing]] = {}
        for name, missing in survey_objects(objects, wanted, is_full=self._is_full):
            if missing is not None:
                lost.setdefault(wanted[name], []).append(missing)
        for path, (first, *others) in lost.items():
            if self._store.files.stat(path) is not None:  # Else it was collected meanwhile.
                more = f", and {count_of(len(others), 'more object')}" if others else ""
                problem = f"{first.message}{more}"
                self._unreadable.append(Damage(problem=problem, names=(self._shown(path),), hint=first.hint or ""))

    def remake_indexes(self) -> None:
        """Make those that are damaged anew, of the batches whose outputs are sound."""
        for batch in self.batches:
            if batch.id in self._indexes:
                with self._noting(batch.root):
                    if (outputs := current_outputs(batch)) is not None:
                        build(self._store, batch, outputs, ignore_note, is_anew=True)
                        self._remade.append(replace(self._indexes.pop(batch.id), hint=""))

    def _names_in(self, batch_id: str) -> list[ShardName]:
        names: list[ShardName] = []
        root = self._store.batches / batch_id
        with self._noting(root):
            batch = open_batch(self._store, batch_id)
            self.batches.append(batch)
            with self._noting(root):
                batch.plan()
            if self._store.files.stat(self._store.root / layout.SNAPSHOTS / batch.about.snapshot_id) is None:
                with self._noting(root):
                    snapshot_of(self._store, batch)
            with self._noting(root):
                Requests(self._store.files, root).read()
            if is_work(batch):
                with self._noting(root):
                    commands = commands_of(self._store, batch, read_work(batch))
                    self._look_at_attempts(batch, commands)
            names += shard_names(batch)
        return names

    def _look_at_attempts(self, batch: BatchDir, commands: Sequence[CommandId]) -> None:
        """Nothing but its register says how an attempt ended."""
        for item in unreadable_last(Attempts(batch.plan(), Outcomes(batch.files, batch.root)).read()):
            problem = (
                f"the outcome of the last attempt of {commands[item]} cannot be read; "
                "the attempt is treated as interrupted"
            )
            hint = f"see what happens next with: codebatch status --batch {batch.id}"
            self._unreadable.append(Damage(problem=problem, names=(self._shown(batch.root),), hint=hint))

    @contextlib.contextmanager
    def _noting(self, path: Path) -> Iterator[None]:
        """Take note of what is damaged, and pass over what was collected meanwhile."""
        try:
            yield
        except UnknownId:
            pass
        except StoreError as error:
            if self._store.files.stat(path) is not None:
                self._unreadable.append(
                    Damage(problem=error.message, names=(self._shown(path),), hint=error.hint or "")
                )

    def told(
        self, before: Iterable[Fault] = (), left: Iterable[Fault] | None = None, mended: RepairFailures | None = None
    ) -> Diagnosis:
        """What was found; where it was to be mended, what had been damaged `before` and what is `left`."""
        left = self.survey.faults if left is None else left
        still = {fault.digest for fault in left}
        return Diagnosis(
            full=self._is_full,
            batches=len(self.batches),
            snapshots=len(self._snapshots),
            files=self.survey.files,
            names=self.survey.names,
            fully_read=self.survey.read,
            repaired=(
                *(self._damage(fault, fault.problem, "") for fault in before if fault.digest not in still),
                *self._remade,
            ),
            damaged=(*self._unreadable, *self._indexes.values(), *(self._left(fault, mended) for fault in left)),
        )

    def _left(self, fault: Fault, mended: RepairFailures | None) -> Damage:
        if mended is None:
            return self._damage(fault, fault.problem, DAMAGE_HINT)
        reason = mended.reason(fault.digest)
        return self._damage(fault, f"{fault.problem}; not repaired: {reason.told}", reason.hint)

    def _damage(self, fault: Fault, problem: str, hint: str) -> Damage:
        names = tuple(self._shown(name.path) for name in fault.names)
        return Damage(problem=problem, names=names, digest=fault.digest, hint=hint)

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self._store.root))
