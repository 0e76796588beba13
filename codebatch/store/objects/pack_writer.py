"""Writing of packs. A pack grows in a file `<uuid>.part` under its writer's flock, and is sealed under its final name.

The steps are: append frames, fsync, link to `<sha256>.pack`, write the index, unlink the part. `seal` then syncs the
directory. Call `seal` before you publish any document that names an object. A part that no process locks is an orphan
and is swept (store/batches/leftovers.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, cast

import zstandard

from codebatch.errors import StoreUnwritable, UnsupportedEntry
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.store import layout
from codebatch.store.objects.frames import CHUNK_BYTES, COMPRESSION_LEVEL, PackFrame
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.packs import PackIndex, build_index, encode_index
from codebatch.system.files.files import FileAppender, FileLock, StoreFiles

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

PACK_BYTES_TARGET = 16 << 20
COMPRESSED_TOGETHER_BYTES = 2 << 20
COMPRESSED_TOGETHER_OBJECTS = 1024
PENDING_BATCHES_MAX = 4
PART_ATTEMPTS_MAX = 100


class SizeChangedError(ValueError):
    """The stream of an object had more or fewer bytes than announced. Nothing of it was stored."""


class PackPart:
    """An unsealed pack: its file, lock and running hash. `bytes` is the current length of the file."""

    def __init__(self, files: StoreFiles, root: Path) -> None:
        self._files = files
        self._root = root
        self.path, self._appender, self._lock = self._create_part()
        self._hash = hashlib.sha256()
        self._frames: list[tuple[bytes, PackFrame]] = []
        self._is_open = True
        self.bytes = 0

    def append(self, data: bytes) -> None:
        self._appender.append(data)
        self._hash.update(data)
        self.bytes += len(data)

    def add_frame(self, key: bytes, frame: PackFrame) -> None:
        self._frames.append((key, frame))

    def seal_pack(self) -> tuple[str, PackIndex]:
        """Publish the pack under its final name.

        Return this name and the pack's index. Durable once the caller has synced the directory.
        """
        self._appender.sync()
        name = self._hash.hexdigest()
        root = self._root
        target = root / f"{name}{layout.PACK_SUFFIX}"
        if not self._files.create_exclusive(self.path, target) and not self._is_undamaged(name):
            # The existing pack has the same name but is damaged, so this one replaces it. Until the second link(2),
            # readers find no pack, which is no worse than a damaged one. A crash in between loses nothing more.
            self._files.remove(target)
            self._files.create_exclusive(self.path, target)
        self._files.remove(root / f"{name}{layout.DAMAGED_SUFFIX}")
        index = build_index(self.bytes, self._frames)
        with contextlib.suppress(UnsupportedEntry):  # Without an index file, readers build the index.
            self._files.write_volatile(root / f"{name}{layout.INDEX_SUFFIX}", encode_index(index))
        self.discard()
        return name, index

    def discard(self) -> None:
        """Remove the unfinished file `.part`. If the pack is sealed, its final name stays. Idempotent."""
        if not self._is_open:
            return
        self._is_open = False
        self._appender.close()
        try:
            self._files.remove(self.path)
        finally:
            self._lock.release()

    def _is_undamaged(self, name: str) -> bool:
        path = self._root / f"{name}{layout.PACK_SUFFIX}"
        if self._files.size(path) != self.bytes:
            return False
        hasher = hashlib.sha256()
        for offset in range(0, self.bytes, CHUNK_BYTES):
            hasher.update(self._files.read_range(path, offset, CHUNK_BYTES))
        return hasher.hexdigest() == name

    def _create_part(self) -> tuple[Path, FileAppender, FileLock]:
        """Create a new part and lock it.

        Before the part is locked, a sweeper may take it for an orphan. Then the sweeper holds the lock, or has removed
        the part. In both cases, try again with another name.
        """
        if self._files.make_directory(self._root):
            self._files.sync_directory(self._root.parent)
        for _ in range(PART_ATTEMPTS_MAX):
            path = self._root / f"{uuid.uuid4().hex}{layout.PART_SUFFIX}"
            appender = self._files.open_append(path)
            try:
                lock = self._files.try_lock(path, create=False)
            except FileNotFoundError:
                lock = None
            if lock is not None and self._files.size(path) is not None:
                return path, appender, lock
            if lock is not None:
                lock.release()
            appender.close()
        raise StoreUnwritable(f"another program keeps removing new files in {self._root}")


class PackWriter:
    """A writer that adds objects to the store, one per process.

    Use it as a context manager: an exception discards unsealed objects. Objects that are already in the store or in
    this writer are not written again.

    Objects are collected in batches. From the second batch on, a thread compresses and writes each batch while the
    caller reads the next files (zstd, sha256 and write(2) release the GIL). The thread writes one batch at a time, so
    packs do not depend on timing. All other work runs in the caller's thread.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self._files = objects.files
        self._objects = objects
        self._compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL)
        self._part: PackPart | None = None
        self._pending: list[tuple[bytes, bytes]] = []
        self._pending_bytes = 0
        self._keys: set[bytes] = set()
        self._unsynced = False
        self._thread: ThreadPoolExecutor | None = None
        self._running: deque[Future[None]] = deque()
        self._sealed: list[tuple[str, PackIndex]] = []

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        try:
            if kind is None:
                self.seal_packs()
        finally:
            self.discard()

    def add(self, data: bytes) -> Digest:
        """Add an object and return its digest. After `seal` it is readable and on disk."""
        return Digest(self.add_key(data).hex())

    def add_key(self, data: bytes) -> bytes:
        """Add an object like `add`, and return its digest as 32 bytes, so that long loops need no conversion to hex."""
        key = hashlib.sha256(data).digest()
        if not self._is_stored(key):
            self._keys.add(key)
            self._pending.append((key, data))
            self._pending_bytes += len(data)
            if self._pending_bytes >= COMPRESSED_TOGETHER_BYTES or len(self._pending) >= COMPRESSED_TOGETHER_OBJECTS:
                self._submit_pending()
        return key

    def add_stream(self, chunks: Iterable[bytes], size: int) -> Digest:
        """Add a large object as a pack of its own, in constant memory.

        Raises SizeChangedError if the stream does not have `size` bytes.
        """
        part = PackPart(self._files, self._objects.root)
        hasher = hashlib.sha256()
        compressor = self._compressor.compressobj(size=size)
        remaining = size
        try:
            for chunk in chunks:
                remaining -= len(chunk)
                if remaining < 0:
                    break
                hasher.update(chunk)
                part.append(compressor.compress(chunk))
            if remaining:
                raise SizeChangedError(f"announced {size} bytes, got {size - remaining}")
            part.append(compressor.flush())
        except BaseException:
            part.discard()
            raise
        key = hasher.digest()
        if self._is_stored(key):
            part.discard()
        else:
            part.add_frame(key, PackFrame(0, part.bytes, size))
            self._keys.add(key)
            self._seal_part(part)
        return Digest(hasher.hexdigest())

    def seal_packs(self) -> None:
        """Seal all packs. On return every added object is readable and on disk under a durable name."""
        self._wait_for_thread(0)
        if self._pending:
            self._write_batch(self._take_pending())
        if self._part is not None:
            part, self._part = self._part, None
            self._seal_part(part)
        if self._unsynced:
            self._files.sync_directory(self._objects.root)
            self._unsynced = False
        self._stop_thread()
        for name, index in self._sealed:
            self._objects.add_sealed_pack(name, index)
        self._sealed = []

    def discard(self) -> None:
        """Drop unsealed objects and remove their unfinished file. Sealed packs stay."""
        self._stop_thread()
        self._take_pending()
        self._running.clear()
        self._keys = set()
        if self._part is not None:
            part, self._part = self._part, None
            part.discard()

    def has_object(self, digest: str) -> bool:
        """Return whether the store or this writer has an object. If so, the object is on disk after `seal`."""
        if not DIGEST_PATTERN.match(digest):
            return False
        key = bytes.fromhex(digest)
        if not self._is_stored(key):
            self._objects.refresh()  # Another worker may have sealed it since the last listing.
        return self._is_stored(key)

    def _is_stored(self, key: bytes) -> bool:
        """Return whether this writer or a sealed pack has an object, so that the object need not be written.

        The process that sealed such a pack may have died before it synced the name of the pack. So `seal` syncs the
        directory even if this writer has written nothing.
        """
        if key in self._keys:
            return True
        if self._objects.has_key(key):
            self._unsynced = True
            return True
        return False

    def _submit_pending(self) -> None:
        """Pass the pending objects to the thread as a batch.

        If too many batches are waiting, wait first, which bounds memory.
        """
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor  # A small snapshot needs no thread.

            self._thread = ThreadPoolExecutor(1)
        self._wait_for_thread(PENDING_BATCHES_MAX - 1)
        batch = self._take_pending()
        try:
            self._running.append(self._thread.submit(self._write_batch, batch))
        except RuntimeError:  # The system refuses to start the thread. The executor still has the batch.
            self._stop_thread()
            self._write_batch(batch)

    def _wait_for_thread(self, pending_max: int) -> None:
        """Wait until at most `pending_max` batches wait for the thread. Raises errors that occurred in the thread."""
        while len(self._running) > pending_max:
            self._running.popleft().result()

    def _stop_thread(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None

    def _take_pending(self) -> list[tuple[bytes, bytes]]:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        return pending

    def _write_batch(self, batch: list[tuple[bytes, bytes]]) -> None:
        """Compress a batch of objects and append it to the current pack.

        Runs in the thread or, while the thread is idle, in the caller's thread.
        """
        if self._part is None:
            self._part = PackPart(self._files, self._objects.root)
        part = self._part
        frames = self._compress_contents([data for _, data in batch])
        offset = part.bytes
        for (key, data), frame in zip(batch, frames, strict=True):
            part.add_frame(key, PackFrame(offset, len(frame), len(data)))
            offset += len(frame)
        part.append(b"".join(frames))
        if part.bytes >= PACK_BYTES_TARGET:
            self._part = None
            self._seal_part(part)

    def _seal_part(self, part: PackPart) -> None:
        self._unsynced = True
        try:
            self._sealed.append(part.seal_pack())
        except BaseException:
            part.discard()
            raise

    def _compress_contents(self, contents: list[bytes]) -> list[bytes]:
        """Return one frame for each content, in the same order.

        The faster batch call exists only in the C backend of zstandard. It rejects a batch in which all contents are
        empty.
        """
        if any(contents) and "multi_compress_to_buffer" in zstandard.backend_features:
            frames = self._compressor.multi_compress_to_buffer(
                cast("list[bytes | bytearray | memoryview[int]]", contents)
            )
            return [frames[i].tobytes() for i in range(len(frames))]
        return [self._compressor.compress(content) for content in contents]
