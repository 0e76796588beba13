"""What a worker keeps for the index of its batch: the terms of shards whose records it has in hand (SPEC.md "Index").

A terms file is found by the digest of the trailer that merging gives a shard file. That is known here where one outcome
covers all of a shard. Of other shards, and where it cannot be written, who makes the index decodes the records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from codebatch.errors import StoreError
from codebatch.index.keys import KINDS_POSTED
from codebatch.index.terms import collect_terms, encode_terms, posted_by_lines, terms_path
from codebatch.model.plan import Plan
from codebatch.store.outcomes import EncodedOutcome
from codebatch.store.shard_files import make_trailer, read_trailer
from codebatch.system.files import Files
from codebatch_workers.runtime.parts import Keep
from codebatch_workers.runtime.results import Kept, Sealed


def terms_keeper(files: Files, store_root: Path, plan: Plan) -> Keep:
    """Writes terms files of the shards of a plan. What it cannot write it leaves: nothing but speed rests on them."""
    shard_items = {shard.id: shard.items for shard in plan.shards}

    def keep(encoded: EncodedOutcome, said: Sequence[Sealed | Kept]) -> None:
        outcome = encoded.outcome
        if len(said) != shard_items[outcome.shard] or KINDS_POSTED.isdisjoint(outcome.counts.kinds):
            return
        digest = read_trailer(make_trailer(encoded.frames, encoded.table, outcome.bytes)).digest
        with contextlib.suppress(StoreError, ValueError):  # Lines of an older batch may be no records.
            terms = collect_terms(
                posted_by_lines(each.lines) if isinstance(each, Kept) else each.posted for each in said
            )
            files.write_volatile(terms_path(store_root, digest), encode_terms(digest, terms))

    return keep
