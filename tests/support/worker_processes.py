"""Analyses by real processes that are killed by kill -9, and checks of their batches."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec

from codebatch.errors import CodebatchError
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import open_store
from codebatch.store.results.outputs import current_outputs
from codebatch.system.files.files import RealFiles
from tests.support.command_line import CommandLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A finished batch: its digest, and the sha256 of each task's uncompressed output."""

    batch: BatchDir
    result_digest: str
    sums: dict[str, str]


def open_latest(store: Path) -> BatchDir:
    """Open the latest batch of a store."""
    return resolve_batch(open_store(RealFiles(), store), None)


def finished(batch: BatchDir) -> Finished:
    """Read a finished batch. The reader checks every output against its item table, and every frame."""
    outputs = current_outputs(batch)
    assert outputs is not None
    plan = batch.plan()
    sums = {}
    for task in outputs.manifest.tasks:
        whole = hashlib.sha256()
        for index, shard in enumerate(plan.shards):
            assert sum(1 for _ in outputs.iter_items(task, index)) == shard.items
            whole.update(b"".join(outputs.iter_shard(task, index)))
        sums[task.task] = whole.hexdigest()
    return Finished(batch=batch, result_digest=outputs.manifest.result_digest, sums=sums)


def zstdcat_agrees(batch_result: Finished) -> None:
    """Check outputs by `zstdcat OUTPUTS | sha256sum -c`, if these programs are installed."""
    zstdcat, sha256sum = shutil.which("zstdcat"), shutil.which("sha256sum")
    if zstdcat is None or sha256sum is None:
        return
    for name, digest in batch_result.sums.items():
        path = batch_result.batch.root / layout.OUTPUTS / batch_result.result_digest / name
        check = f"{zstdcat} '{path}'/*.jsonl.zst | {sha256sum} -c <(echo '{digest}  -')"
        subprocess.run(["bash", "-o", "pipefail", "-c", check], check=True, stdout=subprocess.DEVNULL)


def run_with_kills(run: CommandLine, arguments: list[str], store: Path, *, points: list[int], seed: int) -> int:
    """Run to the end. Kill the coordinator or a worker each time the number of registers reaches one of `points`.

    Return how many kills hit a live process.
    """
    chance = random.Random(seed)
    kills = 0
    process = run.start(*arguments)
    for point in points:
        while process.poll() is None and _registers(store) < point:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.02)
        if process.poll() is not None:
            break
        victims = live_worker_pids(store)
        if not victims:
            continue
        victim = process.pid if chance.random() < 0.4 else chance.choice(victims)
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            kills += 1
        if victim == process.pid:
            process.communicate()
            process = run.start(*arguments)
    run.finish(process)
    return kills


def check_no_process_left(batch: BatchDir) -> None:
    """Check that no holder of the batch is alive."""
    assert not [holder for holder, is_live in LeaseReader(batch.files, batch.root).read_holders() if is_live]


def write_shard_rule(directory: Path, *, average: int, least: int, most: int) -> None:
    """Write a codebatch.toml that sets the sizes of shards."""
    text = f"[shard]\nfiles_average = {average}\nfiles_min = {least}\nfiles_max = {most}\n"
    (directory / "codebatch.toml").write_text(text, encoding="utf-8")


def json_answer(text: str) -> dict[str, object]:
    """Decode standard output, which must be one JSON object."""
    answer = json.loads(text)
    assert isinstance(answer, dict)
    return answer


def _registers(store: Path) -> int:
    return sum(1 for _ in store.glob(f"batches/batch-*/{layout.OUTCOMES}/*.parse.r*"))


def live_worker_pids(store: Path) -> list[int]:
    """Return the pids of live workers of the latest batch."""
    try:
        batch = open_latest(store)
    except (OSError, msgspec.DecodeError, CodebatchError):
        return []
    holders = LeaseReader(batch.files, batch.root).read_holders()
    return sorted(holder.pid for holder, is_live in holders if is_live and holder.role == "worker")
