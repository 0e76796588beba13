"""The headline of a batch, kept in the store for the next `run` that finds nothing to do (`cache/headline-*.bin`).

It is kept by all that it is made of: the batch and its merged results, the newest commit, from which changes are
counted, and the source of what makes it.
"""

from __future__ import annotations

import msgspec

from codebatch.model.digest import digest_bytes
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.runs.headline import Headline, headline
from codebatch.plugins.entry_points import package_digest
from codebatch.store import layout
from codebatch.store.cache_files import read_kept, write_kept
from codebatch.store.results.outputs import Outputs

_MAGIC = b"cbhead\0\1"
_MADE_BY = ("codebatch.operations", "codebatch.model", "codebatch.query")


class _CachedHeadline(msgspec.Struct, frozen=True, array_like=True):
    key: str
    headline: Headline


def find_headline(question: BatchQuery, outputs: Outputs) -> Headline:
    """The headline of a batch with these merged outputs. Raises StoreCorrupt."""
    made_by = tuple(map(package_digest, _MADE_BY))
    of = (question.batch.id, outputs.manifest.result_digest, question.newest_commit, made_by)
    key = digest_bytes(msgspec.msgpack.encode(of))
    name = layout.headline_cache_name(digest_bytes(question.batch.id.encode()))
    kept = _decode(read_kept(question.store, name, _MAGIC))
    if kept is not None and kept.key == key:
        return kept.headline
    made = headline(question)
    if not made.history_note:
        write_kept(question.store, name, _MAGIC, msgspec.msgpack.encode(_CachedHeadline(key, made)))
    return made


def _decode(body: bytes | None) -> _CachedHeadline | None:
    try:
        return None if body is None else msgspec.msgpack.decode(body, type=_CachedHeadline)
    except msgspec.DecodeError:
        return None
