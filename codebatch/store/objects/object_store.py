"""Objects: immutable bytes, named by the sha256 of their content, and read from packs.

A read returns bytes with the requested hash, or raises ObjectMissing. If the bytes in a pack have another hash, the
object is damaged. Its digest is then added to the `.bad` file of the pack (packs.py). A damaged object counts as
missing, so the next snapshot stores it again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Collection
from pathlib import Path

import msgspec
import zstandard

from codebatch.errors import ObjectMissing, StoreUnwritable, UnsupportedEntry
from codebatch.model.digest import Digest
from codebatch.store import layout
from codebatch.store.objects.frames import CHUNK_BYTES, FrameError, PackFrame, decompress_one
from codebatch.store.objects.packs import (
    PackIndex,
    decode_damaged_keys,
    decode_index,
    encode_damaged_keys,
    encode_index,
    index_from_pack,
)
from codebatch.system.files.files import StoreFiles

# Objects are written in path order and mostly read in path order, so each read also fetches the objects that follow.
# Some objects are elsewhere, because their content first appeared under another path. Their neighbors are often
# requested next as well, so the last few windows are cached.
_WINDOW_BYTES = 64 * 1024
_CACHED_WINDOWS_MAX = 4

_SEARCHED_PACKS_MAX = 64
"""Number of binary searches in pack indexes.

After this number, the store builds a dictionary of all objects and uses it instead.
"""


class ObjectLocation(msgspec.Struct, frozen=True):
    """The location of an object: the name of its pack without suffix, and its frame in the pack."""

    pack: str
    frame: PackFrame


class _PackWindow(msgspec.Struct, frozen=True):
    """A byte range of a pack, read in one call and cached."""

    pack: str
    start: int
    data: bytes


class _LoadedPack(msgspec.Struct, frozen=True):
    name: str
    content: PackIndex


class ObjectStore:
    """The objects in one `objects` directory, which may not exist yet. Not thread-safe. It has many methods.

    Pack indexes are loaded at first use and cached. If no loaded index has a digest, the directory is listed again to
    find packs that other processes have sealed since.
    """

    def __init__(self, files: StoreFiles, root: Path) -> None:
        self.root = root
        self.files = files
        self._packs: list[_LoadedPack] = []
        self._searched = 0
        self._pack_by_key: dict[bytes, _LoadedPack] | None = None
        self._damaged_keys: dict[str, set[bytes]] = {}
        self._loaded = False
        self._decompressor = zstandard.ZstdDecompressor()
        self._windows: deque[_PackWindow] = deque(maxlen=_CACHED_WINDOWS_MAX)

    def read(self, digest: Digest, size: int | None = None) -> bytes:
        """Return the bytes of an object. Raises ObjectMissing if it is missing, damaged, or not `size` bytes long."""
        key = bytes.fromhex(digest)
        bad_pack: str | None = None
        # Two rounds: since the last listing, garbage collection may have moved the object to another pack.
        for _ in range(2):
            while (location := self.find_location(digest)) is not None:
                data = self._try_read(key, location)
                if data is not None:
                    # The hash matches, so the expected size is wrong and the object is not damaged.
                    if size not in (None, len(data)):
                        raise ObjectMissing(f"object {digest} has {len(data)} bytes instead of {size}")
                    return data
                bad_pack = location.pack
                self._record_damage(key, location.pack)
            self.refresh()
        if bad_pack is None:
            raise ObjectMissing(f"object {digest} is not in any pack in {self.root}", hint=_MISSING_OBJECT_HINT)
        raise ObjectMissing(
            f"object {digest} is missing or damaged in {self.root / bad_pack}{layout.PACK_SUFFIX}",
            hint=_MISSING_OBJECT_HINT,
        )

    def read_frame(self, digest: Digest) -> tuple[bytes, int]:
        """Return the frame of an object as it is stored, and the size of the object. Neither is verified.

        Raises ObjectMissing.
        """
        for _ in range(2):
            if (location := self.find_location(digest)) is not None:
                with contextlib.suppress(FileNotFoundError, UnsupportedEntry):
                    return self._frame_bytes(location), location.frame.size
            self.refresh()
        raise ObjectMissing(f"object {digest} is not in any pack in {self.root}", hint=_MISSING_OBJECT_HINT)

    def has_key(self, key: bytes) -> bool:
        """Return whether a known sealed pack contains an undamaged copy of an object, as far as known.

        `key` is the digest as 32 bytes, so that loops over many objects need no conversion from hex.
        """
        if not self._loaded:
            self.refresh()
        return key in self._load_pack_by_key()

    def find_location(self, digest: Digest) -> ObjectLocation | None:
        """Return the location of an object, or None if no pack contains it.

        Packs that were sealed since the last listing are searched too.
        """
        key = bytes.fromhex(digest)
        pack = self._find_pack(key)
        if pack is None:
            self.refresh()
            pack = self._find_pack(key)
        row = None if pack is None else pack.content.find(key)
        return None if pack is None or row is None else ObjectLocation(pack.name, pack.content.frame_at_row(row))

    def iter_packs(self) -> list[tuple[str, PackIndex, Collection[bytes]]]:
        """Return every sealed pack: its name, its index, and the digests of objects known to be damaged in it.

        Packs are sorted by name.
        """
        self.refresh()
        return [(pack.name, pack.content, self._damaged_keys.get(pack.name, ())) for pack in self._packs]

    def pack_sizes(self) -> list[tuple[str, int]] | None:
        """Return (name, size in bytes) of every pack on disk, sorted.

        Return None if any object is known to be damaged.
        """
        names = self.files.listing(self.root)
        if any(name.endswith(layout.DAMAGED_SUFFIX) for name in names):
            return None
        packs = [name for name in names if name.endswith(layout.PACK_SUFFIX)]
        return [(name, self.files.size(self.root / name) or 0) for name in packs]

    def refresh(self) -> None:
        """List the packs on disk again: load new packs and forget removed ones."""
        names = self.files.listing(self.root)
        packs = {name.removesuffix(layout.PACK_SUFFIX) for name in names if name.endswith(layout.PACK_SUFFIX)}
        bad = {
            name.removesuffix(layout.DAMAGED_SUFFIX) for name in names if name.endswith(layout.DAMAGED_SUFFIX)
        } & packs
        known_indexes = {pack.name: pack.content for pack in self._packs}
        self._loaded = True
        if packs == known_indexes.keys() and bad <= self._damaged_keys.keys():
            return
        for name in bad:
            with contextlib.suppress(FileNotFoundError, UnsupportedEntry):
                lines = self.files.read(self.root / f"{name}{layout.DAMAGED_SUFFIX}")
                self._damaged_keys.setdefault(name, set()).update(decode_damaged_keys(lines))
        indexes = ((name, known_indexes.get(name) or self._load_index(name)) for name in sorted(packs))
        self._replace_packs([(name, index) for name, index in indexes if index is not None])

    def add_sealed_pack(self, name: str, index: PackIndex) -> None:
        """Add a pack that this process has just sealed.

        If a damaged pack has the same name, the new one replaces it.
        """
        self._damaged_keys.pop(name, None)
        if any(pack.name == name for pack in self._packs):
            self._replace_packs([(pack.name, pack.content) for pack in self._packs])
        else:
            self._add_pack(name, index)

    def _replace_packs(self, packs: list[tuple[str, PackIndex]]) -> None:
        """Replace the list of known packs."""
        self._packs, self._pack_by_key = [_LoadedPack(name, index) for name, index in packs], None

    def _add_pack(self, name: str, index: PackIndex) -> None:
        self._packs.append(_LoadedPack(name, index))
        if self._pack_by_key is not None:
            self._index_pack(self._packs[-1], self._pack_by_key)

    def _find_pack(self, key: bytes) -> _LoadedPack | None:
        """Return the last known pack that has an undamaged copy of an object, as far as known.

        Return None if there is no such pack.
        """
        if self._pack_by_key is None and self._searched < _SEARCHED_PACKS_MAX:
            self._searched += 1
            return self._search_packs(key)
        return self._load_pack_by_key().get(key)

    def _search_packs(self, key: bytes) -> _LoadedPack | None:
        packs = (pack for pack in reversed(self._packs) if pack.content.find(key) is not None)
        return next((pack for pack in packs if key not in self._damaged_keys.get(pack.name, ())), None)

    def _load_pack_by_key(self) -> dict[bytes, _LoadedPack]:
        if self._pack_by_key is None:
            self._pack_by_key = {}
            for pack in self._packs:
                self._index_pack(pack, self._pack_by_key)
        return self._pack_by_key

    def _index_pack(self, pack: _LoadedPack, pack_by_key: dict[bytes, _LoadedPack]) -> None:
        bad, keys = self._damaged_keys.get(pack.name), pack.content.all_keys
        pack_by_key.update(dict.fromkeys([key for key in keys if key not in bad] if bad else keys, pack))

    def _load_index(self, name: str) -> PackIndex | None:
        """Return the index of a pack: from the index file if this is valid, otherwise built from the pack.

        Return None if the pack is missing or is not a regular file.
        """
        path = self.root / f"{name}{layout.PACK_SUFFIX}"
        pack_bytes = self.files.size(path)
        if pack_bytes is None:
            return None
        try:
            index = decode_index(self.files.read(self.root / f"{name}{layout.INDEX_SUFFIX}"))
            if index.pack_bytes == pack_bytes:
                return index
        except (FileNotFoundError, ValueError, UnsupportedEntry):
            pass
        try:
            index = index_from_pack(lambda offset, length: self.files.read_range(path, offset, length), pack_bytes)
        except (FileNotFoundError, UnsupportedEntry):
            return None
        # Write the index if possible. In a read-only store, or if a writer took the unfinished index for an orphan,
        # every process builds its own. The index of a damaged pack is not written, because it would remain after an
        # undamaged pack replaces the damaged one.
        with contextlib.suppress(StoreUnwritable, UnsupportedEntry, FileNotFoundError):
            if self._matches_name(name, pack_bytes):
                self.files.write_volatile(self.root / f"{name}{layout.INDEX_SUFFIX}", encode_index(index))
        return index

    def _matches_name(self, name: str, pack_bytes: int) -> bool:
        hasher = hashlib.sha256()
        path = self.root / f"{name}{layout.PACK_SUFFIX}"
        for offset in range(0, pack_bytes, CHUNK_BYTES):
            hasher.update(self.files.read_range(path, offset, CHUNK_BYTES))
        return hasher.hexdigest() == name

    def _try_read(self, key: bytes, location: ObjectLocation) -> bytes | None:
        data = self._verified_content(key, location)
        if data is None:
            # The cached windows may be from a pack that has been replaced since.
            self._windows.clear()
            data = self._verified_content(key, location)
        return data

    def _verified_content(self, key: bytes, location: ObjectLocation) -> bytes | None:
        try:
            data = decompress_one(self._frame_bytes(location), location.frame.size, self._decompressor)
        except (FileNotFoundError, FrameError, UnsupportedEntry):
            return None
        return data if hashlib.sha256(data).digest() == key else None

    def _frame_bytes(self, location: ObjectLocation) -> bytes:
        pack, start, length = location.pack, location.frame.offset, location.frame.length
        for window in self._windows:
            inside = start - window.start
            if 0 <= inside <= len(window.data) - length and window.pack == pack:
                return window.data[inside : inside + length]
        read = max(length, _WINDOW_BYTES)
        data = self.files.read_range(self.root / f"{pack}{layout.PACK_SUFFIX}", start, read)
        if read == _WINDOW_BYTES:
            self._windows.appendleft(_PackWindow(pack, start, data))
        return data[:length]

    def _record_damage(self, key: bytes, pack: str) -> None:
        """Add an object to the `.bad` file of a pack, whose copy is damaged. From now on, use a copy in another pack.

        If two readers add to one `.bad` file at the same time, a line may be lost. The next reader of the damaged
        object adds the line again.
        """
        bad = self._damaged_keys.setdefault(pack, set())
        bad.add(key)
        if self._pack_by_key is not None:
            self._pack_by_key.pop(key, None)
            other_pack = self._search_packs(key)
            if other_pack is not None:
                self._pack_by_key[key] = other_pack
        if self.files.size(self.root / f"{pack}{layout.PACK_SUFFIX}") is None:
            return  # Garbage collection removed the pack. Nothing is damaged, and the next `refresh` drops it.
        with contextlib.suppress(StoreUnwritable, UnsupportedEntry, FileNotFoundError):
            self.files.write_volatile(self.root / f"{pack}{layout.DAMAGED_SUFFIX}", encode_damaged_keys(bad))


_MISSING_OBJECT_HINT = "to restore the object, take the snapshot again while the source still has the file"
