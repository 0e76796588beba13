"""A cache of headlines in the store (`cache/headline-*.bin`), for runs that find nothing to execute.

The cache key covers all inputs: the batch and its merged results, the newest commit, which determines the change
counts, and the source code that computes the headline.
"""

from __future__ import annotations

import msgspec

from codebatch.model.digest import digest_bytes
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.runs.headline import Headline, make_headline
from codebatch.plugins.entry_points import package_digest
from codebatch.store import layout
from codebatch.store.cache_files import read_cached, write_cached
from codebatch.store.results.outputs import MergedOutputs

_MAGIC = b"cbhead\0\1"
_COVERED_PACKAGES = ("codebatch.operations", "codebatch.model", "codebatch.query")


class _CachedHeadline(msgspec.Struct, frozen=True, array_like=True):
    key: str
    headline: Headline


def find_headline(question: BatchQuery, outputs: MergedOutputs) -> Headline:
    """Return the headline of a merged batch, from the cache if possible. Raises StoreCorrupt."""
    package_digests = tuple(map(package_digest, _COVERED_PACKAGES))
    key_fields = (question.batch.id, outputs.manifest.result_digest, question.newest_commit, package_digests)
    key = digest_bytes(msgspec.msgpack.encode(key_fields))
    name = layout.headline_cache_name(digest_bytes(question.batch.id.encode()))
    cached = read_cached(question.store, name, _MAGIC, _CachedHeadline)
    if cached is not None and cached.key == key:
        return cached.headline
    result = make_headline(question)
    if not result.history_note:
        write_cached(question.store, name, _MAGIC, _CachedHeadline(key, result))
    return result
