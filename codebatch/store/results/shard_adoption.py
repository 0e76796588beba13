"""The results of one shard by a further name of another batch's file (SPEC.md "Reuse")."""

from __future__ import annotations

from pathlib import Path

from codebatch.errors import StoreError, StoreUnwritable
from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import Outcome
from codebatch.model.shard import Shard
from codebatch.store.results.bases import ShardPlace
from codebatch.store.results.outcomes import EncodedOutcome, Outcomes
from codebatch.store.results.shard_files import Trailer, split_shard_file
from codebatch.store.sharing import hardlink_or_copy
from codebatch.system.files.files import Files


def adopt_shard(files: Files, outcomes: Outcomes, shard: Shard, task: str, place: ShardPlace) -> EncodedOutcome | None:
    """The outcome and the item table of another batch's shard file, which has a further name among these outcomes now.

    None where it is not what it was. The name is durable once the directory of results is synced.
    """
    path = outcomes.adopted_path(place.digest)
    trailer = _sound(files, place.path, place)
    if trailer is None or trailer.items != shard.items:
        return None
    if not hardlink_or_copy(files, place.path, path) and _sound(files, path, place) is None:
        files.write_atomic(path, files.read(place.path))
    outcome = Outcome(
        shard=shard.id,
        task=task,
        start=0,
        end=shard.items,
        type="result",
        length=place.length,
        bytes=place.bytes,
        digest=digest_bytes(trailer.table),
        counts=place.counts,
        file=place.digest,
    )
    return EncodedOutcome(outcome, b"", trailer.table)


def _sound(files: Files, path: Path, place: ShardPlace) -> Trailer | None:
    """What a shard file says of itself; None where it is not what it was."""
    try:
        frames, trailer = split_shard_file(files.read(path), place.digest)
    except StoreUnwritable:
        raise
    except (FileNotFoundError, StoreError, ValueError):
        return None
    return trailer if len(frames) == place.length else None
