"""An index that is there: of which what is asked is opened, only where it is sound, and says where to look.

It narrows and never answers. What it knows of a shard file holds of any whose trailer has the digest: the same records
are behind it, in whatever batch. Of one that it does not know it says so, and the caller reads all of it.

A part of it is read when it is first asked. Where another process has made a newer index of the batch by then, and
removed this one, the newer is asked: of a shard file that both know they say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from codebatch.index.generations import corrupt_index, generations, indexes_of, read_index_file
from codebatch.index.keys import KINDS_POSTED, Lookup
from codebatch.index.parts import LayerReader
from codebatch.model.digest import Digest
from codebatch.store import layout
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.outputs import TaskOutput

T = TypeVar("T")

_TRIES_MAX = 4


class _Generation(msgspec.Struct, frozen=True):
    """An index on disk, and the shard files that it knows."""

    root: Path
    layers: tuple[LayerReader, ...]
    known: frozenset[Digest]


class _FramesFound(msgspec.Struct, frozen=True):
    """The frames that hold any of what was looked for, by the shard files that an index knew."""

    lookups: tuple[Lookup, ...]
    frames: dict[Digest, set[int]]
    known: frozenset[Digest]


class BatchIndex:
    """The index of a batch. Every method raises CorruptFile where what it asks of it is unsound."""

    def __init__(self, store: StoreDir, batch_id: str, generation: _Generation) -> None:
        self._store = store
        self._batch_id = batch_id
        self._generation = generation
        self._found = _FramesFound((), {}, generation.known)

    def posted(self) -> dict[Digest, dict[bytes, bytes]]:
        """What each shard file posts that it knows: by key the frames, as in `Terms`."""
        return self._ask(_posted)

    def check(self) -> None:
        """Hold every byte of it against what index.json says."""
        self._ask(_check)

    def find(self, lookups: Sequence[Lookup]) -> dict[Digest, set[int]]:
        """The frames that hold any of what is looked for, by the digest of their shard file's trailer."""
        return self._look_up(lookups).frames

    def narrow(self, output: TaskOutput, lookups: Sequence[Lookup]) -> list[Sequence[int] | None]:
        """For each shard of a task the frames, ascending, that hold any of what is looked for. None: all may."""
        found = self._look_up(lookups)
        return [
            sorted(found.frames.get(shard.digest, ()))
            if shard.digest in found.known or KINDS_POSTED.isdisjoint(shard.counts.kinds)
            else None
            for shard in output.shards
        ]

    def close(self) -> None:
        """Give the memory back. Nothing may be asked any more."""
        for layer in self._generation.layers:
            layer.close()

    def _look_up(self, lookups: Sequence[Lookup]) -> _FramesFound:
        asked = tuple(lookups)
        found = self._found  # One object: several threads may ask.
        if found.lookups != asked:  # It is asked the same of each task.
            found = self._found = self._ask(lambda generation: _find(generation, asked))
        return found

    def _ask(self, ask: Callable[[_Generation], T]) -> T:
        generation = self._generation
        for _ in range(_TRIES_MAX):
            try:
                return ask(generation)
            except FileNotFoundError:
                newer = _current(self._store, self._batch_id)
                if newer is None or newer.root == generation.root:
                    break
                self._generation = generation = newer
        raise corrupt_index(generation.root, "lacks a file")


def _find(generation: _Generation, lookups: tuple[Lookup, ...]) -> _FramesFound:
    found: dict[Digest, set[int]] = {}
    for layer in generation.layers:
        for digest, frames in layer.find(lookups):
            found.setdefault(digest, set()).update(frames)
    return _FramesFound(lookups, found, generation.known)


def _posted(generation: _Generation) -> dict[Digest, dict[bytes, bytes]]:
    import struct  # which look-ups do without

    posted: dict[Digest, dict[bytes, bytes]] = {digest: {} for digest in generation.known}
    for layer in generation.layers:
        for key, digest, frames in layer.iter_posted():
            posted[digest][key] = struct.pack(f"<{len(frames)}I", *frames)
    return posted


def _check(generation: _Generation) -> None:
    for layer in generation.layers:
        layer.check()


def open_index(store: StoreDir, batch_id: str) -> BatchIndex | None:
    """The current index of a batch; None where there is none, or only one of another version of the terms.

    Raises CorruptFile where index.json is unsound, and StoreError where it cannot be read.
    """
    generation = _current(store, batch_id)
    return None if generation is None else BatchIndex(store, batch_id, generation)


def _current(store: StoreDir, batch_id: str) -> _Generation | None:
    for _ in range(_TRIES_MAX):
        there = generations(store, batch_id)
        if not there:
            return None
        root = indexes_of(store, batch_id) / str(there[-1])
        try:
            about = read_index_file(store, root)
        except FileNotFoundError:
            if generations(store, batch_id) == there:  # Else a newer one took its place while it was read.
                raise corrupt_index(root, "lacks a file") from None
            continue
        if about is None:
            return None
        layers = tuple(
            LayerReader(store.files, root, name, layer)
            for name, layer in ((layout.INDEX_BASE, about.base), (layout.INDEX_OVERLAY, about.overlay))
            if layer is not None
        )
        return _Generation(root, layers, frozenset(digest for layer in layers for digest in layer.slots))
    return None
