"""A store: a directory with `store.json` that holds everything. Found by walking up, like `.git`."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from codebatch.errors import StoreCorrupt, StoreError, StoreForeign, StoreNotFound, StoreUnwritable
from codebatch.model.document import DocumentError, decode_json
from codebatch.store.leftovers import sweep_parts, sweep_unfinished
from codebatch.store.objects import ObjectStore
from codebatch.system.files import Files, Lock, wait_lock

STORE_FORMAT = 2
STORE_DIRECTORY = ".codebatch"
STORE_FILE = "store.json"
CACHEDIR_TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n# This directory is a codebatch store.\n"

OBJECTS = "objects"
SNAPSHOTS = "snapshots"
BATCHES = "batches"
INDEXES = "indexes"
CACHE = "cache"
LOCKS = "locks"


class _StoreFile(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    id: str


class _AnyStoreFile(msgspec.Struct, frozen=True, kw_only=True):
    """Enough to tell a store of any version, CodeBatch 1.x included, from something else."""

    format: int | None = None
    schema_name: str | None = None
    schema_version: int | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. `root` is absolute."""

    files: Files
    root: Path
    id: str

    @property
    def batches(self) -> Path:
        """Where batches lie."""
        return self.root / BATCHES

    def objects(self) -> ObjectStore:
        """The objects, with whatever packs are sealed by now."""
        return ObjectStore(self.files, self.root / OBJECTS)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store-wide lock that keeps a collector of garbage out (flock, shared).

        Who comes while nobody else has it sweeps what the dead left first.
        """
        self.files.make_directory(self.root / LOCKS)
        path = self.root / LOCKS / "store"
        alone = None
        with contextlib.suppress(StoreUnwritable):
            alone = self.files.try_lock(path)
        lock: Lock = alone or wait_lock(path, shared=True)
        try:
            sweep_parts(self.files, self.root / OBJECTS)
            if alone is not None:
                sweep_unfinished(
                    self.files, [self.root / name for name in (OBJECTS, SNAPSHOTS, BATCHES, INDEXES, CACHE)]
                )
                lock.share()
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def making_batch(self) -> Iterator[None]:
        """Hold the lock under which a batch is looked for and made (flock, exclusive): of many alike one is made."""
        self.files.make_directory(self.root / LOCKS)
        lock: Lock = wait_lock(self.root / LOCKS / "batches")
        try:
            yield
        finally:
            lock.release()


def create_store(files: Files, root: Path) -> tuple[Store, bool]:
    """Make a store, or open the one that is there; tells whether it was made.

    Raises StoreForeign where the directory holds something else, StoreError where its file system cannot link(2).
    """
    root = Path(os.path.abspath(root))
    if files.size(root / STORE_FILE) is not None:
        return open_store(files, root), False
    if root.exists() and not root.is_dir():
        raise StoreForeign(f"{root} is a file", hint="name a directory that does not exist yet")
    if root.exists() and not all(name.name in _OWN_NAMES or _UNFINISHED.match(name.name) for name in root.iterdir()):
        if files.size(root / STORE_FILE) is not None:  # Another process made it since we looked.
            return open_store(files, root), False
        raise StoreForeign(
            f"{root} is not empty and is not a codebatch store", hint="name a directory that does not exist yet"
        )
    parents = _missing_parents(files, root)
    try:
        for name in ("", OBJECTS, SNAPSHOTS, BATCHES, INDEXES, CACHE, LOCKS):
            files.make_directory(root / name)
    except FileNotFoundError as error:  # The file system makes no directories: /proc, /sys.
        raise StoreError(
            f"cannot make {root}: {error.strerror}", hint="put the store on a local disk with --store PATH"
        ) from error
    except (NotADirectoryError, FileExistsError) as error:
        raise StoreForeign(
            f"cannot make {root}: {error.filename} is no directory", hint="name a directory that does not exist yet"
        ) from error
    _probe_link(files, root)
    # Without its document this is no store yet, so nobody reads these; their names come to disk with the document's.
    files.write_new(root / ".gitignore", b"*\n")
    files.write_new(root / "CACHEDIR.TAG", CACHEDIR_TAG)
    store_id = uuid.uuid4().hex
    hidden = root / f".{STORE_FILE}.{store_id}.tmp"
    files.write_new(hidden, msgspec.json.encode(_StoreFile(format=STORE_FORMAT, id=store_id)) + b"\n")
    is_ours = files.create_exclusive(hidden, root / STORE_FILE)
    files.remove(hidden)
    for directory in (root, *parents):
        files.sync_directory(directory)
    return open_store(files, root), is_ours


_OWN_NAMES = {OBJECTS, SNAPSHOTS, BATCHES, INDEXES, CACHE, LOCKS, ".gitignore", "CACHEDIR.TAG"}
_UNFINISHED = re.compile(r"\.(\.gitignore|CACHEDIR\.TAG|store\.json)\.[0-9a-f]{32}\.tmp\Z")
"""What `create_store` leaves behind that is killed while it writes a file."""


def open_store(files: Files, root: Path) -> Store:
    """Open a store. Raises StoreNotFound, StoreForeign or StoreCorrupt."""
    root = Path(os.path.abspath(root))
    try:
        data = files.read(root / STORE_FILE)
    except (FileNotFoundError, NotADirectoryError) as error:
        if root.is_dir() and any(root.iterdir()):
            raise StoreForeign(
                f"{root} is not a codebatch store", hint="it has no store.json; check --store"
            ) from error
        if root.exists() and not root.is_dir():
            raise StoreForeign(f"{root} is a file, not a store", hint="check --store") from error
        raise StoreNotFound(
            f"there is no store at {root}", hint=f"make one with: codebatch init {shlex.quote(str(root))}"
        ) from error
    except OSError as error:
        raise StoreError(f"cannot read {root / STORE_FILE}: {error.strerror}") from error
    try:
        any_version = decode_json(data, msgspec.json.Decoder(_AnyStoreFile))
    except DocumentError as error:
        raise StoreCorrupt(f"{root / STORE_FILE} is damaged: {error}") from error
    if any_version.schema_name == "codebatch.store":
        raise StoreForeign(
            f"{root} was made by CodeBatch 1.x (schema version {any_version.schema_version})",
            hint="this version does not read it; make a new store beside it and snapshot again",
        )
    if any_version.format is None:
        raise StoreForeign(f"{root / STORE_FILE} is not a codebatch store file")
    if any_version.format != STORE_FORMAT:
        newer = any_version.format > STORE_FORMAT
        raise StoreForeign(
            f"{root} has store format {any_version.format}, this version reads {STORE_FORMAT}",
            hint="upgrade codebatch" if newer else "make a new store and snapshot again",
        )
    try:
        store_file = decode_json(data, msgspec.json.Decoder(_StoreFile))
    except DocumentError as error:
        raise StoreCorrupt(f"{root / STORE_FILE} is damaged: {error}") from error
    return Store(files, root, store_file.id)


def find_store(start: Path) -> Path | None:
    """The nearest `.codebatch` store in a directory or above it."""
    start = Path(os.path.abspath(start))
    for directory in (start, *start.parents):
        candidate = directory / STORE_DIRECTORY
        if (candidate / STORE_FILE).is_file():
            return candidate
    return None


def _missing_parents(files: Files, root: Path) -> list[Path]:
    """The directories that will get a new name when `root` is made, the nearest first."""
    parents = []
    while files.size(root) is None and root != root.parent:
        root = root.parent
        parents.append(root)
    return parents


def _probe_link(files: Files, root: Path) -> None:
    """Refuse a file system on which link(2) does not work: every promise of the protocol rests on it."""
    source, target = root / LOCKS / f".probe-{uuid.uuid4().hex}", root / LOCKS / f".probe-{uuid.uuid4().hex}"
    files.write_volatile(source, b"")
    try:
        files.create_exclusive(source, target)
    except (OSError, StoreUnwritable) as error:
        # FAT says EPERM, as a disk that refuses every write does: but the source was just written.
        if isinstance(error, StoreUnwritable) and getattr(error.__cause__, "errno", None) != errno.EPERM:
            raise
        raise StoreError(
            f"the file system of {root} cannot make hard links, which the store needs",
            hint="put the store on a local disk with --store PATH",
        ) from error
    finally:
        files.remove(source)
        files.remove(target)
