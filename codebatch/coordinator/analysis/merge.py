"""Merging: the outcomes of each shard are concatenated in item order.

If the results of a shard were all adopted from one older batch, its file is linked or copied without decoding. If the
shard has several outcomes, their records are encoded again. So the bytes of a shard file do not depend on how the work
was divided into units.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from codebatch.model.analysis.item_table import make_row, result_digest, task_digest
from codebatch.model.digest import Digest
from codebatch.model.documents import encode_document
from codebatch.model.outcome import TaskOutcome, first_uncovered_input
from codebatch.model.plan import Plan, PlannedTask
from codebatch.model.record_counts import add_counts
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.analysis.chains import ChainLink
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import Manifest, MergedOutputs, OutputShard, TaskOutput
from codebatch.store.results.shard_files import ShardTrailer, make_trailer, read_trailer
from codebatch.store.sharing import hardlink_or_copy


def merge_outputs(batch: BatchDir, plan: Plan, ledger: OutcomeLedger) -> MergedOutputs:
    """Publish the outputs of a batch in which every shard is complete. Several processes may do this at the same time.

    On return, the outputs are durable. Raises StoreCorrupt if the bytes of an outcome are missing.
    """
    files = batch.files
    building = batch.root / layout.OUTPUTS / f".{uuid.uuid4().hex}.tmp"
    files.make_directory(building)
    try:
        outcomes = OutcomeRegisters(files, batch.root)
        with files.keeping_open(batch.root / layout.RESULTS, building):
            tasks = tuple(_merge_task(batch, outcomes, building, ledger, task) for task in plan.tasks)
        digest = result_digest((task.task, task.digest) for task in tasks)
        manifest = Manifest(
            plan_digest=plan.digest,
            result_digest=digest,
            generation=_outputs_generation(ledger),
            items=plan.item_count,
            tasks=tasks,
        )
        files.write_new(building / layout.MANIFEST_FILE, encode_document(manifest))
        # The outcomes must be as durable as the outputs that are made from them. The process that linked an outcome may
        # have died before its fsync.
        files.make_directory(batch.root / layout.OUTCOMES)
        files.sync_directory(batch.root / layout.OUTCOMES)
        target = batch.root / layout.OUTPUTS / digest
        files.publish_directory(building, target)
    except BaseException:
        files.remove_tree(building)
        raise
    return MergedOutputs(files, target, manifest)


def _outputs_generation(ledger: OutcomeLedger) -> int:
    return sum(link.round - 1 for shard, task in ledger.iter_chain_keys for link in ledger.iter_links(shard, task))


def _merge_task(
    batch: BatchDir, outcomes: OutcomeRegisters, building: Path, ledger: OutcomeLedger, planned: PlannedTask
) -> TaskOutput:
    directory = building / planned.name
    batch.files.make_directory(directory)
    frame_writer = FrameWriter()
    shards: list[OutputShard] = []
    tables: list[bytes] = []

    def files_of_shards() -> Iterator[tuple[Path, bytes]]:
        for place, (shard, items, links) in enumerate(ledger.iter_shard_results(planned.name)):
            assert planned.scope == "project" or not links or links[-1].end == items, "a chain that ends early"
            path = directory / layout.shard_file_name(place, shard)
            if (adopted := _adopted_outcome(links)) is not None:
                trailer = outcomes.read_trailer(adopted)
                hardlink_or_copy(batch.files, outcomes.adopted_path(adopted.file), path)
            else:
                data, trailer = make_shard_file(outcomes, frame_writer, items, links)
                yield path, data
            tables.append(trailer.table)
            shards.append(
                OutputShard(
                    shard=shard,
                    length=trailer.length,
                    trailer=trailer.size,
                    digest=trailer.digest,
                    bytes=trailer.bytes,
                    failed=sum(link.type == "failed" for link in links),
                    cancelled=sum(link.end - link.start for link in links if link.type == "cancelled"),
                    reused=items if adopted is not None else sum(link.outcome.reused for link in links),
                    inputs_outside_key=first_uncovered_input(link.outcome for link in links),
                    counts=add_counts(link.outcome.counts for link in links),
                )
            )

    batch.files.write_many(files_of_shards())
    batch.files.sync_directory(directory)
    return TaskOutput(
        task=planned.name,
        scope=planned.scope,
        digest=Digest(task_digest(b"".join(tables))),
        length=sum(shard.length for shard in shards),
        bytes=sum(shard.bytes for shard in shards),
        failed=sum(shard.failed for shard in shards),
        cancelled=sum(shard.cancelled for shard in shards),
        counts=add_counts(shard.counts for shard in shards),
        shards=tuple(shards),
    )


def _adopted_outcome(links: Sequence[ChainLink]) -> TaskOutcome | None:
    """Return the outcome of a shard if there is only one and it is stored as a shard file. Otherwise return None."""
    return links[0].outcome if len(links) == 1 and links[0].outcome.file else None


def make_shard_file(
    outcomes: OutcomeRegisters, frame_writer: FrameWriter, items: int, links: list[ChainLink]
) -> tuple[bytes, ShardTrailer]:
    """Return a complete shard file with `items` items, and its trailer. Raises StoreCorrupt."""
    frames, table, size = _assemble_shard(outcomes, frame_writer, items, links)
    end = make_trailer(frames, table, size)
    return frames + end, read_trailer(end)


def _assemble_shard(
    outcomes: OutcomeRegisters, frame_writer: FrameWriter, items: int, links: list[ChainLink]
) -> tuple[bytes, bytes, int]:
    """Return the frames, the item table and the size in bytes of the records of a shard.

    If a project task failed, its failure is recorded at the first item of the batch, and all other items have no
    records.
    """
    ends = [0, *(link.end for link in links)]
    assert ends[:-1] == [link.start for link in links], "a chain with a hole"
    if len(links) == 1 and links[0].type == "result":
        frames, rows = outcomes.read_bytes(links[0].segment, links[0].outcome)
        return frames, rows, links[0].outcome.bytes
    tables = [outcomes.read_bytes(link.segment, link.outcome)[1] for link in links]
    tables += [make_row(b"")] * (items - ends[-1])
    blocks = (b"".join(outcomes.iter_items(link.segment, link.outcome)) for link in links)
    frames = b"".join(frame_writer.iter_encode(blocks))
    return frames, b"".join(tables), sum(link.outcome.bytes for link in links)
