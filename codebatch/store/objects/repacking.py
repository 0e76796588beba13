"""Packs without what nobody names: those that hold nothing else go, those that are in good part dead are written anew.

Only for who has the store alone (`Store.alone`). A pack goes when each object in it that is needed lies, checked, in
another one whose bytes and name are on disk: so whoever is killed at any call leaves every needed object in some pack,
perhaps in two, of which the next one takes one. Readers hold no lock: who finds a pack gone looks at the list again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator

import msgspec

from codebatch.model.digest import DIGEST_PATTERN
from codebatch.store import layout
from codebatch.store.objects.frames import CHUNK_BYTES, Frame, FrameError, content_digest
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PACK_BYTES, PackPart
from codebatch.store.objects.packs import PackIndex

DEAD_SHARE_MIN = 0.3
"""A pack of which so much is dead is written anew."""


class _Held(msgspec.Struct, frozen=True):
    """A pack that is given up, and its objects that are needed, in the order in which they lie."""

    name: str
    content: PackIndex
    keys: list[bytes]


class Repacking(msgspec.Struct, frozen=True):
    """What is to be done: `given_up` are the packs that go, `left` those that stay; `dead` counts objects."""

    given_up: list[_Held]
    left: list[tuple[str, PackIndex, Collection[bytes]]]
    dead: int
    dead_bytes: int

    @property
    def rewritten(self) -> int:
        """How many packs hold what is copied."""
        return sum(bool(pack.keys) for pack in self.given_up)


def choose_packs(objects: ObjectStore, needed: Collection[bytes]) -> Repacking:
    """Which packs go, where exactly these objects are needed. A second copy of an object is as good as dead.

    Left alone is what has no pack's name, and a pack of which the index does not know every byte, for it is damaged.
    """
    given_up: list[_Held] = []
    left: list[tuple[str, PackIndex, Collection[bytes]]] = []
    dead: set[bytes] = set()
    dead_bytes = 0
    met: set[bytes] = set()
    for name, content, bad in objects.packs():
        wanted = [(key, content.frame(row)) for row, key in enumerate(content.all_keys) if key in needed]
        held = [(key, frame) for key, frame in wanted if key not in bad]
        waste = content.pack_bytes - sum(frame.length for key, frame in held if key not in met)
        is_whole = DIGEST_PATTERN.match(name) is not None and sum(content.lengths) == content.pack_bytes
        if is_whole and (not held or waste >= DEAD_SHARE_MIN * content.pack_bytes):
            given_up.append(_Held(name, content, [key for key, _ in sorted(held, key=_offset)]))
            dead.update(key for key in content.all_keys if key not in needed)
            dead_bytes += waste
        else:
            left.append((name, content, bad))
            met.update(key for key, _ in held)
    return Repacking(given_up, left, len(dead), dead_bytes)


def repack(objects: ObjectStore, chosen: Repacking) -> list[str]:
    """Do it; returns the packs that had to stay, for an object that is needed is damaged there and nowhere sound.

    On return what is needed is on disk, and what went does not come back with power. Raises StoreUnwritable: then some
    packs are done, and others as they were.
    """
    return _Repacker(objects, chosen).run()


class _Repacker:
    def __init__(self, objects: ObjectStore, chosen: Repacking) -> None:
        self._objects = objects
        self._files = objects.files
        self._chosen = chosen
        self._moved: set[bytes] = set()
        self._written: set[str] = set()
        self._part: PackPart | None = None
        self._copied: list[str] = []

    def run(self) -> list[str]:
        """What holds nothing goes first: it makes room for the copies."""
        given_up = sorted(self._chosen.given_up, key=lambda pack: bool(pack.keys))
        damaged = []
        try:
            for pack in given_up:
                if not pack.keys:
                    self._remove(pack.name)
                elif all(self._move(pack, key) for key in pack.keys):
                    self._copied.append(pack.name)
                else:
                    damaged.append(pack.name)
                if self._part is not None and self._part.bytes >= PACK_BYTES:
                    self._seal()
            self._seal()
        finally:
            if self._part is not None:
                self._part.discard()
        if given_up:
            self._files.sync_directory(self._objects.root)
        self._sweep_companions()
        self._objects.refresh()
        return damaged

    def _move(self, pack: _Held, key: bytes) -> bool:
        """See that an object of a pack lies in one that stays; False where it is damaged here and in none of those."""
        if key in self._moved or self._is_in_one_that_stays(key):
            return True
        row = pack.content.find(key)
        assert row is not None
        frame = pack.content.frame(row)
        if not self._is_sound(pack.name, key, frame):
            return False
        if self._part is None:
            self._part = PackPart(self._files, self._objects.root)
        start = self._part.bytes
        for chunk in self._chunks(pack.name, frame):
            self._part.append(chunk)
        self._part.add_frame(key, Frame(start, frame.length, frame.size))
        self._moved.add(key)
        return True

    def _is_in_one_that_stays(self, key: bytes) -> bool:
        for name, content, bad in self._chosen.left:
            row = None if key in bad else content.find(key)
            if row is not None and self._is_sound(name, key, content.frame(row)):
                return True
        return False

    def _is_sound(self, pack: str, key: bytes, frame: Frame) -> bool:
        path = self._objects.root / f"{pack}{layout.PACK_SUFFIX}"
        with contextlib.suppress(FileNotFoundError, FrameError):
            return content_digest(lambda offset, length: self._files.read_range(path, offset, length), frame) == key
        return False

    def _chunks(self, pack: str, frame: Frame) -> Iterator[bytes]:
        path = self._objects.root / f"{pack}{layout.PACK_SUFFIX}"
        for start in range(0, frame.length, CHUNK_BYTES):
            yield self._files.read_range(path, frame.offset + start, min(CHUNK_BYTES, frame.length - start))

    def _seal(self) -> None:
        """Bring the new pack and its name to disk, and only then remove those that it stands for."""
        if self._part is not None:
            part, self._part = self._part, None
            try:
                name, _ = part.seal()
            except BaseException:
                part.discard()
                raise
            self._files.sync_directory(self._objects.root)
            self._written.add(name)
        for name in self._copied:
            self._remove(name)
        self._copied.clear()

    def _remove(self, pack: str) -> None:
        """Remove a pack. One that was killed before may have written, of the same packs, the one that we just wrote."""
        if pack not in self._written:
            self._files.remove(self._objects.root / f"{pack}{layout.PACK_SUFFIX}")

    def _sweep_companions(self) -> None:
        """Remove what lies beside a pack that is gone."""
        names = self._files.listing(self._objects.root)
        packs = {name.removesuffix(layout.PACK_SUFFIX) for name in names if name.endswith(layout.PACK_SUFFIX)}
        for name in names:
            stem, dot, suffix = name.rpartition(".")
            if stem not in packs and f"{dot}{suffix}" in (layout.INDEX_SUFFIX, layout.BAD_SUFFIX):
                self._files.remove(self._objects.root / name)


def _offset(held: tuple[bytes, Frame]) -> int:
    return held[1].offset
