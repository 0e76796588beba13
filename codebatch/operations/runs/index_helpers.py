"""Processes that build the index of a batch beside a run, so that the run ends sooner.

While the batch is executed, helpers build the words of the index, which depend only on the contents of the files. They
write pieces (word_ranges.py) into an unfinished directory in `indexes/`. Once the batch is merged, one process builds
the index from the pieces while the run counts its results. Whatever is missing, late or damaged in the end, the run
builds itself. If the run is killed, these processes end too, and the next writer removes the directory.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import uuid
from pathlib import Path
from types import TracebackType

from codebatch.errors import StoreError
from codebatch.protocol.launch import program_environment
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot
from codebatch.system.host import usable_cores
from codebatch.system.processes.processes import kill_group, reap_killed, start_process
from codebatch.system.processes.python_start import python_start

_WORDS_MODULE = "codebatch.index.word_helper"
_INDEX_MODULE = "codebatch.operations.runs.index_process"

_JOBS_PER_HELPER = 8
"""Number of workers for which one helper is started. Words take a tenth of the CPU time of file tasks."""

_CONTENT_BYTES_MIN = 16 << 20
"""Minimum total size of the contents of a batch. For less, the start of a process is not worth its CPU time."""

_PIECE_SECONDS_MAX = 60.0
"""Maximum time to wait for a piece. A piece takes about a second of CPU time."""

_INDEX_SECONDS_MAX = 600.0
"""Maximum time to wait for the index after the results are counted."""

_WAIT_SECONDS = 0.01


class IndexHelpers:
    """The helper processes of one run. On exit from the context, they are killed and their files are removed."""

    def __init__(self) -> None:
        self._opened = contextlib.ExitStack()
        self._word_processes: list[subprocess.Popen[bytes]] = []
        self._index_process: subprocess.Popen[bytes] | None = None
        self._store: StoreDir | None = None
        self._directory = Path()
        self._trees: tuple[str, ...] = ()

    def __enter__(self) -> IndexHelpers:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.end()

    def start_words(self, store: StoreDir, batch: BatchDir, snapshot: Snapshot, *, jobs: int) -> None:
        """Start processes for the words of a batch, beside `jobs` workers.

        None are started beside a single worker, for few contents, if the batch or a base has an index, or if starting
        fails. Until `end`, the shared lock of the store is held, so that no other process removes the pieces.
        """
        if jobs < 2:
            return
        from codebatch.index.word_build import unindexed_ranges  # Deferred: a single worker needs none of it.
        from codebatch.index.word_helper import encode_request

        ranges = unindexed_ranges(store, batch, snapshot)
        if sum(entry.size for entries in ranges for entry in entries) < _CONTENT_BYTES_MIN:
            return
        count = min(-(-min(jobs, usable_cores()) // _JOBS_PER_HELPER), len(ranges))
        with contextlib.suppress(StoreError, OSError):
            self._opened.enter_context(store.writing())
            self._store, self._directory = store, store.root / layout.INDEXES / f".{uuid.uuid4().hex}.tmp"
            self._trees = tuple(map(os.fsdecode, batch.about.sources))
            store.files.make_directory(self._directory)
            for number in range(count):
                request = self._directory / f"request-{number}"
                store.files.write_volatile(request, encode_request(ranges[number::count]))
                objects = store.root / layout.OBJECTS
                self._word_processes.append(self._start_process(_WORDS_MODULE, str(objects), str(request)))

    def start_index(self, batch: BatchDir) -> None:
        """Start a process that builds the index of a merged batch, if all pieces of its words are there."""
        processes = self._word_processes
        if self._store is None or not processes or any(process.poll() != 0 for process in processes):
            return
        with contextlib.suppress(OSError):
            self._index_process = self._start_process(
                _INDEX_MODULE, str(self._store.root), batch.id, str(self._directory)
            )

    def has_built_index(self) -> bool:
        """Return whether a process has built the index. Wait until it ends."""
        process = self._index_process
        if process is None:
            return False
        try:
            return process.wait(_INDEX_SECONDS_MAX) == 0
        except subprocess.TimeoutExpired:
            return False

    def read_piece(self, name: str) -> bytes | None:
        """Return the piece with a name. Wait for it as long as a helper may still write it."""
        deadline = time.monotonic() + _PIECE_SECONDS_MAX
        while self._store is not None:
            is_over = all(process.poll() is not None for process in self._word_processes)
            with contextlib.suppress(FileNotFoundError, StoreError):
                return self._store.files.read(self._directory / name)
            if is_over:
                return None
            if time.monotonic() > deadline:
                self.end()
            time.sleep(_WAIT_SECONDS)
        return None

    def end(self) -> None:
        """Kill the processes and remove their files. Calling this method again does nothing."""
        for process in (*self._word_processes, *([self._index_process] if self._index_process else [])):
            if process.poll() is None:
                kill_group(process)
                reap_killed(process)
        self._word_processes.clear()
        self._index_process = None
        store, self._store = self._store, None
        with self._opened:
            if store is not None:
                with contextlib.suppress(StoreError):  # The next writer removes it.
                    store.files.remove_tree(self._directory)

    def _start_process(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a process. Its messages are discarded: whatever its error is, the run does its work. Raises OSError."""
        environment = program_environment(os.environ)
        start = python_start(module, str(os.getpid()), *arguments, environment=environment, trees=self._trees)
        discarded = os.open(os.devnull, os.O_WRONLY)
        try:
            return start_process(
                start.arguments,
                cwd=self._directory,
                environment=start.environment,
                inherited=(),
                stderr=discarded,
            )
        finally:
            os.close(discarded)
