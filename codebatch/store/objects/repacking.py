"""Garbage collection of packs: packs without needed objects are removed, those with much garbage are rewritten.

The caller holds the exclusive lock of the store (`StoreDir.exclusive_lock`). A pack is removed only when each of its
needed objects has a verified copy in another pack. That pack and its name must be on disk. So a kill at any point
leaves every needed object in at least one pack. If two packs have it, the next garbage collection removes one copy.
Readers hold no lock: if a pack is gone, they list the packs again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator

import msgspec

from codebatch.model.digest import DIGEST_PATTERN
from codebatch.store import layout
from codebatch.store.objects.frames import CHUNK_BYTES, FrameError, PackFrame, content_digest
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PACK_BYTES_TARGET, PackPart
from codebatch.store.objects.packs import PackIndex

DEAD_SHARE_MIN = 0.3
"""The minimum share of garbage at which a pack is rewritten, from 0 to 1."""


class _RemovedPack(msgspec.Struct, frozen=True):
    """A pack to be removed, and its needed objects in the order of their frames."""

    name: str
    content: PackIndex
    keys: list[bytes]


class RepackingPlan(msgspec.Struct, frozen=True):
    """A plan of the garbage collection of packs.

    `removed` are the packs to remove, `remaining` all other packs. `dead` is the number of objects in removed packs
    that are not needed. `dead_bytes` is the number of bytes that will become free.
    """

    removed: list[_RemovedPack]
    remaining: list[tuple[str, PackIndex, Collection[bytes]]]
    dead: int
    dead_bytes: int

    @property
    def rewritten(self) -> int:
        """The number of removed packs that have needed objects, which are copied to a new pack first."""
        return sum(bool(pack.keys) for pack in self.removed)


def choose_packs(objects: ObjectStore, needed: Collection[bytes]) -> RepackingPlan:
    """Choose the packs to remove. `needed` are the digests of the objects that must remain.

    A pack is removed if it has no undamaged needed object, or if its share of garbage is at least DEAD_SHARE_MIN.
    Garbage is every object that is not needed, damaged, or also in an earlier pack that stays.

    A pack stays if its name is not a digest, or if the frames in its index do not cover all its bytes.
    """
    given_up: list[_RemovedPack] = []
    remaining: list[tuple[str, PackIndex, Collection[bytes]]] = []
    dead: set[bytes] = set()
    dead_bytes = 0
    kept_keys: set[bytes] = set()
    for name, content, bad in objects.iter_packs():
        needed_frames = [(key, content.frame_at_row(row)) for row, key in enumerate(content.all_keys) if key in needed]
        undamaged = [(key, frame) for key, frame in needed_frames if key not in bad]
        waste = content.pack_bytes - sum(frame.length for key, frame in undamaged if key not in kept_keys)
        is_whole = DIGEST_PATTERN.match(name) is not None and sum(content.lengths) == content.pack_bytes
        if is_whole and (not undamaged or waste >= DEAD_SHARE_MIN * content.pack_bytes):
            given_up.append(_RemovedPack(name, content, [key for key, _ in sorted(undamaged, key=_frame_offset)]))
            dead.update(key for key in content.all_keys if key not in needed)
            dead_bytes += waste
        else:
            remaining.append((name, content, bad))
            kept_keys.update(key for key, _ in undamaged)
    return RepackingPlan(given_up, remaining, len(dead), dead_bytes)


def repack_objects(objects: ObjectStore, chosen: RepackingPlan) -> list[str]:
    """Rewrite and remove the chosen packs. Return the names of packs that could not be removed.

    Before a pack is removed, its needed objects are copied to a new pack. If its copy of a needed object is damaged,
    and no other pack has an undamaged copy, the pack is not removed. On return needed objects are on disk, and removed
    packs do not reappear after power loss. If StoreUnwritable is raised, each pack is either rewritten or unchanged.
    """
    return _Repacker(objects, chosen).run()


class _Repacker:
    def __init__(self, objects: ObjectStore, chosen: RepackingPlan) -> None:
        self._objects = objects
        self._files = objects.files
        self._chosen = chosen
        self._moved: set[bytes] = set()
        self._written: set[str] = set()
        self._part: PackPart | None = None
        self._copied: list[str] = []

    def run(self) -> list[str]:
        """Copy needed objects into new packs, then remove the old packs.

        Return the names of packs that could not be removed.

        Packs without needed objects are removed first, to free space.
        """
        given_up = sorted(self._chosen.removed, key=lambda pack: bool(pack.keys))
        damaged = []
        try:
            for pack in given_up:
                if not pack.keys:
                    self._remove_pack(pack.name)
                elif all(self._move_object(pack, key) for key in pack.keys):
                    self._copied.append(pack.name)
                else:
                    damaged.append(pack.name)
                if self._part is not None and self._part.bytes >= PACK_BYTES_TARGET:
                    self._seal_and_remove()
            self._seal_and_remove()
        finally:
            if self._part is not None:
                self._part.discard()
        if given_up:
            self._files.sync_directory(self._objects.root)
        self._sweep_companions()
        self._objects.refresh()
        return damaged

    def _move_object(self, pack: _RemovedPack, key: bytes) -> bool:
        """Ensure that a remaining or new pack has a copy of an object of `pack`.

        Return False if all copies of the object are damaged.
        """
        if key in self._moved or self._is_in_remaining_pack(key):
            return True
        row = pack.content.find(key)
        assert row is not None
        frame = pack.content.frame_at_row(row)
        if not self._is_undamaged(pack.name, key, frame):
            return False
        if self._part is None:
            self._part = PackPart(self._files, self._objects.root)
        start = self._part.bytes
        for chunk in self._read_chunks(pack.name, frame):
            self._part.append(chunk)
        self._part.add_frame(key, PackFrame(start, frame.length, frame.size))
        self._moved.add(key)
        return True

    def _is_in_remaining_pack(self, key: bytes) -> bool:
        for name, content, bad in self._chosen.remaining:
            row = None if key in bad else content.find(key)
            if row is not None and self._is_undamaged(name, key, content.frame_at_row(row)):
                return True
        return False

    def _is_undamaged(self, pack: str, key: bytes, frame: PackFrame) -> bool:
        path = self._objects.root / f"{pack}{layout.PACK_SUFFIX}"
        with contextlib.suppress(FileNotFoundError, FrameError):
            return content_digest(lambda offset, length: self._files.read_range(path, offset, length), frame) == key
        return False

    def _read_chunks(self, pack: str, frame: PackFrame) -> Iterator[bytes]:
        path = self._objects.root / f"{pack}{layout.PACK_SUFFIX}"
        for start in range(0, frame.length, CHUNK_BYTES):
            yield self._files.read_range(path, frame.offset + start, min(CHUNK_BYTES, frame.length - start))

    def _seal_and_remove(self) -> None:
        """Publish the new pack durably, and then remove the packs whose needed objects are in it."""
        if self._part is not None:
            part, self._part = self._part, None
            try:
                name, _ = part.seal_pack()
            except BaseException:
                part.discard()
                raise
            self._files.sync_directory(self._objects.root)
            self._written.add(name)
        for name in self._copied:
            self._remove_pack(name)
        self._copied.clear()

    def _remove_pack(self, pack: str) -> None:
        """Remove a pack, unless this garbage collection has just written a pack with the same name.

        The names are the same if a garbage collection that was killed earlier had already written the same pack.
        """
        if pack not in self._written:
            self._files.remove(self._objects.root / f"{pack}{layout.PACK_SUFFIX}")

    def _sweep_companions(self) -> None:
        """Remove index files and `.bad` files whose pack does not exist."""
        names = self._files.listing(self._objects.root)
        packs = {name.removesuffix(layout.PACK_SUFFIX) for name in names if name.endswith(layout.PACK_SUFFIX)}
        for name in names:
            stem, dot, suffix = name.rpartition(".")
            if stem not in packs and f"{dot}{suffix}" in (layout.INDEX_SUFFIX, layout.DAMAGED_SUFFIX):
                self._files.remove(self._objects.root / name)


def _frame_offset(frame_of_key: tuple[bytes, PackFrame]) -> int:
    return frame_of_key[1].offset
