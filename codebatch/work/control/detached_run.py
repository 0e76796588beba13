"""Runs in the background. The caller creates the batch, and a process in its own session runs it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from codebatch.errors import BatchIncomplete
from codebatch.operations.project.stores import StoreLocator
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.processes.environment import original_environment
from codebatch.system.processes.python_start import python_start
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.listener import WorkListener
from codebatch.work.control.run import make_batch
from codebatch.work.definition.settings import WorkOptions

_START_POLL_SECONDS = 0.02
_START_SECONDS_MAX = 60.0


def run_detached(
    paths: tuple[Path, ...],
    options: WorkOptions,
    place: StoreLocator,
    *,
    is_parallel: bool = False,
    is_trusted: bool = False,
    listener: WorkListener,
) -> WorkBatch:
    """Create a batch of work files and start a background process that runs it.

    On return, a coordinator has started to run the batch. Raises the errors of `run_files`, and BatchIncomplete if no
    coordinator starts.
    """
    with make_batch(
        paths, options, place, is_parallel=is_parallel, is_trusted=is_trusted, listener=listener
    ) as new_batch:
        _start_coordinator(new_batch.store, new_batch.batch, is_trusted=is_trusted)
        return load_work_batch(new_batch.store, new_batch.batch)


def _start_coordinator(store: StoreDir, batch: BatchDir, *, is_trusted: bool) -> None:
    words = ["resume", "--batch", batch.id, "--store", str(store.root), "--quiet", "--output", "none"]
    reader = LeaseReader(batch.files, batch.root)
    start = python_start(
        "codebatch",
        *words,
        *(["--trust"] if is_trusted else []),
        environment=original_environment(),
        trees=map(os.fsdecode, batch.about.sources),
    )
    with tempfile.TemporaryFile() as stderr_file:
        process = subprocess.Popen(
            start.arguments,
            env=start.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr_file,
            start_new_session=True,
        )
        deadline = time.monotonic() + _START_SECONDS_MAX
        while reader.read_leader()[0] == 0:
            if process.poll() is not None or time.monotonic() > deadline:
                stderr_file.seek(0)
                printed = stderr_file.read().decode("utf-8", "replace").splitlines()
                why = _first_with_prefix(printed, "error: ") or "without an error message"
                hint = _first_with_prefix(printed, "hint: ") or f"start it with: codebatch resume --batch {batch.id}"
                raise BatchIncomplete(f"batch {batch.id} was created but did not start: {why}", hint=hint)
            time.sleep(_START_POLL_SECONDS)
        # The process outlives its parent, so its real return code is never read. Without a return code, Python would
        # issue a ResourceWarning.
        process.returncode = 0


def _first_with_prefix(lines: list[str], prefix: str) -> str:
    """Return the first line with a prefix, without the prefix. Return an empty string if there is none."""
    return next((line.removeprefix(prefix) for line in lines if line.startswith(prefix)), "")
