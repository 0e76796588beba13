"""Reuse of the results of one shard by a hard link to the file of another batch (SPEC.md "Reuse")."""

from __future__ import annotations

from pathlib import Path

from codebatch.errors import StoreError, StoreUnwritable
from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import TaskOutcome
from codebatch.model.shard import Shard
from codebatch.store.results.bases import ShardPlace
from codebatch.store.results.outcomes import EncodedOutcome, OutcomeRegisters
from codebatch.store.results.shard_files import ShardTrailer, split_shard_file
from codebatch.store.sharing import hardlink_or_copy
from codebatch.system.files.files import StoreFiles


def adopt_shard(
    files: StoreFiles, outcomes: OutcomeRegisters, shard: Shard, task: str, place: ShardPlace
) -> EncodedOutcome | None:
    """Link the shard file of another batch into the batch of `outcomes`.

    Return the outcome, whose bytes are in this file.

    Return None if the file is damaged or missing, or has another number of items than `shard`. The link is durable once
    the caller has synced the directory of results.
    """
    path = outcomes.adopted_path(place.digest)
    trailer = _read_trailer(files, place.path, place)
    if trailer is None or trailer.items != shard.items:
        return None
    if not hardlink_or_copy(files, place.path, path) and _read_trailer(files, path, place) is None:
        files.write_atomic(path, files.read(place.path))
    outcome = TaskOutcome(
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


def _read_trailer(files: StoreFiles, path: Path, place: ShardPlace) -> ShardTrailer | None:
    """Return the trailer of a shard file, or None if the file is damaged or missing."""
    try:
        frames, trailer = split_shard_file(files.read(path), place.digest)
    except StoreUnwritable:
        raise
    except (FileNotFoundError, StoreError, ValueError):
        return None
    return trailer if len(frames) == place.length else None
