"""The number of files that depend on a file. The import graph is cached once all edges had to be read.

`cache/importers-<16 hex of the result digest>.bin` contains the paths of the files. For each imported file, it contains
the indexes of the files that import it.
"""

from __future__ import annotations

import msgspec

from codebatch.model.digest import Digest
from codebatch.query.answers.dependencies import Imports, impact
from codebatch.query.sources.records import BatchRecords
from codebatch.store import layout
from codebatch.store.cache_files import read_kept, write_kept

_MAGIC = b"cbimprt\1"


class _CachedDependents(msgspec.Struct, frozen=True, array_like=True, gc=False):
    result_digest: Digest
    paths: list[str]
    importers: list[list[int]]


def count_dependents(records: BatchRecords, path: str) -> int:
    """Return the number of files that depend on a file, directly or indirectly.

    Raises InvalidInput if the batch has no dependencies, or StoreCorrupt.
    """
    cached = _read(records)
    if cached is not None:
        return _count(cached, path)
    imports = Imports(records)
    dependents = impact(imports.importers_of, path)
    outputs = records.source.outputs
    if imports.every is not None and outputs is not None and records.source.is_done:
        graph = _make_cached_dependents(outputs.manifest.result_digest, imports)
        name = layout.importers_cache_name(graph.result_digest)
        write_kept(records.store, name, _MAGIC, msgspec.msgpack.encode(graph))
    return len(dependents)


def _read(records: BatchRecords) -> _CachedDependents | None:
    outputs = records.source.outputs
    if outputs is None:
        return None
    digest = outputs.manifest.result_digest
    body = read_kept(records.store, layout.importers_cache_name(digest), _MAGIC)
    try:
        cached = None if body is None else msgspec.msgpack.decode(body, type=_CachedDependents)
    except msgspec.DecodeError:
        return None
    return cached if cached is not None and cached.result_digest == digest else None


def _make_cached_dependents(result_digest: Digest, imports: Imports) -> _CachedDependents:
    every = imports.every or {}
    numbers: dict[str, int] = {path: number for number, path in enumerate(every)}
    importers = [sorted({numbers.setdefault(edge.source, len(numbers)) for edge in edges}) for edges in every.values()]
    return _CachedDependents(result_digest, list(numbers), importers)


def _count(cached: _CachedDependents, path: str) -> int:
    """Count the dependents of a file. Files without importers have an index after the end of `importers`."""
    importers = cached.importers
    try:
        nearest = {cached.paths.index(path)}
    except ValueError:
        return 0
    known = set(nearest)
    while nearest:
        reached = set[int]().union(*(importers[file] for file in nearest if file < len(importers)))
        nearest = reached - known
        known |= nearest
    return len(known) - 1
