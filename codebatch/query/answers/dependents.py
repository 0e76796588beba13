"""How many files lead to one. For that who imports whom is kept, once all of it had to be read.

`cache/importers-<16 hex of the result digest>.bin` holds the files that have a part in it, and for each by their places
among these who imports it.
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
    """How many files lead to one, be it by others. Raises InvalidInput where it is not known, or StoreCorrupt."""
    kept = _read(records)
    if kept is not None:
        return _count(kept, path)
    imports = Imports(records)
    found = impact(imports.importers_of, path)
    outputs = records.source.outputs
    if imports.every is not None and outputs is not None and records.source.is_done:
        made = _made(outputs.manifest.result_digest, imports)
        name = layout.importers_cache_name(made.result_digest)
        write_kept(records.store, name, _MAGIC, msgspec.msgpack.encode(made))
    return len(found)


def _read(records: BatchRecords) -> _CachedDependents | None:
    outputs = records.source.outputs
    if outputs is None:
        return None
    digest = outputs.manifest.result_digest
    body = read_kept(records.store, layout.importers_cache_name(digest), _MAGIC)
    try:
        kept = None if body is None else msgspec.msgpack.decode(body, type=_CachedDependents)
    except msgspec.DecodeError:
        return None
    return kept if kept is not None and kept.result_digest == digest else None


def _made(result_digest: Digest, imports: Imports) -> _CachedDependents:
    every = imports.every or {}
    numbers: dict[str, int] = {path: number for number, path in enumerate(every)}
    importers = [sorted({numbers.setdefault(each.source, len(numbers)) for each in found}) for found in every.values()]
    return _CachedDependents(result_digest, list(numbers), importers)


def _count(kept: _CachedDependents, path: str) -> int:
    """Who imports none is behind the others."""
    importers = kept.importers
    try:
        nearest = {kept.paths.index(path)}
    except ValueError:
        return 0
    found = set(nearest)
    while nearest:
        reached = set[int]().union(*(importers[each] for each in nearest if each < len(importers)))
        nearest = reached - found
        found |= nearest
    return len(found) - 1
