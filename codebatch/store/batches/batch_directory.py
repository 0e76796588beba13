"""Batches on disk: atomic creation, opening by ID, and batch.json, which describes a batch but not its outputs."""

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
from codebatch.model.plan import Plan, decode_plan, encode_plan
from codebatch.model.task import TASK_NAME_PATTERN, WORK_PIPELINE
from codebatch.store import layout
from codebatch.store.batches.ids import BATCH_ID_PATTERN as BATCH_ID_PATTERN
from codebatch.store.batches.ids import ONE_MICROSECOND, batch_id_at, batch_id_instant, instant_after_1970
from codebatch.store.batches.ids import BatchId as BatchId
from codebatch.store.batches.source_places import SourcePlace, locate_source
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.documents import read_document
from codebatch.store.ids import SkipCallback
from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.files import StoreFiles

if TYPE_CHECKING:  # Workers open batches and need no snapshot.
    from codebatch.store.snapshots.snapshots import Snapshot

BATCH_FORMAT = 1
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
"""A name that a user gives to a batch. References to it are `@` followed by the name."""

BatchKind = Literal["analysis", "work", "any"]
"""The kind of batch: one that analyzes files, one that runs commands, or either (SPEC.md "Kinds of batches")."""

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
    """The git commit of a source tree, empty if unknown. `is_clean`: the tree has exactly the files of this commit."""

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
    - `programs`: for each task that calls a program, a digest of the files outside of the project that its command
      names. Batches with another one have no results for this batch.
    - `project`: for a task list, the root of its project; `sources` is then the directory of the list. Empty for
      analyses.
    - `for_comparison`: the batch was run only as the base of a comparison. `latest~N` does not count it.
    - `place`: where the source was, as evidence for its removal. None if it is not one directory, or unknown.
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
    programs: dict[str, Digest] = msgspec.field(default_factory=dict)
    for_comparison: bool = False
    created_at_ns: InstantNs
    shards: int
    items: int
    project: bytes = b""
    place: SourcePlace | None = None

    @property
    def project_root(self) -> bytes:
        """The root of the project: the recorded one, otherwise the source or the common parent of all sources."""
        try:
            return self.project or os.path.commonpath(self.sources)
        except ValueError:  # There is no source, or one of them is not absolute.
            return b""

    @property
    def sources_and_paths(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """The sources and the restricting paths. Equal places mean the same part of the same tree."""
        return self.sources, self.paths


class BatchDir(msgspec.Struct, frozen=True):
    """The stored data of a batch."""

    files: StoreFiles
    root: Path
    about: BatchFile

    @property
    def id(self) -> BatchId:
        """The ID of the batch."""
        return self.about.batch_id

    def plan(self) -> Plan:
        """Return the plan of the batch. Raises StoreCorrupt."""
        path = self.root / layout.PLAN_FILE
        try:
            plan = read_document(self.files, path, decode_plan, hint=_unrecoverable_hint(self.root))
        except FileNotFoundError as error:
            check_batch_exists(self.files, self.root)
            raise CorruptFile(str(path), "is missing", hint=_unrecoverable_hint(self.root)) from error
        about = self.about
        if (plan.digest, plan.paths, plan.pipeline) != (about.plan_digest, about.paths, about.pipeline):
            raise CorruptFile(str(path), "belongs to another batch", hint=_unrecoverable_hint(self.root))
        return plan


NEW_BATCH_HINT = "make a new batch with: codebatch run PATH; for a task list: codebatch work run"


def check_batch_exists(files: FileReader, batch_root: Path) -> None:
    """Raise BatchRemoved if the directory of a batch no longer exists.

    A reader calls this if a file of the batch is missing. Readers hold no lock, so garbage collection may remove a
    batch while it is read. Garbage collection renames the directory to a hidden name first, then removes the files.
    """
    if files.stat(batch_root) is None:
        raise BatchRemoved(batch_root.name)


def new_batch_id(store: StoreDir, at_ns: int, before: BatchId | None = None) -> BatchId:
    """Return a new batch ID, which sorts after all existing IDs even if the clock was set back.

    If `before` is given and is a valid ID, the new ID sorts before it.
    """
    if before is not None:
        with contextlib.suppress(ValueError, OverflowError):
            return batch_id_at(batch_id_instant(before) - ONE_MICROSECOND)
    at = instant_after_1970(at_ns)
    for existing_id in reversed(batch_ids(store)):
        with contextlib.suppress(ValueError, OverflowError):  # A name may match the pattern without being a valid date.
            at = max(at, batch_id_instant(existing_id) + ONE_MICROSECOND)
            break
    return batch_id_at(at)


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
    programs: Mapping[str, Digest] = MappingProxyType({}),
    documents: Mapping[str, bytes] = MappingProxyType({}),
) -> BatchDir:
    """Create a batch directory atomically. On return it is on disk.

    If `is_hidden` is set, no reader finds the batch. After the creator has died, the next writer removes the batch. If
    `before` is set, the new ID sorts before the ID `before`, so the new batch does not become the latest one.
    `documents` maps names of further files in the directory to their contents. `project` and `programs` become members
    of batch.json (BatchFile).
    """
    from codebatch.model.analysis.imports import imported_objects

    about = BatchFile(
        batch_id=BatchId(_make_hidden_name()) if is_hidden else new_batch_id(store, at_ns, before),
        snapshot_id=plan.snapshot_id,
        pipeline=plan.pipeline,
        plan_digest=plan.digest,
        sources=tuple(sources),
        paths=plan.paths,
        stat_cache=stat_cache,
        bases=tuple(bases),
        commit=checkout.commit,
        is_clean=checkout.is_clean,
        imports=imported_objects(plan.tasks),
        programs=dict(programs),
        for_comparison=for_comparison,
        created_at_ns=at_ns,
        shards=len(plan.shards),
        items=plan.item_count,
        project=project,
        place=locate_source(sources, store.root),
    )
    with building_batch(store, about) as root:
        store.files.write_new(root / layout.PLAN_FILE, encode_plan(plan))
        for name, data in documents.items():
            store.files.write_new(root / name, data)
    return BatchDir(store.files, store.batches / about.batch_id, about)


@contextlib.contextmanager
def hidden_batch(
    store: StoreDir,
    plan: Plan,
    *,
    sources: Sequence[bytes],
    bases: Sequence[BatchId] = (),
    programs: Mapping[str, Digest],
    at_ns: int,
) -> Iterator[BatchDir]:
    """Create a temporary batch that no reader finds, and remove it at the end.

    If the process is killed, the next writer removes the batch.
    """
    batch = create_batch(store, plan, sources=sources, bases=bases, programs=programs, at_ns=at_ns, is_hidden=True)
    try:
        yield batch
    finally:
        store.files.remove_tree(batch.root)


@contextlib.contextmanager
def hidden_directory(store: StoreDir) -> Iterator[Path]:
    """Create a temporary directory in `batches/` that no reader finds, and remove it at the end.

    If the process is killed, or is not allowed to remove the directory, the next writer removes it.
    """
    root = store.batches / _make_hidden_name()
    store.files.make_directory(root)
    try:
        yield root
    finally:
        with contextlib.suppress(StoreUnwritable):
            store.files.remove_tree(root)


@contextlib.contextmanager
def building_batch(store: StoreDir, about: BatchFile) -> Iterator[Path]:
    """Yield a hidden directory, into which the caller writes the plan and other files of a batch.

    Then publish the directory as the batch.

    On return the batch is on disk. The caller must write the files durably, for example with `write_new`.
    """
    files = store.files
    root = store.batches / _make_hidden_name()
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


def _make_hidden_name() -> str:
    return f".{uuid.uuid4().hex}.tmp"


def make_batch_directories(batch: BatchDir) -> None:
    """Create the missing subdirectories of a batch. A copy of a batch may lack those that were empty.

    Call this before any work on the batch. On return the names of the batch and of its subdirectories are on disk, even
    if the batch's creator died before it synced them.
    """
    for name in _SUBDIRECTORIES:
        batch.files.make_directory(batch.root / name)
    for directory in (batch.root, batch.root.parent):
        batch.files.sync_directory(directory)


def open_batch(store: StoreDir, batch_id: str) -> BatchDir:
    """Open a batch by its full ID. Raises UnknownId, or StoreCorrupt if batch.json is damaged or missing."""
    path = store.batches / batch_id / layout.BATCH_FILE
    try:
        about = read_document(store.files, path, decode_batch, hint=_unrecoverable_hint(path.parent))
    except (FileNotFoundError, NotADirectoryError) as error:
        if store.files.size(path.parent) is not None:
            raise CorruptFile(str(path), "is missing", hint=_unrecoverable_hint(path.parent)) from error
        raise NotInStore("batch", batch_id) from error
    if about.batch_id != batch_id:
        raise CorruptFile(str(path), "belongs to another batch", hint=_unrecoverable_hint(path.parent))
    return BatchDir(store.files, store.batches / batch_id, about)


def load_batch_snapshot(store: StoreDir, batch: BatchDir) -> Snapshot:
    """Return the snapshot of a batch. Raises StoreCorrupt if it is damaged or missing."""
    from codebatch.store.snapshots.snapshots import SNAPSHOT_HINT, load_snapshot

    try:
        return load_snapshot(store.files, store.root, batch.about.snapshot_id)
    except UnknownId as error:
        check_batch_exists(batch.files, batch.root)
        raise StoreCorrupt(f"the snapshot of {batch.id} is missing: {error.message}", hint=SNAPSHOT_HINT) from error


def batch_ids(store: StoreDir) -> list[str]:
    """Return the IDs of all batches, oldest first."""
    return [name for name in store.files.listing(store.batches) if BATCH_ID_PATTERN.match(name)]


def is_work(batch: BatchDir) -> bool:
    """Return whether a batch runs commands."""
    return batch.about.pipeline == WORK_PIPELINE


def has_batch_kind(batch: BatchDir, kind: BatchKind) -> bool:
    """Return whether a batch is of the kind `kind`. True for every batch if `kind` is `any`."""
    return kind == "any" or is_work(batch) == (kind == "work")


def check_kind(batch: BatchDir, kind: BatchKind) -> None:
    """Raise WrongBatchKind if a batch is not of the required kind."""
    if kind == "analysis" and is_work(batch):
        raise WrongBatchKind(
            f"batch {batch.id} is a task list, not an analysis",
            hint=f"see its status with: codebatch status --batch {batch.id}; resume it with: codebatch "
            f"resume --batch {batch.id}; show output with: codebatch work log --batch {batch.id}",
        )
    if kind == "work" and not is_work(batch):
        raise WrongBatchKind(
            f"batch {batch.id} is an analysis, not a task list",
            hint="list the batches of task lists with: codebatch batch list --pipeline work",
        )


def iter_batches(
    store: StoreDir, on_skipped: SkipCallback | None = None, *, kind: BatchKind = "analysis"
) -> Iterator[BatchDir]:
    """Yield every readable batch of a kind, latest first. For each unreadable one, call `on_skipped`."""
    for batch_id in reversed(batch_ids(store)):
        try:
            batch = open_batch(store, batch_id)
        except (StoreError, UnknownId) as error:
            if on_skipped is not None:
                on_skipped(f"{batch_id} skipped: {error.message}")
            continue
        if has_batch_kind(batch, kind):
            yield batch


def read_batch_names(store: StoreDir) -> dict[str, BatchId]:
    """Map each batch name to the ID of its batch, even if that batch no longer exists.

    If several batches have the same name, the name maps to the latest of them.
    """
    pins = sorted(name.partition("@") for name in store.files.listing(store.root / layout.PINS))
    return {
        name: BatchId(batch_id)
        for batch_id, _, name in pins
        if BATCH_ID_PATTERN.match(batch_id) and NAME_PATTERN.match(name)
    }


def check_name(name: str | None) -> None:
    """Raise InvalidId if `name` is set and is not a valid batch name."""
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
    if not all(
        TASK_NAME_PATTERN.match(name) and DIGEST_PATTERN.match(digest) for name, digest in about.imports.items()
    ):
        raise DocumentError("its list of imports is invalid")
    return about


def _unrecoverable_hint(directory: Path) -> str:
    return f"this batch cannot be recovered: remove {directory}, and {NEW_BATCH_HINT}"
