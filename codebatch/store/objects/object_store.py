"""Objects: immutable bytes by the sha256 of their content, read back out of packs.

A read has two outcomes: the bytes that have the hash, or ObjectMissing. Bytes that do not have the hash are remembered
beside their pack (packs.py, `.bad`), so the object counts as missing and the next snapshot stores it again.
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
from codebatch.store.objects.frames import CHUNK_BYTES, Frame, FrameError, decompress_one
from codebatch.store.objects.packs import PackIndex, decode_bad, decode_index, encode_bad, encode_index, index_from_pack
from codebatch.system.files.files import Files

# Objects are written in the order of their paths and mostly read in it: one read brings in the neighbours. What lies
# elsewhere, for another path had the same content first, has neighbours that come next as well: the last few stay.
_WINDOW_BYTES = 64 * 1024
_WINDOWS = 4

_SEARCHED_MAX = 64
"""So many objects are searched for in each index; who asks for more is worth a dictionary of all that there are."""


class ObjectLocation(msgspec.Struct, frozen=True):
    """Where an object lies: the pack's name without suffix, and the frame in it."""

    pack: str
    frame: Frame


class _PackWindow(msgspec.Struct, frozen=True):
    """A stretch of a pack that was read."""

    pack: str
    start: int
    data: bytes


class _Pack(msgspec.Struct, frozen=True):
    name: str
    content: PackIndex


class ObjectStore:
    """The objects below one `objects` directory, which need not exist yet.

    Indexes are loaded at first use and kept; packs that others seal later are found when a digest is asked for that no
    known pack holds. Not for use by several threads at once.
    """

    def __init__(self, files: Files, root: Path) -> None:
        self.root = root
        self.files = files
        self._packs: list[_Pack] = []
        self._searched = 0
        self._holders: dict[bytes, _Pack] | None = None
        self._bad: dict[str, set[bytes]] = {}
        self._loaded = False
        self._decompressor = zstandard.ZstdDecompressor()
        self._windows: deque[_PackWindow] = deque(maxlen=_WINDOWS)

    def read(self, digest: Digest, size: int | None = None) -> bytes:
        """The bytes of an object; `size`, where it is known, must be theirs. Raises ObjectMissing, naming the pack."""
        key = bytes.fromhex(digest)
        bad_pack: str | None = None
        # Two rounds: between the listing that we know and this read, gc may have moved the object to another pack.
        for _ in range(2):
            while (location := self.location(digest)) is not None:
                data = self._try_read(key, location)
                if data is not None:
                    # The hash is right, so it is whoever remembers another size that is wrong: the object stays.
                    if size not in (None, len(data)):
                        raise ObjectMissing(f"object {digest} has {len(data)} bytes instead of {size}")
                    return data
                bad_pack = location.pack
                self._condemn(key, location.pack)
            self.refresh()
        if bad_pack is None:
            raise ObjectMissing(f"object {digest} is not in any pack in {self.root}", hint=_HINT)
        raise ObjectMissing(
            f"object {digest} is missing or damaged in {self.root / bad_pack}{layout.PACK_SUFFIX}", hint=_HINT
        )

    def has_key(self, key: bytes) -> bool:
        """Whether a sealed pack that this process knows of holds the object, and nobody found it unsound there.

        `key` is the digest as 32 bytes: there are those who ask 80,000 times.
        """
        if not self._loaded:
            self.refresh()
        return key in self._known_holders()

    def location(self, digest: Digest) -> ObjectLocation | None:
        """Where an object lies, looked up in packs sealed since as well; None where no pack holds it."""
        key = bytes.fromhex(digest)
        pack = self._holder(key)
        if pack is None:
            self.refresh()
            pack = self._holder(key)
        row = None if pack is None else pack.content.find(key)
        return None if pack is None or row is None else ObjectLocation(pack.name, pack.content.frame(row))

    def packs(self) -> list[tuple[str, PackIndex, Collection[bytes]]]:
        """Every sealed pack by name: its index, and the objects that somebody found unsound in it."""
        self.refresh()
        return [(pack.name, pack.content, self._bad.get(pack.name, ())) for pack in self._packs]

    def pack_sizes(self) -> list[tuple[str, int]] | None:
        """Name and size of every pack on disk, sorted; None where some object is known to be unsound."""
        names = self.files.listing(self.root)
        if any(name.endswith(layout.BAD_SUFFIX) for name in names):
            return None
        packs = [name for name in names if name.endswith(layout.PACK_SUFFIX)]
        return [(name, self.files.size(self.root / name) or 0) for name in packs]

    def refresh(self) -> None:
        """Look at the directory again: load what is new, forget packs that are gone."""
        names = self.files.listing(self.root)
        packs = {name.removesuffix(layout.PACK_SUFFIX) for name in names if name.endswith(layout.PACK_SUFFIX)}
        bad = {name.removesuffix(layout.BAD_SUFFIX) for name in names if name.endswith(layout.BAD_SUFFIX)} & packs
        known = {pack.name: pack.content for pack in self._packs}
        self._loaded = True
        if packs == known.keys() and bad <= self._bad.keys():
            return
        for name in bad:
            with contextlib.suppress(FileNotFoundError, UnsupportedEntry):
                lines = self.files.read(self.root / f"{name}{layout.BAD_SUFFIX}")
                self._bad.setdefault(name, set()).update(decode_bad(lines))
        indexes = ((name, known.get(name) or self._load(name)) for name in sorted(packs))
        self._adopt_all([(name, index) for name, index in indexes if index is not None])

    def adopt(self, name: str, index: PackIndex) -> None:
        """Take in a pack that this process just sealed. What was said against a pack of that name is past."""
        self._bad.pop(name, None)
        if any(pack.name == name for pack in self._packs):
            self._adopt_all([(pack.name, pack.content) for pack in self._packs])
        else:
            self._add_pack(name, index)

    def _adopt_all(self, packs: list[tuple[str, PackIndex]]) -> None:
        """Know exactly these packs."""
        self._packs, self._holders = [_Pack(name, index) for name, index in packs], None

    def _add_pack(self, name: str, index: PackIndex) -> None:
        self._packs.append(_Pack(name, index))
        if self._holders is not None:
            self._hold(self._packs[-1], self._holders)

    def _holder(self, key: bytes) -> _Pack | None:
        """The last of the packs that are known that holds an object soundly."""
        if self._holders is None and self._searched < _SEARCHED_MAX:
            self._searched += 1
            return self._search(key)
        return self._known_holders().get(key)

    def _search(self, key: bytes) -> _Pack | None:
        holders = (pack for pack in reversed(self._packs) if pack.content.find(key) is not None)
        return next((pack for pack in holders if key not in self._bad.get(pack.name, ())), None)

    def _known_holders(self) -> dict[bytes, _Pack]:
        if self._holders is None:
            self._holders = {}
            for pack in self._packs:
                self._hold(pack, self._holders)
        return self._holders

    def _hold(self, pack: _Pack, holders: dict[bytes, _Pack]) -> None:
        bad, keys = self._bad.get(pack.name), pack.content.all_keys
        holders.update(dict.fromkeys([key for key in keys if key not in bad] if bad else keys, pack))

    def _load(self, name: str) -> PackIndex | None:
        """The index of a pack: the one on disk if it is sound and fits, else a new one; None if the pack is gone.

        So it is if something else than a file has the name.
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
        # A store that cannot be written can still be read: then every process makes the index for itself. So it is
        # where a writer took the unfinished one for a dead reader's, and of a damaged pack: the index would outlive
        # the damage where somebody puts a sound pack in its place.
        with contextlib.suppress(StoreUnwritable, UnsupportedEntry, FileNotFoundError):
            if self._is_what_its_name_says(name, pack_bytes):
                self.files.write_volatile(self.root / f"{name}{layout.INDEX_SUFFIX}", encode_index(index))
        return index

    def _is_what_its_name_says(self, name: str, pack_bytes: int) -> bool:
        whole = hashlib.sha256()
        path = self.root / f"{name}{layout.PACK_SUFFIX}"
        for offset in range(0, pack_bytes, CHUNK_BYTES):
            whole.update(self.files.read_range(path, offset, CHUNK_BYTES))
        return whole.hexdigest() == name

    def _try_read(self, key: bytes, location: ObjectLocation) -> bytes | None:
        data = self._content(key, location)
        if data is None:
            # What was read ahead may be of a pack that has been replaced since.
            self._windows.clear()
            data = self._content(key, location)
        return data

    def _content(self, key: bytes, location: ObjectLocation) -> bytes | None:
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

    def _condemn(self, key: bytes, pack: str) -> None:
        """Remember that a pack's copy of an object is unsound, and fall back to another pack's copy if there is one.

        Two readers that condemn two objects of one pack at the same time may lose one line; the object lost from the
        list is found unsound again by whoever reads it next.
        """
        bad = self._bad.setdefault(pack, set())
        bad.add(key)
        if self._holders is not None:
            self._holders.pop(key, None)
            other = self._search(key)
            if other is not None:
                self._holders[key] = other
        if self.files.size(self.root / f"{pack}{layout.PACK_SUFFIX}") is None:
            return  # gc took the pack: nothing is unsound, and the next `refresh` forgets it
        with contextlib.suppress(StoreUnwritable, UnsupportedEntry, FileNotFoundError):
            self.files.write_volatile(self.root / f"{pack}{layout.BAD_SUFFIX}", encode_bad(bad))


_HINT = "to restore the object, take the snapshot again while the source still has the file"
