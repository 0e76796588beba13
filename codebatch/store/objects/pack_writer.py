"""Writing packs. A pack grows under `<uuid>.part`, which its writer holds an flock on, and is sealed under its name.

Order: frames appended -> fsync -> link to `<sha256>.pack` -> unlink the part -> index -> (in `seal`) fsync of the
directory. Whoever publishes something that names an object calls `seal` first. A part that nobody holds is what a dead
writer left, and is swept (store/batches/leftovers.py).
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
from codebatch.store.objects.frames import CHUNK_BYTES, LEVEL, Frame
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.packs import PackIndex, build_index, encode_index
from codebatch.system.files.files import Appender, Files, Lock

if TYPE_CHECKING:
    from codebatch.system.threads import ThreadCall, Threads

PACK_BYTES = 16 << 20
BATCH_BYTES = 2 << 20
BATCH_OBJECTS = 1024
BATCHES_BEHIND_MAX = 4
PART_ATTEMPTS_MAX = 100


class SizeChangedError(ValueError):
    """A stream gave more or fewer bytes than were announced; nothing of it was kept."""


class PackPart:
    """A pack in the making: the file, its lock, its running hash. `bytes` is how long it is."""

    def __init__(self, files: Files, root: Path) -> None:
        self._files = files
        self._root = root
        self.path, self._appender, self._lock = self._open()
        self._hash = hashlib.sha256()
        self._frames: list[tuple[bytes, Frame]] = []
        self._open_still = True
        self.bytes = 0

    def append(self, data: bytes) -> None:
        self._appender.append(data)
        self._hash.update(data)
        self.bytes += len(data)

    def add_frame(self, key: bytes, frame: Frame) -> None:
        self._frames.append((key, frame))

    def seal(self) -> tuple[str, PackIndex]:
        """Give the pack its name, and return it with the index. It is durable once the directory is synced."""
        self._appender.sync()
        name = self._hash.hexdigest()
        root = self._root
        target = root / f"{name}{layout.PACK_SUFFIX}"
        if not self._files.create_exclusive(self.path, target) and not self._is_sound(name):
            # The name says the same bytes as ours, but the file that has it lost them: ours takes its place. Whoever
            # looks in between finds no pack, which is what the old one was worth; dying in between loses nothing more.
            self._files.remove(target)
            self._files.create_exclusive(self.path, target)
        self._files.remove(root / f"{name}{layout.BAD_SUFFIX}")
        index = build_index(self.bytes, self._frames)
        with contextlib.suppress(UnsupportedEntry):  # Readers of the pack make an index of their own.
            self._files.write_volatile(root / f"{name}{layout.INDEX_SUFFIX}", encode_index(index))
        self.discard()
        return name, index

    def discard(self) -> None:
        """Remove the part; a sealed pack stays under its own name. A second call does nothing."""
        if not self._open_still:
            return
        self._open_still = False
        self._appender.close()
        try:
            self._files.remove(self.path)
        finally:
            self._lock.release()

    def _is_sound(self, name: str) -> bool:
        path = self._root / f"{name}{layout.PACK_SUFFIX}"
        if self._files.size(path) != self.bytes:
            return False
        whole = hashlib.sha256()
        for offset in range(0, self.bytes, CHUNK_BYTES):
            whole.update(self._files.read_range(path, offset, CHUNK_BYTES))
        return whole.hexdigest() == name

    def _open(self) -> tuple[Path, Appender, Lock]:
        """A new part under lock.

        Between our making the file and our locking it a sweeper may take it for a dead writer's and remove it. Then
        either it still has the lock, or we locked a file that has no name any more: in both cases we take another name.
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
    """Adds objects to the store; one per process. Use as a context manager: an exception drops what is unsealed.

    An object that the store or this writer holds already is not written again. Once there is more than one batch to
    write, a thread compresses and writes while the caller reads on (zstd, sha256 and write(2) let go of the GIL); one
    batch at a time, so the packs do not depend on timing. Everything else happens in the caller's thread.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self._files = objects.files
        self._objects = objects
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)
        self._part: PackPart | None = None
        self._waiting: list[tuple[bytes, bytes]] = []
        self._waiting_bytes = 0
        self._keys: set[bytes] = set()
        self._unsynced = False
        self._thread: Threads | None = None
        self._running: deque[ThreadCall[None]] = deque()
        self._sealed: list[tuple[str, PackIndex]] = []

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        try:
            if kind is None:
                self.seal()
        finally:
            self.discard()

    def add(self, data: bytes) -> Digest:
        """Take in an object. It can be read, and is on disk, after `seal`."""
        return Digest(self.add_key(data).hex())

    def add_key(self, data: bytes) -> bytes:
        """`add`, with the digest as 32 bytes: for those who add 80,000."""
        key = hashlib.sha256(data).digest()
        if not self._is_stored(key):
            self._keys.add(key)
            self._waiting.append((key, data))
            self._waiting_bytes += len(data)
            if self._waiting_bytes >= BATCH_BYTES or len(self._waiting) >= BATCH_OBJECTS:
                self._hand_over()
        return key

    def add_stream(self, chunks: Iterable[bytes], size: int) -> Digest:
        """Take in a big object, in constant memory, as a pack of one. Raises SizeChangedError unless `size` fits."""
        part = PackPart(self._files, self._objects.root)
        whole = hashlib.sha256()
        compressor = self._compressor.compressobj(size=size)
        left = size
        try:
            for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    break
                whole.update(chunk)
                part.append(compressor.compress(chunk))
            if left:
                raise SizeChangedError(f"announced {size} bytes, got {size - left}")
            part.append(compressor.flush())
        except BaseException:
            part.discard()
            raise
        key = whole.digest()
        if self._is_stored(key):
            part.discard()
        else:
            part.add_frame(key, Frame(0, part.bytes, size))
            self._keys.add(key)
            self._seal_part(part)
        return Digest(whole.hexdigest())

    def seal(self) -> None:
        """On return every object added so far is on disk, can be read, and has a durable name."""
        self._wait(0)
        if self._waiting:
            self._write(self._take_waiting())
        if self._part is not None:
            part, self._part = self._part, None
            self._seal_part(part)
        if self._unsynced:
            self._files.sync_directory(self._objects.root)
            self._unsynced = False
        self._stop_thread()
        for name, index in self._sealed:
            self._objects.adopt(name, index)
        self._sealed = []

    def discard(self) -> None:
        """Forget what is unsealed and remove its file; what is sealed stays."""
        self._stop_thread()
        self._take_waiting()
        self._running.clear()
        self._keys = set()
        if self._part is not None:
            part, self._part = self._part, None
            part.discard()

    def holds(self, digest: str) -> bool:
        """Whether the store or this writer has an object. It is on disk, if so, after `seal`."""
        if not DIGEST_PATTERN.match(digest):
            return False
        key = bytes.fromhex(digest)
        if not self._is_stored(key):
            self._objects.refresh()  # Another worker may have sealed it since.
        return self._is_stored(key)

    def _is_stored(self, key: bytes) -> bool:
        """Whether an object need not be written. Who sealed its pack may have died before the name was on disk."""
        if key in self._keys:
            return True
        if self._objects.has_key(key):
            self._unsynced = True
            return True
        return False

    def _hand_over(self) -> None:
        """Let the thread write what is waiting; wait for it where it is too far behind, which bounds memory."""
        if self._thread is None:
            from codebatch.system.threads import Threads  # a small snapshot needs no thread

            self._thread = Threads(1)
        self._wait(BATCHES_BEHIND_MAX - 1)
        self._running.append(self._thread.submit(self._write, self._take_waiting()))

    def _wait(self, left: int) -> None:
        """Until so few batches are in the thread's hands. Raises what went wrong there."""
        while len(self._running) > left:
            self._running.popleft().result()

    def _stop_thread(self) -> None:
        if self._thread is not None:
            self._thread.drop()
            self._thread.end()
            self._thread = None

    def _take_waiting(self) -> list[tuple[bytes, bytes]]:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return waiting

    def _write(self, batch: list[tuple[bytes, bytes]]) -> None:
        """Compress a batch into the current pack. Runs in the thread, or in the caller's while the thread is idle."""
        if self._part is None:
            self._part = PackPart(self._files, self._objects.root)
        part = self._part
        frames = self._compress([data for _, data in batch])
        offset = part.bytes
        for (key, data), frame in zip(batch, frames, strict=True):
            part.add_frame(key, Frame(offset, len(frame), len(data)))
            offset += len(frame)
        part.append(b"".join(frames))
        if part.bytes >= PACK_BYTES:
            self._part = None
            self._seal_part(part)

    def _seal_part(self, part: PackPart) -> None:
        self._unsynced = True
        try:
            self._sealed.append(part.seal())
        except BaseException:
            part.discard()
            raise

    def _compress(self, contents: list[bytes]) -> list[bytes]:
        """One frame each. Only zstandard's C backend has the batch call, which refuses contents without a byte."""
        if any(contents) and "multi_compress_to_buffer" in zstandard.backend_features:
            frames = self._compressor.multi_compress_to_buffer(
                cast("list[bytes | bytearray | memoryview[int]]", contents)
            )
            return [frames[at].tobytes() for at in range(len(frames))]
        return [self._compressor.compress(content) for content in contents]
