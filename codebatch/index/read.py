"""Reading of an index: only the needed parts are opened and verified.

The index returns the frames that may match a search. The caller then reads and filters the records in these frames.
Shard files with the same trailer digest have the same records, so postings are valid for each of them, in any batch. If
a shard file is not in the index, the caller reads all of it.

A part is read when it is first used. Before that, another process may publish a newer index of the batch and remove
this one. Then the newer index is used. A shard file that is in both indexes has equal postings in both.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from codebatch.index.generations import corrupt_index, index_directory, list_generations, read_index_file
from codebatch.index.keys import INDEXED_KINDS, TermLookup
from codebatch.index.parts import LayerReader
from codebatch.index.word_reader import WordReader
from codebatch.model.digest import Digest
from codebatch.store import layout
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import TaskOutput

T = TypeVar("T")

_OPEN_ATTEMPTS_MAX = 4


class _OpenGeneration(msgspec.Struct, frozen=True):
    """One index of a batch on disk, and the trailer digests of the shard files that it covers.

    `words` is None if the words have another version, or the items of the batch could not be read.
    """

    root: Path
    layers: tuple[LayerReader, ...]
    known: frozenset[Digest]
    words: WordReader | None


class _MatchingFrames(msgspec.Struct, frozen=True):
    """The frames that match any of the lookups, by shard file, and the shard files that the index covers."""

    lookups: tuple[TermLookup, ...]
    frames: dict[Digest, set[int]]
    known: frozenset[Digest]


class BatchIndex:
    """The index of a batch. Every method raises CorruptFile if a part that it needs is damaged."""

    def __init__(self, store: StoreDir, batch_id: str, generation: _OpenGeneration) -> None:
        self._store = store
        self._batch_id = batch_id
        self._generation = generation
        self._last_match = _MatchingFrames((), {}, generation.known)

    def read_postings(self) -> dict[Digest, dict[bytes, bytes]]:
        """Return, for each shard file in the index, its postings: a map from keys to frames, as in `Terms.by_key`."""
        return self._query_newest(_read_postings)

    def check(self) -> None:
        """Verify every byte of the index against index.json."""
        self._query_newest(_verify_layers)

    def find(self, lookups: Sequence[TermLookup]) -> dict[Digest, set[int]]:
        """Return the frames that match any of the lookups, by the digest of their shard file's trailer."""
        return self._find_frames(lookups).frames

    def narrow_frames(self, output: TaskOutput, lookups: Sequence[TermLookup]) -> list[Sequence[int] | None]:
        """Return, for each shard of a task, the frames that may match, ascending.

        None means that any frame may match.
        """
        result = self._find_frames(lookups)
        return [
            sorted(result.frames.get(shard.digest, ()))
            if shard.digest in result.known or INDEXED_KINDS.isdisjoint(shard.counts.kinds)
            else None
            for shard in output.shards
        ]

    def find_items(self, words: Sequence[bytes], items: int) -> list[int] | None:
        """Return the numbers of the items whose contents may have all of the words, ascending.

        `items` is the number of items of the batch. Return None if the index has no words.
        """

        def find(generation: _OpenGeneration) -> list[int] | None:
            if generation.words is None:
                return None
            if len(generation.words.places) != items:
                raise corrupt_index(generation.root, "has another number of files than the batch")
            return generation.words.find_items(words)

        return self._query_newest(find)

    def has_words(self, item: int, words: Collection[bytes]) -> bool:
        """Return whether an item is found by each of the words. False if the index has no words."""
        return self._query_newest(
            lambda generation: generation.words is not None and generation.words.has_words(item, words)
        )

    def close(self) -> None:
        """Release the memory. The index cannot be used after this call."""
        for layer in self._generation.layers:
            layer.close()

    def _find_frames(self, lookups: Sequence[TermLookup]) -> _MatchingFrames:
        key = tuple(lookups)
        result = self._last_match  # The attribute is read only once, because other threads may replace its value.
        if result.lookups != key:  # Callers repeat the same lookups for each task.
            result = self._last_match = self._query_newest(lambda generation: _find_frames_in(generation, key))
        return result

    def _query_newest(self, query: Callable[[_OpenGeneration], T]) -> T:
        generation = self._generation
        for _ in range(_OPEN_ATTEMPTS_MAX):
            try:
                return query(generation)
            except FileNotFoundError:
                newer = _open_current(self._store, self._batch_id)
                if newer is None or newer.root == generation.root:
                    break
                self._generation = generation = newer
        raise corrupt_index(generation.root, "lacks a file")


def _find_frames_in(generation: _OpenGeneration, lookups: tuple[TermLookup, ...]) -> _MatchingFrames:
    frames_by_file: dict[Digest, set[int]] = {}
    for layer in generation.layers:
        for digest, frames in layer.find(lookups):
            frames_by_file.setdefault(digest, set()).update(frames)
    return _MatchingFrames(lookups, frames_by_file, generation.known)


def _read_postings(generation: _OpenGeneration) -> dict[Digest, dict[bytes, bytes]]:
    posted: dict[Digest, dict[bytes, bytes]] = {digest: {} for digest in generation.known}
    for layer in generation.layers:
        for key, digest, frames in layer.iter_posted():
            posted[digest][key] = struct.pack(f"<{len(frames)}I", *frames)
    return posted


def _verify_layers(generation: _OpenGeneration) -> None:
    for layer in generation.layers:
        layer.check()
    if generation.words is not None:
        generation.words.check()


def open_index(store: StoreDir, batch_id: str) -> BatchIndex | None:
    """Return the current index of a batch. None if there is no index, or its terms have another version.

    Raises CorruptFile if index.json is damaged, and StoreError if it cannot be read.
    """
    generation = _open_current(store, batch_id)
    return None if generation is None else BatchIndex(store, batch_id, generation)


def _open_current(store: StoreDir, batch_id: str) -> _OpenGeneration | None:
    for _ in range(_OPEN_ATTEMPTS_MAX):
        numbers = list_generations(store, batch_id)
        if not numbers:
            return None
        root = index_directory(store, batch_id) / str(numbers[-1])
        try:
            about = read_index_file(store, root)
        except FileNotFoundError:
            if list_generations(store, batch_id) == numbers:  # Otherwise a newer index has replaced it.
                raise corrupt_index(root, "lacks a file") from None
            continue
        if about is None:
            return None
        layers = tuple(
            LayerReader(store.files, root, name, layer)
            for name, layer in ((layout.INDEX_BASE, about.base), (layout.INDEX_OVERLAY, about.overlay))
            if layer is not None
        )
        known = frozenset(digest for layer in layers for digest in layer.slots)
        words = about.current_words
        return _OpenGeneration(root, layers, known, None if words is None else WordReader(store.files, root, words))
    return None
