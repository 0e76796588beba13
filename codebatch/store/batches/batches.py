"""Batches on disk: made whole, opened by id, and described without reading their outputs."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from codebatch.errors import (
    BatchRemoved,
    CorruptFile,
    InvalidId,
    NotInStore,
    StoreCorrupt,
    StoreError,
    StoreUnwritable,
    UnknownId,
    WrongBatchKind,
)
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.documents import Document, DocumentError, InstantNs, decode_document, encode_document
from codebatch.model.entry import SnapshotId
from codebatch.model.task import TASK_NAME_PATTERN, WORK_PIPELINE
from codebatch.store import layout
from codebatch.store.batches.ids import BATCH_ID_PATTERN as BATCH_ID_PATTERN
from codebatch.store.batches.ids import MICROSECOND, id_at, instant_after_1970, instant_of
from codebatch.store.batches.ids import BatchId as BatchId
from codebatch.store.batches.store import StoreDir
from codebatch.store.documents import read_document
from codebatch.store.ids import PassedOver
from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.files import Files

if TYPE_CHECKING:  # Who opens a batch may ask for neither.
    from codebatch.model.plan import Plan
    from codebatch.store.snapshots.snapshots import Snapshot

BATCH_FORMAT = 1
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
"""A name that is given to a batch; referred to as `@` and the name."""

BatchKind = Literal["analysis", "work", "any"]
"""Which batches are meant (SPEC.md "Kinds of batches"): those that analyse files, or that run commands."""

_SUBDIRECTORIES = (
    layout.HOLDERS,
    layout.JOURNAL,
    layout.LEASES,
    layout.RESULTS,
    layout.OUTCOMES,
    layout.OUTPUTS,
    layout.SCRATCH,
)


class Checkout(msgspec.Struct, frozen=True):
    """Of which commit a tree is, empty where that is not known, and whether it is that commit's and nothing else."""

    commit: str
    is_clean: bool


NO_CHECKOUT = Checkout("", False)


class BatchFile(Document, frozen=True, kw_only=True):
    """The document batch.json: the description of a batch, for listings.

    - `sources`: the absolute root of the project, if it is known. If the given paths belong to no common project,
      several roots, sorted.
    - `paths`: the paths to which the plan is restricted.
    - `stat_cache`: the name of the file in `cache/` with the state of the source tree. It is empty if the batch was not
      made from a tree.
    - `bases`: the older batches from which results may be reused.
    - `commit`: the git commit of the work tree when the snapshot was taken, or empty if unknown. `is_clean` is set if
      the snapshot has exactly the files of this commit.
    - `imports`: the tasks of imported findings, each with the object of the imported file.
    - `project`: for a task list, the root of its project; `sources` is then the directory of the list. Empty for
      analyses.
    - `for_comparison`: the batch was run only as the base of a comparison. `latest~N` does not count it.
    """

    format: int = BATCH_FORMAT
    batch_id: BatchId
    snapshot_id: SnapshotId
    pipeline: str
    plan_digest: Digest
    sources: tuple[bytes, ...]
    paths: tuple[bytes, ...] = ()
    stat_cache: str = ""
    bases: tuple[BatchId, ...] = ()
    commit: str = ""
    is_clean: bool = False
    imports: dict[str, Digest] = msgspec.field(default_factory=dict)
    for_comparison: bool = False
    created_at_ns: InstantNs
    shards: int
    items: int
    project: bytes = b""

    @property
    def project_root(self) -> bytes:
        """The root of its project: as recorded, else its source or the directory that all its sources lie in."""
        try:
            return self.project or os.path.commonpath(self.sources)
        except ValueError:  # It has none, or one that is not absolute.
            return b""

    @property
    def place(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """What the batch is of: one tree, or the same paths of it."""
        return self.sources, self.paths


class BatchDir(msgspec.Struct, frozen=True):
    """A batch of a store."""

    files: Files
    root: Path
    about: BatchFile

    @property
    def id(self) -> BatchId:
        """The ID of the batch."""
        return self.about.batch_id

    def plan(self) -> Plan:
        """The plan of the batch. Raises StoreCorrupt."""
        from codebatch.model.plan import decode_plan

        path = self.root / layout.PLAN_FILE
        try:
            plan = read_document(self.files, path, decode_plan, hint=_lost(self.root))
        except FileNotFoundError as error:
            check_is_there(self.files, self.root)
            raise CorruptFile(str(path), "is missing", hint=_lost(self.root)) from error
        about = self.about
        if (plan.digest, plan.paths, plan.pipeline) != (about.plan_digest, about.paths, about.pipeline):
            raise CorruptFile(str(path), "belongs to another batch", hint=_lost(self.root))
        return plan


NEW_BATCH_HINT = "make a new batch with: codebatch run PATH; for a task list: codebatch work run"


def check_is_there(files: FileReader, batch_root: Path) -> None:
    """Look again for a batch of which something is missing. Raises CollectedMeanwhile where all of it is.

    Readers hold no lock, and gc takes a batch's name away before it removes anything of it.
    """
    if files.stat(batch_root) is None:
        raise BatchRemoved(batch_root.name)


def new_batch_id(store: StoreDir, at_ns: int, before: BatchId | None = None) -> BatchId:
    """A new id, which sorts behind those that there are, be it that the clock was set back since.

    One `before` another sorts ahead of it, where that is of an instant.
    """
    if before is not None:
        with contextlib.suppress(ValueError, OverflowError):
            return id_at(instant_of(before) - MICROSECOND)
    at = instant_after_1970(at_ns)
    for known in reversed(batch_ids(store)):
        with contextlib.suppress(ValueError, OverflowError):  # Names that look like ids may be a stranger's.
            at = max(at, instant_of(known) + MICROSECOND)
            break
    return id_at(at)


def create_batch(
    store: StoreDir,
    plan: Plan,
    *,
    sources: Sequence[bytes],
    stat_cache: str = "",
    bases: Sequence[BatchId] = (),
    checkout: Checkout = NO_CHECKOUT,
    at_ns: int,
    before: BatchId | None = None,
    for_comparison: bool = False,
    is_hidden: bool = False,
    project: bytes = b"",
    documents: Mapping[str, bytes] = MappingProxyType({}),
) -> BatchDir:
    """Make a batch directory, whole or not at all. On return it is on disk.

    One that `is_hidden` is found by nobody, and a leftover once its maker is dead. One `before` another sorts ahead of
    it, and so is not the latest. `documents`, by their names, are made with it. `project` is as in BatchFile.
    """
    from codebatch.model.analysis.imports import imports_in
    from codebatch.model.plan import encode_plan

    about = BatchFile(
        batch_id=BatchId(_hidden_name()) if is_hidden else new_batch_id(store, at_ns, before),
        snapshot_id=plan.snapshot_id,
        pipeline=plan.pipeline,
        plan_digest=plan.digest,
        sources=tuple(sources),
        paths=plan.paths,
        stat_cache=stat_cache,
        bases=tuple(bases),
        commit=checkout.commit,
        is_clean=checkout.is_clean,
        imports=imports_in(plan.tasks),
        for_comparison=for_comparison,
        created_at_ns=at_ns,
        shards=len(plan.shards),
        items=plan.items,
        project=project,
    )
    with building_batch(store, about) as root:
        store.files.write_new(root / layout.PLAN_FILE, encode_plan(plan))
        for name, data in documents.items():
            store.files.write_new(root / name, data)
    return BatchDir(store.files, store.batches / about.batch_id, about)


@contextlib.contextmanager
def hidden_batch(
    store: StoreDir, plan: Plan, *, sources: Sequence[bytes], bases: Sequence[BatchId] = (), at_ns: int
) -> Iterator[BatchDir]:
    """A batch that nobody finds, for the time being. Who is killed leaves it to the next one that writes."""
    batch = create_batch(store, plan, sources=sources, bases=bases, at_ns=at_ns, is_hidden=True)
    try:
        yield batch
    finally:
        store.files.remove_tree(batch.root)


@contextlib.contextmanager
def hidden_directory(store: StoreDir) -> Iterator[Path]:
    """A directory among the batches that nobody finds, for the time being. What is in it at the end goes.

    Who is killed, or may not remove it, leaves it to the next one that writes.
    """
    root = store.batches / _hidden_name()
    store.files.make_directory(root)
    try:
        yield root
    finally:
        with contextlib.suppress(StoreUnwritable):
            store.files.remove_tree(root)


@contextlib.contextmanager
def building_batch(store: StoreDir, about: BatchFile) -> Iterator[Path]:
    """A hidden directory with those of a batch, to put the plan and what else it has in; then the batch is published.

    On return it is on disk. What is put there must have come from `write_new`, or be durable already.
    """
    files = store.files
    root = store.batches / _hidden_name()
    try:
        for name in _SUBDIRECTORIES:
            files.make_directory(root / name)
        yield root
        files.write_new(root / layout.BATCH_FILE, encode_document(about))
        published = files.publish_directory(root, store.batches / about.batch_id)
    except BaseException:
        files.remove_tree(root)
        raise
    assert published, "a new batch id was taken"


def _hidden_name() -> str:
    return f".{uuid.uuid4().hex}.tmp"


def make_batch_directories(batch: BatchDir) -> None:
    """Make what a copy left out for being empty. Before anybody works on the batch here.

    On return the names of all are on disk, and the batch's own: who made them may have died before that.
    """
    for name in _SUBDIRECTORIES:
        batch.files.make_directory(batch.root / name)
    for directory in (batch.root, batch.root.parent):
        batch.files.sync_directory(directory)


def open_batch(store: StoreDir, batch_id: str) -> BatchDir:
    """Open a batch by its full id. Raises UnknownId or StoreCorrupt.

    A batch becomes visible with its document in it, so where the directory is there without it, it was lost.
    """
    path = store.batches / batch_id / layout.BATCH_FILE
    try:
        about = read_document(store.files, path, decode_batch, hint=_lost(path.parent))
    except (FileNotFoundError, NotADirectoryError) as error:
        if store.files.size(path.parent) is not None:
            raise CorruptFile(str(path), "is missing", hint=_lost(path.parent)) from error
        raise NotInStore("batch", batch_id) from error
    if about.batch_id != batch_id:
        raise CorruptFile(str(path), "belongs to another batch", hint=_lost(path.parent))
    return BatchDir(store.files, store.batches / batch_id, about)


def snapshot_of(store: StoreDir, batch: BatchDir) -> Snapshot:
    """The snapshot that a batch works on. Raises StoreCorrupt, also where it is gone."""
    from codebatch.store.snapshots.snapshots import SNAPSHOT_HINT, load_snapshot

    try:
        return load_snapshot(store.files, store.root, batch.about.snapshot_id)
    except UnknownId as error:
        check_is_there(batch.files, batch.root)
        raise StoreCorrupt(f"the snapshot of {batch.id} is missing: {error.message}", hint=SNAPSHOT_HINT) from error


def batch_ids(store: StoreDir) -> list[str]:
    """The ids of all batches, oldest first."""
    return [name for name in store.files.listing(store.batches) if BATCH_ID_PATTERN.match(name)]


def is_work(batch: BatchDir) -> bool:
    """Whether a batch is of commands."""
    return batch.about.pipeline == WORK_PIPELINE


def is_of_kind(batch: BatchDir, kind: BatchKind) -> bool:
    """Return whether a batch is of a kind."""
    return kind == "any" or is_work(batch) == (kind == "work")


def check_kind(batch: BatchDir, kind: BatchKind) -> None:
    """Raise WrongBatchKind where a batch is of the other kind than is meant."""
    if kind == "analysis" and is_work(batch):
        raise WrongBatchKind(
            f"batch {batch.id} is a `work` batch, not an analysis",
            hint=f"see its status with: codebatch status --batch {batch.id}; resume it with: codebatch "
            f"resume --batch {batch.id}; show output with: codebatch work log --batch {batch.id}",
        )
    if kind == "work" and not is_work(batch):
        raise WrongBatchKind(
            f"batch {batch.id} is an analysis, not a `work` batch",
            hint="list `work` batches with: codebatch batch list --pipeline work",
        )


def iter_batches(
    store: StoreDir, passed_over: PassedOver | None = None, *, kind: BatchKind = "analysis"
) -> Iterator[BatchDir]:
    """Every batch of a kind that can be read, latest first. A damaged one hides no other."""
    for batch_id in reversed(batch_ids(store)):
        try:
            batch = open_batch(store, batch_id)
        except (StoreError, UnknownId) as error:
            if passed_over is not None:
                passed_over(f"{batch_id} skipped: {error.message}")
            continue
        if is_of_kind(batch, kind):
            yield batch


def given_names(store: StoreDir) -> dict[str, BatchId]:
    """The names that were given to batches, be these there or not. Where several have one it is the latest's."""
    found = sorted(name.partition("@") for name in store.files.listing(store.root / layout.PINS))
    return {
        name: BatchId(batch_id)
        for batch_id, _, name in found
        if BATCH_ID_PATTERN.match(batch_id) and NAME_PATTERN.match(name)
    }


def check_name(name: str | None) -> None:
    """Raises InvalidId where there is a name and a batch cannot be given it."""
    if name is not None and not NAME_PATTERN.match(name):
        hint = "names have at most 64 letters, digits, '.', '-' and '_', and start with a letter or digit"
        raise InvalidId(f"{name!r} is not a valid batch name", hint=hint)


def decode_batch(data: bytes) -> BatchFile:
    """Read batch.json. Raises DocumentError."""
    about = decode_document(data, BatchFile, BATCH_FORMAT)
    if about.paths and not about.sources:
        raise DocumentError("it has paths without a source")
    if not layout.SNAPSHOT_ID_PATTERN.match(about.snapshot_id):
        raise DocumentError(f"its snapshot id {about.snapshot_id!r} is invalid")
    if not all(TASK_NAME_PATTERN.match(name) and DIGEST_PATTERN.match(each) for name, each in about.imports.items()):
        raise DocumentError("its list of imports is invalid")
    return about


def _lost(directory: Path) -> str:
    return f"this batch cannot be recovered: remove {directory}, and {NEW_BATCH_HINT}"
