"""Runs of real processes under kill -9, and what must hold of a batch afterwards."""

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
    """A batch that ended: its digest, and the sha256 of every output's uncompressed bytes."""

    batch: BatchDir
    result_digest: str
    sums: dict[str, str]


def open_latest(store: Path) -> BatchDir:
    """The latest batch of a store."""
    return resolve_batch(open_store(RealFiles(), store), None)


def finished(batch: BatchDir) -> Finished:
    """Read a finished batch, checking every output against its item table and every frame by the way."""
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


def zstdcat_agrees(one: Finished) -> None:
    """`zstdcat OUTPUTS | sha256sum -c`, with the tools themselves where the machine has them."""
    zstdcat, sha256sum = shutil.which("zstdcat"), shutil.which("sha256sum")
    if zstdcat is None or sha256sum is None:
        return
    for name, digest in one.sums.items():
        path = one.batch.root / layout.OUTPUTS / one.result_digest / name
        check = f"{zstdcat} '{path}'/*.jsonl.zst | {sha256sum} -c <(echo '{digest}  -')"
        subprocess.run(["bash", "-o", "pipefail", "-c", check], check=True, stdout=subprocess.DEVNULL)


def run_with_kills(run: CommandLine, arguments: list[str], store: Path, *, points: list[int], seed: int) -> int:
    """Run to the end, killing the coordinator or one of its workers each time so many registers exist.

    Returns how many kills hit a live process.
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
    """No holder of the batch is alive, and none of their pids is a process of ours."""
    assert not [holder for holder, is_live in LeaseReader(batch.files, batch.root).read_holders() if is_live]


def write_shard_rule(directory: Path, *, average: int, least: int, most: int) -> None:
    """A codebatch.toml with another shard size."""
    text = f"[shard]\nfiles_average = {average}\nfiles_min = {least}\nfiles_max = {most}\n"
    (directory / "codebatch.toml").write_text(text, encoding="utf-8")


def json_answer(text: str) -> dict[str, object]:
    """The whole of standard output as one document."""
    answer = json.loads(text)
    assert isinstance(answer, dict)
    return answer


def _registers(store: Path) -> int:
    return sum(1 for _ in store.glob(f"batches/batch-*/{layout.OUTCOMES}/*.parse.r*"))


def live_worker_pids(store: Path) -> list[int]:
    """The pids of live workers of the latest batch."""
    try:
        batch = open_latest(store)
    except (OSError, msgspec.DecodeError, CodebatchError):
        return []
    holders = LeaseReader(batch.files, batch.root).read_holders()
    return sorted(holder.pid for holder, is_live in holders if is_live and holder.role == "worker")
