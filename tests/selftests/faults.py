"""Faults that are planted in a store, each with the self-test that must detect it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from codebatch.index import keys
from codebatch.index.build import decode_shard_terms, merge_terms, publish_index
from codebatch.model.documents import encode_document
from codebatch.model.plan import PlannedTask, decode_plan, encode_plan, plan_digest
from codebatch.model.record_counts import RecordCounts
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.planning import plan_snapshot
from codebatch.store.batches.batch_directory import decode_batch
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.results.outputs import Manifest, current_outputs, decode_manifest
from tests.selftests.stored import Stored
from tests.support.command_line import write

Tasks = tuple[PlannedTask, ...]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(bytes(data))


def rewrite_manifest(stored: Stored, change: Callable[[Manifest], Manifest]) -> None:
    """Replace a manifest by a changed one with a valid checksum."""
    path = stored.one("batches/*/outputs/*/manifest.json")
    path.write_bytes(encode_document(change(decode_manifest(path.read_bytes()))))


def rewrite_plan(stored: Stored, change: Callable[[Tasks], Tasks]) -> None:
    """Replace the tasks of a plan. Digests and checksums are valid."""
    path, about_path = stored.one("batches/*/plan.json"), stored.one("batches/*/batch.json")
    plan, about = decode_plan(path.read_bytes()), decode_batch(about_path.read_bytes())
    tasks = change(plan.tasks)
    digest = plan_digest(plan.snapshot_digest, tasks, plan.paths)
    path.write_bytes(encode_plan(replace(plan, tasks=tasks, digest=digest)))
    about_path.write_bytes(encode_document(replace(about, plan_digest=digest)))
    shutil.rmtree(path.parent / "outputs")


def _with_wrong_counts(manifest: Manifest) -> Manifest:
    """Return a manifest with a wrong record count in a shard and in its task."""
    task = manifest.tasks[0]
    shard = replace(task.shards[0], counts=RecordCounts(kinds={"file": 99}))
    task = replace(task, shards=(shard, *task.shards[1:]), counts=shard.counts)
    return replace(manifest, tasks=(task, *manifest.tasks[1:]))


def _with_one_failed(manifest: Manifest) -> Manifest:
    return replace(manifest, tasks=(replace(manifest.tasks[0], failed=1), *manifest.tasks[1:]))


def plant_document(stored: Stored) -> str:
    flip(stored.one("batches/*/plan.json"))
    return "plan.json"


def plant_untrusted(stored: Stored) -> str:
    write(stored.store / "untrusted.json", "{}")
    return "untrusted.json"


def plant_snapshot_index(stored: Stored) -> str:
    flip(stored.one("snapshots/*/files.index.jsonl.zst"))
    return "files.index.jsonl.zst"


def plant_store_document(stored: Stored) -> str:
    flip(stored.store / "store.json")
    return "store.json"


def plant_name(stored: Stored) -> str:
    write(Path(os.fsdecode(os.fsencode(stored.one("batches/*")) + b"/st\xe9ray")), "")
    return "not part of the store layout"


def plant_hidden_name(stored: Stored) -> str:
    write(stored.store / "objects" / ".cache", "")
    return "not part of the store layout"


def plant_link(stored: Stored) -> str:
    stored.one("batches/*/outputs/*/manifest.json").rename(stored.root / "aside")
    stored.one("batches/*/outputs/*").joinpath("manifest.json").symlink_to(stored.root / "aside")
    return "not a file"


def plant_linked_directory(stored: Stored) -> str:
    (stored.store / "objects").rename(stored.root / "aside")
    (stored.store / "objects").symlink_to(stored.root / "aside")
    return "not a directory"


def plant_pack(stored: Stored) -> str:
    flip(stored.one("objects/*.pack"))
    return "object"


def plant_no_pack(stored: Stored) -> str:
    stored.one("objects/*.pack").unlink()
    return "is not in any pack"


def plant_open_batch(stored: Stored) -> str:
    configuration = load_configuration(stored.root / "tree")
    plan_snapshot(configuration, stored.place.open(), "latest", "parse", lambda _: None)
    return "4 open"


def plant_failed(stored: Stored) -> str:
    rewrite_manifest(stored, _with_one_failed)
    return "1 failed"


def plant_fewer_files(stored: Stored) -> str:
    """Make the plan and the batch agree on fewer files than the snapshot has."""
    path, about_path = stored.one("batches/*/plan.json"), stored.one("batches/*/batch.json")
    plan, about = decode_plan(path.read_bytes()), decode_batch(about_path.read_bytes())
    shards = (*plan.shards[:-1], replace(plan.shards[-1], end=plan.item_count - 1))
    contexts = {name: replace(table, items=table.items[:-1]) for name, table in plan.contexts.items()}
    path.write_bytes(encode_plan(replace(plan, shards=shards, contexts=contexts)))
    about_path.write_bytes(encode_document(replace(about, items=plan.item_count - 1)))
    rewrite_manifest(stored, lambda manifest: replace(manifest, items=plan.item_count - 1))
    return "the plan does not cover the files"


def plant_late_need(stored: Stored) -> str:
    rewrite_plan(stored, lambda tasks: tasks[::-1])
    return "a task comes before a task that it needs"


def plant_task_twice(stored: Stored) -> str:
    rewrite_plan(stored, lambda tasks: (*tasks, tasks[0]))
    return "a task is planned twice"


def plant_fewer_tasks(stored: Stored) -> str:
    rewrite_manifest(stored, lambda manifest: replace(manifest, tasks=manifest.tasks[:-1]))
    return "the tasks that have results are not the tasks of the plan"


def plant_shard_file(stored: Stored) -> str:
    flip(stored.one("batches/*/outputs/*/parse/*.jsonl.zst"))
    return "damaged"


def plant_counts(stored: Stored) -> str:
    rewrite_manifest(stored, _with_wrong_counts)
    return "its records do not match its counts"


def plant_counts_of_task(stored: Stored) -> str:
    rewrite_manifest(
        stored,
        lambda manifest: replace(
            manifest, tasks=tuple(replace(task, counts=RecordCounts()) for task in manifest.tasks)
        ),
    )
    return "the counts of a task do not match its shards"


def plant_no_batch_document(stored: Stored) -> str:
    stored.one("batches/*/batch.json").unlink()
    return "batch.json"


def plant_no_snapshot_document(stored: Stored) -> str:
    stored.one("snapshots/*/snapshot.json").unlink()
    return "snapshot.json"


def rewrite_index(stored: Stored, change: Callable[[dict[bytes, bytes]], dict[bytes, bytes]]) -> None:
    """Replace the keys and values of an index. Checksums are valid."""
    store = stored.place.open()
    batch = resolve_batch(store, None)
    outputs = current_outputs(batch)
    assert outputs is not None
    contents = merge_terms(decode_shard_terms(store, outputs, lambda _: None)[0].items())
    publish_index(store, batch.id, contents._replace(pairs=change(contents.pairs)), None)


def plant_index_without_names(stored: Stored) -> str:
    rewrite_index(
        stored, lambda pairs: {key: value for key, value in pairs.items() if not key.startswith(keys.SYMBOL_TAG)}
    )
    return "index"


def plant_index_of_cut_postings(stored: Stored) -> str:
    rewrite_index(
        stored, lambda pairs: {key: value[:-1] if key[:1] == keys.CODE_TAG else value for key, value in pairs.items()}
    )
    return "index"


def plant_index_bytes(stored: Stored) -> str:
    flip(stored.one("indexes/batch-*/*/base-000000.lmdb.zst"))
    return "base-000000.lmdb.zst is damaged"


FAULTS: list[tuple[str, Callable[[Stored], str]]] = [
    ("store-schema", plant_document),
    ("store-schema", plant_untrusted),
    ("store-schema", plant_snapshot_index),
    ("store-schema", plant_store_document),
    ("store-schema", plant_no_batch_document),
    ("store-schema", plant_no_snapshot_document),
    ("no-foreign-files", plant_name),
    ("no-foreign-files", plant_hidden_name),
    ("no-foreign-files", plant_link),
    ("no-foreign-files", plant_linked_directory),
    ("objects", plant_pack),
    ("objects", plant_no_pack),
    ("plan-covered", plant_open_batch),
    ("plan-covered", plant_failed),
    ("plan-covered", plant_fewer_files),
    ("plan-covered", plant_fewer_tasks),
    ("task-order", plant_late_need),
    ("task-order", plant_task_twice),
    ("outputs-match", plant_shard_file),
    ("outputs-match", plant_counts),
    ("outputs-match", plant_counts_of_task),
    ("index-equals-scan", plant_index_without_names),
    ("index-equals-scan", plant_index_bytes),
    ("index-equals-scan", plant_index_of_cut_postings),
    ("index-optional", plant_counts),
    ("index-rebuilt", plant_index_without_names),
    ("index-rebuilt", plant_index_bytes),
]
"""Each function plants a fault, and returns text that the failure must contain."""
