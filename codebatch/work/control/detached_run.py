"""Running commands in the background: made here, conducted by a process of its own that no terminal takes along."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from codebatch.errors import BatchIncomplete
from codebatch.operations.project.stores import StorePlace
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.store import StoreDir
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.listener import WorkListener
from codebatch.work.control.run import make_batch
from codebatch.work.definition.settings import WorkOptions

_LOOK_SECONDS = 0.02
_TAKEN_UP_SECONDS_MAX = 60.0

# Python looks for modules in the current directory first, which is somebody else's.
_MAIN = "import sys; sys.path[:1] = sys.path[:1] if sys.path[0] else []; from codebatch.__main__ import main; main()"


def run_detached(
    paths: tuple[Path, ...],
    options: WorkOptions,
    place: StorePlace,
    *,
    is_beside: bool = False,
    is_trusted: bool = False,
    listener: WorkListener,
) -> WorkBatch:
    """Make a batch of the commands that files define, and have it conducted; on return somebody does, or did.

    Raises as `run_files` does; BatchIncomplete where nobody takes it up.
    """
    with make_batch(paths, options, place, is_beside=is_beside, is_trusted=is_trusted, listener=listener) as made:
        _have_conducted(made.store, made.batch, is_trusted=is_trusted)
        return load_work_batch(made.store, made.batch)


def _have_conducted(store: StoreDir, batch: BatchDir, *, is_trusted: bool) -> None:
    words = ["resume", "--batch", batch.id, "--store", str(store.root), "--quiet", "--output", "none"]
    reader = LeaseReader(batch.files, batch.root)
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, *words, *(["--trust"] if is_trusted else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=told,
            start_new_session=True,
        )
        deadline = time.monotonic() + _TAKEN_UP_SECONDS_MAX
        while reader.leader()[0] == 0:
            if process.poll() is not None or time.monotonic() > deadline:
                told.seek(0)
                printed = told.read().decode("utf-8", "replace").splitlines()
                why = _first(printed, "error: ") or "without an error message"
                hint = _first(printed, "hint: ") or f"start it with: codebatch resume --batch {batch.id}"
                raise BatchIncomplete(f"batch {batch.id} was created but did not start: {why}", hint=hint)
            time.sleep(_LOOK_SECONDS)
        process.returncode = 0  # It outlives us, and nobody here waits for it.


def _first(lines: list[str], mark: str) -> str:
    """Return the first line with a mark, without it; empty if there is none."""
    return next((line.removeprefix(mark) for line in lines if line.startswith(mark)), "")
