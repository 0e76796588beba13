"""A store: the directory with `store.json` and all data of codebatch."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import stat
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codebatch.errors import (
    CodebatchError,
    CorruptFile,
    Stopped,
    StoreCorrupt,
    StoreError,
    StoreInUse,
    StoreNotFound,
    StoreUntrusted,
    StoreUnwritable,
    UnsupportedFileSystem,
)
from codebatch.model.documents import Document, DocumentError, decode_document, decode_json, encode_document
from codebatch.model.project import ProjectRoot
from codebatch.store import layout
from codebatch.store.batches.unfinished import sweep_parts, sweep_unfinished
from codebatch.store.ownership import StoreOrigin, check_origin, make_origin, refuse_linked_root, refuse_tracked_root
from codebatch.system.files.files import FileLock, StoreFiles

if TYPE_CHECKING:  # Workers that run commands open stores and read no objects.
    from codebatch.store.objects.object_store import ObjectStore

STORE_FORMAT = 1
CACHEDIR_TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n# This directory is a codebatch store.\n"

_STORE_FILE_BYTES_MAX = 64 * 1024


_STORE_DIRECTORIES = (
    layout.OBJECTS,
    layout.SNAPSHOTS,
    layout.BATCHES,
    layout.INDEXES,
    layout.CACHE,
    layout.LOCKS,
    layout.PINS,
)
_TERMS_DIRECTORY = f"{layout.INDEXES}/{layout.TERMS}"
_INITIAL_FILES = {".gitignore": b"*\n", "CACHEDIR.TAG": CACHEDIR_TAG}


class _StoreFile(Document, frozen=True, kw_only=True):
    format: int = STORE_FORMAT
    id: str
    origin: StoreOrigin


class _UncheckedStoreFile(msgspec.Struct, frozen=True, kw_only=True):
    """The members of store.json that identify a store of any version, including CodeBatch 1.x."""

    format: int | None = None
    schema_name: str | None = None
    schema_version: int | None = None


class StoreDir(msgspec.Struct, frozen=True):
    """An open store. `root` is absolute.

    If `project` is set, the default batch is the latest batch of this project. Otherwise it is the latest batch of the
    store.
    """

    files: StoreFiles
    root: Path
    id: str
    project: ProjectRoot | None = None

    @property
    def user_directory(self) -> Path:
        """The directory in which the user works: the one whose project was found, otherwise `.`."""
        return Path("." if self.project is None else os.fsdecode(self.project.start))

    @property
    def batches(self) -> Path:
        """The directory of batches."""
        return self.root / layout.BATCHES

    def objects(self) -> ObjectStore:
        """Return the object store. It contains the objects of all packs that are complete now."""
        from codebatch.store.objects.object_store import ObjectStore

        return ObjectStore(self.files, self.root / layout.OBJECTS)

    @contextlib.contextmanager
    def writing(self) -> Iterator[FileLock]:
        """Hold the shared lock of the store (flock) during the context. Meanwhile no garbage collection can start.

        A run holds this lock from its snapshot to its end. If no other process holds the lock and the store is
        writable, first remove files left by dead processes. If the store is removed while the lock is held, the
        resulting errors are raised as StoreCorrupt.
        """
        path = self.root / layout.LOCKS / layout.STORE_LOCK
        exclusive: FileLock | None = None
        with contextlib.suppress(StoreUnwritable, FileNotFoundError):
            exclusive = self.files.try_lock(path)
        lock = exclusive or self.files.wait_lock(path, shared=True)
        try:
            with contextlib.suppress(StoreUnwritable):
                self._sweep(is_alone=exclusive is not None)
            if exclusive is not None:
                exclusive.make_shared()
            yield lock
        except (CodebatchError, OSError) as error:
            if not isinstance(error, Stopped) and self._is_removed():
                raise StoreCorrupt(
                    f"the store {self.root} was removed while it was in use",
                    hint="use --store or CODEBATCH_STORE to give a location that neither `git clean` nor a task "
                    "removes; then run again",
                ) from error
            raise
        finally:
            lock.release()

    def _is_removed(self) -> bool:
        """Return whether the store no longer exists, or another store has replaced it."""
        try:
            data = self.files.read_range(self.root / layout.STORE_FILE, 0, _STORE_FILE_BYTES_MAX)
            return _decode_store_file(self.root, data).id != self.id
        except OSError as error:
            return error.errno in (errno.ENOENT, errno.ENOTDIR)
        except StoreError:
            return False

    @contextlib.contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Remove files left by dead processes, then hold the exclusive lock of the store (flock).

        Raises StoreInUse at once, without waiting, if another process writes to the store.
        """
        self.files.make_directory(self.root / layout.LOCKS)
        lock = self.files.try_lock(self.root / layout.LOCKS / layout.STORE_LOCK)
        if lock is None:
            raise StoreInUse(f"another process is writing to {self.root}")
        try:
            self._sweep(is_alone=True)
            yield
        finally:
            lock.release()

    def _sweep(self, *, is_alone: bool) -> None:
        sweep_parts(self.files, self.root / layout.OBJECTS)
        if not is_alone:
            return
        if self.files.unfinished(self.root):  # A creator may have died before it synced the name of store.json.
            self.files.sync_directory(self.root)
        sweep_unfinished(self.files, [self.root / name for name in ("", *_STORE_DIRECTORIES, _TERMS_DIRECTORY)])

    def unfinished_directories(self) -> list[Path]:
        """Return the hidden batches, snapshots and indexes. Only a process with the exclusive lock may remove them."""
        places = [self.root / name for name in (layout.BATCHES, layout.SNAPSHOTS, layout.INDEXES)]
        return [place / name for place in places for name in self.files.unfinished(place)]

    @contextlib.contextmanager
    def making_batch(self) -> Iterator[None]:
        """Hold an exclusive lock (flock) while the caller looks up or creates a batch.

        So if identical runs start at the same time, only one of them creates a batch.
        """
        lock = self.files.wait_lock(self.root / layout.LOCKS / layout.BATCHES_LOCK, shared=False)
        try:
            yield
        finally:
            lock.release()


def create_store(files: StoreFiles, root: Path, *, is_named: bool = True) -> tuple[StoreDir, bool]:
    """Create a store, or open an existing one like `open_store`. Return the store and whether it was created.

    Raises StoreUntrusted if the directory is not empty and is not a store. Raises StoreError if its file system does
    not support link(2).
    """
    root = Path(os.path.abspath(root))
    files.confine(root)
    if not is_named:
        refuse_linked_root(root)
    if files.stat(root / layout.STORE_FILE) is not None:
        return open_store(files, root, is_named=is_named), False
    if _is_file(files, root):
        raise StoreUntrusted(f"{root} is a file", hint="give a directory that does not exist yet")
    if not all(_is_leftover(files, root, name) for name in _list_names(root)):
        if files.stat(root / layout.STORE_FILE) is not None:  # Another process has just created the store.
            return open_store(files, root, is_named=is_named), False

        raise StoreUntrusted(
            f"{root} is not empty and is not a codebatch store",
            hint=f"give the path of the store itself: --store {shlex.quote(str(root / layout.STORE_DIRECTORY))}",
        )
    if not is_named:
        refuse_tracked_root(root)
    parents = _new_parents(files, root)
    try:
        for name in ("", *_STORE_DIRECTORIES):
            files.make_directory(root / name)
    except FileNotFoundError as error:  # The file system does not support mkdir: /proc, /sys.
        raise StoreError(
            f"cannot create {root}: {error.strerror}", hint="put the store on a local disk with --store PATH"
        ) from error
    _probe_link(files, root)
    # Readers ignore these files until store.json exists. Their names are synced together with its name.
    for name, content in _INITIAL_FILES.items():
        _write_if_missing(files, root / name, content)
    origin = make_origin(files, root, layout.STORE_FILE)
    store_id = uuid.uuid4().hex
    _sync_parents(files, parents)  # Sync the path first, then publish store.json, which makes the store visible.
    if not _publish_store_file(files, root, encode_document(_StoreFile(id=store_id, origin=origin))):
        return open_store(files, root, is_named=is_named), False  # Another process won the race.
    return StoreDir(files, root, store_id), True


def holds_only_a_store(root: Path) -> bool:
    """Return whether a directory contains no names except those of a store's files. True for an empty directory."""
    expected = {
        *_STORE_DIRECTORIES,
        *_INITIAL_FILES,
        layout.STORE_FILE,
        layout.CREATED_HERE_FILE,
        layout.UNTRUSTED_FILE,
    }
    return all(name in expected or _TEMPORARY_STORE_FILE.match(name) for name in _list_names(root))


_TEMPORARY_STORE_FILE = re.compile(r"\.store\.json\.[0-9a-f]{32}\.tmp\Z")


def _is_leftover(files: StoreFiles, root: Path, name: str) -> bool:
    """Return whether a killed `create_store` of this user may have left a name in a directory.

    The directory has no store.json. Leftovers are empty directories of the store, the witness, an unpublished
    store.json, and the files of `_INITIAL_FILES`. After a power loss, these files may be truncated or contain zeros.
    """
    status = files.stat(root / name)
    if status is None:
        return True  # Another process that creates the same store has removed it.
    if status.st_uid != os.geteuid():
        return False
    if stat.S_ISDIR(status.st_mode):
        return name in _STORE_DIRECTORIES and not files.listing(root / name)
    if stat.S_ISLNK(status.st_mode):
        return name == layout.CREATED_HERE_FILE
    if not stat.S_ISREG(status.st_mode):
        return False
    if name in _INITIAL_FILES:
        expected = _INITIAL_FILES[name]
        actual = files.read_range(root / name, 0, len(expected) + 1)
        return len(actual) <= len(expected) and all(
            byte in (0, expected_byte) for byte, expected_byte in zip(actual, expected, strict=False)
        )
    return _TEMPORARY_STORE_FILE.match(name) is not None


def _write_if_missing(files: StoreFiles, path: Path, content: bytes) -> None:
    if files.size(path) is not None:
        if files.read_range(path, 0, len(content) + 1) == content:
            return
        files.remove(path)  # A truncated leftover.
    with contextlib.suppress(FileExistsError):  # Another process creates the same store.
        files.write_new(path, content)


def _publish_store_file(files: StoreFiles, root: Path, document: bytes) -> bool:
    """Publish store.json unless it exists. Return whether this process published it. On return its name is on disk.

    If this process dies before the sync, its hidden file remains. `StoreDir.writing` finds the file and syncs the
    directory.
    """
    hidden = root / f".{layout.STORE_FILE}.{uuid.uuid4().hex}.tmp"
    try:
        files.write_new(hidden, document)
        try:
            is_created = files.create_exclusive(hidden, root / layout.STORE_FILE)
        except FileNotFoundError:
            is_created = False  # A writer in the store that another process has just created swept the file.
        files.sync_directory(root)
    finally:
        files.remove(hidden)
    return is_created


def open_store(files: StoreFiles, root: Path, *, is_named: bool = True) -> StoreDir:
    """Open a store. Raises StoreNotFound, StoreUntrusted or StoreCorrupt.

    If the user did not name the store (`is_named`), it must be where it was created (store/ownership.py).
    """
    root = Path(os.path.abspath(root))
    files.confine(root)
    if not is_named:
        refuse_linked_root(root)
    if _is_file(files, root):
        raise StoreUntrusted(f"{root} is a file, not a store", hint="check --store")
    try:
        data = files.read_range(root / layout.STORE_FILE, 0, _STORE_FILE_BYTES_MAX)
    except FileNotFoundError as error:
        if _list_names(root):
            raise StoreUntrusted(
                f"{root} is not a codebatch store", hint="the directory has no store.json; check --store"
            ) from error

        raise StoreNotFound(
            f"no store at {root}", hint=f"create one with: codebatch init {shlex.quote(str(root))}"
        ) from error
    about = _decode_store_file(root, data)
    if not is_named:
        check_origin(files, root, about.origin, layout.STORE_FILE)
    return StoreDir(files, root, about.id)


def check_created_here(store: StoreDir) -> None:
    """Raise StoreUntrusted unless this user created the store at this place. `--store` makes no difference."""
    data = store.files.read_range(store.root / layout.STORE_FILE, 0, _STORE_FILE_BYTES_MAX)
    check_origin(store.files, store.root, _decode_store_file(store.root, data).origin, layout.STORE_FILE)


def _decode_store_file(root: Path, data: bytes) -> _StoreFile:
    """Decode store.json. Raises StoreUntrusted if another program or version wrote it, or StoreCorrupt."""
    try:
        any_version = decode_json(data, partial(msgspec.json.decode, type=_UncheckedStoreFile))
        if any_version.schema_name == "codebatch.store":
            raise StoreUntrusted(
                f"{root} was made by CodeBatch 1.x (schema version {any_version.schema_version})",
                hint="this version cannot read stores of CodeBatch 1.x; "
                "create a new store at another path and take a snapshot",
            )
        if any_version.format is None:
            raise StoreUntrusted(f"{root / layout.STORE_FILE} is not a codebatch store file", hint="check --store")
        if any_version.format != STORE_FORMAT:
            newer = any_version.format > STORE_FORMAT
            raise StoreUntrusted(
                f"{root} has store format {any_version.format}, but this version reads format {STORE_FORMAT}",
                hint="upgrade codebatch" if newer else "create a new store and take a new snapshot",
            )
        return decode_document(data, _StoreFile, STORE_FORMAT)
    except DocumentError as error:
        is_codebatch_store = holds_only_a_store(root) and (root / layout.OBJECTS).is_dir()
        hint = (
            "remove the store and run again, or give another one with --store"
            if is_codebatch_store
            else "check --store"
        )
        raise CorruptFile(str(root / layout.STORE_FILE), f"is damaged: {error}", hint=hint) from error


def looks_like_store(path: Path) -> bool:
    """Return whether a path may be a store: a symbolic link, or a directory with store.json."""
    return path.is_symlink() or os.path.lexists(path / layout.STORE_FILE)


def _is_file(files: StoreFiles, root: Path) -> bool:
    status = files.stat(root)
    return status is not None and not stat.S_ISDIR(status.st_mode)


def _list_names(root: Path) -> list[str]:
    """Return all names in a directory, including hidden ones, or an empty list if it does not exist."""
    try:
        return os.listdir(root)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {root}: {error.strerror}", hint="check --store") from error


def _new_parents(files: StoreFiles, root: Path) -> list[Path]:
    """Return the directories that get a new entry when `root` is created, nearest first. The last one exists."""
    parents = [root.parent]
    while files.stat(root) is None and root != root.parent:
        root = root.parent
        parents.append(root.parent)
    return parents


def _sync_parents(files: StoreFiles, parents: list[Path]) -> None:
    """Sync the directories that `_new_parents` returned.

    The last directory existed before, so a failure to sync it is ignored. This sync is needed only if another process
    created the next directory in it and died. In that case this user can write to the directory, so the sync succeeds.
    """
    for parent in parents[:-1]:
        files.sync_directory(parent)
    with contextlib.suppress(StoreUnwritable):
        files.sync_directory(parents[-1])


def _probe_link(files: StoreFiles, root: Path) -> None:
    """Raise UnsupportedFileSystem if link(2) does not work here. The protocol depends on it."""
    source, target = (root / layout.LOCKS / f".probe-{uuid.uuid4().hex}.tmp" for _ in range(2))
    files.write_new(source, b"")
    try:
        files.create_exclusive(source, target)
    except FileNotFoundError:
        return  # A writer in the store that another process has just created swept the file.
    except (OSError, StoreUnwritable) as error:
        # FAT returns EPERM, like a disk that refuses every write. But the source has just been written.
        if isinstance(error, StoreUnwritable) and getattr(error.__cause__, "errno", None) != errno.EPERM:
            raise
        raise UnsupportedFileSystem(str(root), "make hard links") from error
    finally:
        files.remove(source)
        files.remove(target)
