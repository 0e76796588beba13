"""Worker processes from the coordinator's side: start, messages, progress cell, standard error, end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time

import msgspec
from msgspec.structs import asdict

from codebatch.coordinator.processes.worker_backend import INVALID_MESSAGES, KilledFor
from codebatch.errors import StoreCorrupt
from codebatch.model.outcome import HolderId
from codebatch.protocol.launch import (
    HOLDER_VARIABLE,
    STACK_SIGNAL,
    WORKER_MODULE,
    WorkerLaunch,
    WorkerSettings,
    encode_launch,
    worker_environment,
)
from codebatch.protocol.messages import (
    MessageBuffer,
    MessageFromWorker,
    MessageToWorker,
    decode_from_worker,
    encode_message,
)
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import NEW_BATCH_HINT, BatchDir
from codebatch.store.batches.holders import new_holder_id
from codebatch.system.files.memory_scratch import sweep_memory_scratch
from codebatch.system.processes.environment import original_environment
from codebatch.system.processes.memory import kill_marked
from codebatch.system.processes.processes import has_ended, kill_group, reap_killed, start_process
from codebatch.system.processes.progress_cell import ProgressCell, WorkerStep
from codebatch.system.processes.python_start import python_start

STDERR_TAIL_BYTES = 8 * 1024
STDERR_READ_BYTES = 64 * 1024
RECEIVE_BYTES = 256 * 1024
EXIT_SECONDS = 5.0
STACK_DUMP_SECONDS = 0.05


class WorkerDeath(msgspec.Struct, frozen=True, kw_only=True):
    """The exit status of a worker and its peak resident memory."""

    returncode: int
    memory_peak_bytes: int


class WorkerProcess(msgspec.Struct):
    """One worker process. If the coordinator killed it, `killed_for` is the reason, otherwise empty."""

    id: WorkerId
    holder: HolderId
    process: subprocess.Popen[bytes]
    channel: socket.socket
    stderr: int
    batch: BatchDir
    buffer: MessageBuffer = msgspec.field(default_factory=MessageBuffer)
    stderr_tail: bytes = b""
    cell: ProgressCell | None = None
    killed_for: KilledFor = ""

    def send(self, message: MessageToWorker) -> None:
        """Send a message. If the worker is dead, do nothing, because the event loop will detect its end."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.sendall(encode_message(message))

    def receive(self) -> list[MessageFromWorker] | None:
        """Return the messages that have arrived.

        Return None if no more messages can arrive, because the channel or the worker has ended.
        """
        try:
            data = self.channel.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None if self.has_ended else []
        except ConnectionResetError:
            return None
        if not data:
            return None
        try:
            return [decode_from_worker(body) for body in self.buffer.feed(data)]
        except (ValueError, msgspec.DecodeError):
            self.kill(INVALID_MESSAGES)
            return None

    def read_stderr(self) -> bool:
        """Read available standard error and keep its tail. Return False at the end of the stream."""
        data = os.read(self.stderr, STDERR_READ_BYTES)
        self.stderr_tail = (self.stderr_tail + data)[-STDERR_TAIL_BYTES:]
        return bool(data)

    def step(self) -> WorkerStep | None:
        """Return the current step of the worker, or None if its progress cell does not exist yet."""
        if self.cell is None:
            path = self.batch.root / layout.HOLDERS / layout.cell_name(self.holder)
            try:
                self.cell = ProgressCell(self.batch.files, path, create=False)
            except FileNotFoundError:
                return None
        return self.cell.read()

    def kill(self, reason: KilledFor, number: int = signal.SIGKILL) -> None:
        """Send a signal to the process group of the worker.

        If it was already killed for a reason, that reason is kept.
        """
        self.killed_for = self.killed_for or reason
        kill_group(self.process, number)

    def kill_overdue(self) -> None:
        """Request a stack trace of the worker, then kill it for exceeding its time limit."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, STACK_SIGNAL)
            time.sleep(STACK_DUMP_SECONDS)
        self.kill("timeout")

    @property
    def has_ended(self) -> bool:
        """Whether the process is dead. Its channel may still be open in orphaned child processes."""
        return has_ended(self.process)

    def reap_and_kill_group(self) -> WorkerDeath:
        """Reap the process, and kill everything that it started. Wait at most 5 s for the process to exit."""
        deadline = time.monotonic() + EXIT_SECONDS
        while not self.has_ended and time.monotonic() < deadline:
            time.sleep(0.001)
        kill_group(self.process)
        memory_peak_bytes = reap_killed(self.process)
        returncode = self.process.returncode
        if returncode != 0:
            kill_marked(HOLDER_VARIABLE, {self.holder})
        with contextlib.suppress(BlockingIOError):
            while self.read_stderr():
                pass
        self.channel.close()
        os.close(self.stderr)
        if self.cell is not None:
            self.cell.close()
        self.batch.files.remove_tree(self.batch.root / layout.SCRATCH / self.holder)
        sweep_memory_scratch()
        return WorkerDeath(returncode=returncode, memory_peak_bytes=memory_peak_bytes)

    @property
    def stderr_text(self) -> str:
        """The tail of the worker's standard error."""
        return self.stderr_tail.decode("utf-8", "replace")


def start_worker(worker: WorkerId, batch: BatchDir, settings: WorkerSettings) -> WorkerProcess:
    """Start a worker in an empty scratch directory. The worker inherits the lock of the store.

    The calling thread must live longer than the worker. A worker of role `commands` gets the environment of this
    process, so commands inherit it. Raises StoreCorrupt if the batch directory was removed.
    """
    holder = new_holder_id()
    scratch = batch.root / layout.SCRATCH / holder
    # If the batch directory was removed, it must not be created again: an empty batch would be in the store.
    if batch.files.size(batch.root) is None:
        raise StoreCorrupt(f"another process removed {batch.root}", hint=NEW_BATCH_HINT)
    batch.files.make_directory(scratch)
    channel, worker_channel = socket.socketpair()
    stderr_read, stderr_write = os.pipe()
    os.set_blocking(stderr_read, False)
    try:
        launch = WorkerLaunch(**asdict(settings), holder=holder, channel=worker_channel.fileno(), parent=os.getpid())
        start = python_start(
            WORKER_MODULE,
            encode_launch(launch),
            environment=worker_environment(os.environ, holder, settings.hash_seed)
            if settings.role == "tasks"
            else {**original_environment(), HOLDER_VARIABLE: holder},
            trees=map(os.fsdecode, batch.about.sources),
        )
        process = start_process(
            start.arguments,
            cwd=scratch,
            environment=start.environment,
            inherited=[fd for fd in (worker_channel.fileno(), settings.store_lock) if fd is not None],
            stderr=stderr_write,
        )
    except BaseException:
        channel.close()
        os.close(stderr_read)
        raise
    finally:
        worker_channel.close()
        os.close(stderr_write)
    return WorkerProcess(id=worker, holder=holder, process=process, channel=channel, stderr=stderr_read, batch=batch)
