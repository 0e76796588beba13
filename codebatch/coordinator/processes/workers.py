"""Worker processes as their coordinator sees them: start, messages, progress cell, standard error, end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

import msgspec

from codebatch.coordinator.processes.worker_backend import NONSENSE, KilledFor
from codebatch.errors import StoreCorrupt
from codebatch.model.outcome import HolderId
from codebatch.model.task import OwnPlace
from codebatch.protocol.launch import HOLDER_VARIABLE, STACK_SIGNAL, Launch, Role, worker_arguments, worker_environment
from codebatch.protocol.messages import FromWorker, MessageBuffer, ToWorker, decode_from_worker, encode_message
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batches import NEW_BATCH_HINT, BatchDir
from codebatch.store.batches.holders import new_holder_id
from codebatch.system.files.memory_scratch import sweep_memory_scratch
from codebatch.system.processes.environment import given_environment
from codebatch.system.processes.memory import kill_marked
from codebatch.system.processes.processes import has_ended, kill_group, reap, start_process
from codebatch.system.processes.progress_cell import ProgressCell, Step

STDERR_TAIL_BYTES = 8 * 1024
STDERR_READ_BYTES = 64 * 1024
RECEIVE_BYTES = 256 * 1024
EXIT_SECONDS = 5.0
STACK_SECONDS = 0.05


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker ended, and the most memory that it had resident."""

    returncode: int
    memory_peak_bytes: int


class WorkerProcess(msgspec.Struct):
    """One worker. `killed_for` says why we killed it, if we did."""

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

    def send(self, message: ToWorker) -> None:
        """Send a message; a worker that is gone is noticed by the loop, not here."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.sendall(encode_message(message))

    def receive(self) -> list[FromWorker] | None:
        """What has arrived; None at the end of the channel, and where a dead worker has nothing left to say."""
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
            self.kill(NONSENSE)
            return None

    def read_stderr(self) -> bool:
        """Take what was written to standard error, keeping the tail; False at its end."""
        data = os.read(self.stderr, STDERR_READ_BYTES)
        self.stderr_tail = (self.stderr_tail + data)[-STDERR_TAIL_BYTES:]
        return bool(data)

    def step(self) -> Step | None:
        """What the worker is at; None before it has set up its cell."""
        if self.cell is None:
            path = self.batch.root / layout.HOLDERS / layout.cell_name(self.holder)
            try:
                self.cell = ProgressCell(self.batch.files, path, create=False)
            except FileNotFoundError:
                return None
        return self.cell.read()

    def kill(self, reason: KilledFor, number: int = signal.SIGKILL) -> None:
        """Signal the worker and its children."""
        self.killed_for = self.killed_for or reason
        kill_group(self.process, number)

    def kill_overdue(self) -> None:
        """Kill the worker for its time, after it has been asked where it hangs."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, STACK_SIGNAL)
            time.sleep(STACK_SECONDS)
        self.kill("timeout")

    @property
    def has_ended(self) -> bool:
        """Whether the process is dead, be its channel held open by what it left behind."""
        return has_ended(self.process)

    def bury(self) -> Death:
        """Reap the process, which is dead or about to be, and kill all it left behind."""
        deadline = time.monotonic() + EXIT_SECONDS
        while not self.has_ended and time.monotonic() < deadline:
            time.sleep(0.001)
        kill_group(self.process)
        memory_peak_bytes = reap(self.process)
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
        return Death(returncode=returncode, memory_peak_bytes=memory_peak_bytes)

    @property
    def stderr_text(self) -> str:
        """The last of what it wrote to standard error."""
        return self.stderr_tail.decode("utf-8", "replace")


def start_worker(
    worker: WorkerId,
    batch: BatchDir,
    *,
    store_root: str,
    coordinator: HolderId,
    own_places: Mapping[str, OwnPlace],
    hash_seed: int,
    store_lock: int | None,
    keeps_terms: bool = False,
    role: Role = "tasks",
    wants_colors: bool = False,
) -> WorkerProcess:
    """Start a worker in an empty directory of its own, from a thread that outlives it. It holds our lock too.

    One for commands has our environment, for they are to have it.
    """
    holder = new_holder_id()
    scratch = batch.root / layout.SCRATCH / holder
    if batch.files.size(batch.root) is None:  # To make it again would leave a store with nothing but that in the way.
        raise StoreCorrupt(f"another process removed {batch.root}", hint=NEW_BATCH_HINT)
    batch.files.make_directory(scratch)
    ours, theirs = socket.socketpair()
    stderr_read, stderr_write = os.pipe()
    os.set_blocking(stderr_read, False)
    try:
        launch = Launch(
            store=store_root,
            batch=batch.id,
            holder=holder,
            coordinator=coordinator,
            channel=theirs.fileno(),
            parent=os.getpid(),
            own_tasks=dict(own_places),
            store_lock=store_lock,
            keeps_terms=keeps_terms,
            role=role,
            wants_colors=wants_colors,
        )
        process = start_process(
            worker_arguments(sys.executable, launch),
            cwd=scratch,
            environment=worker_environment(os.environ, holder, hash_seed)
            if role == "tasks"
            else {**given_environment(), HOLDER_VARIABLE: holder},
            inherited=[fd for fd in (theirs.fileno(), store_lock) if fd is not None],
            stderr=stderr_write,
        )
    except BaseException:
        ours.close()
        os.close(stderr_read)
        raise
    finally:
        theirs.close()
        os.close(stderr_write)
    return WorkerProcess(id=worker, holder=holder, process=process, channel=ours, stderr=stderr_read, batch=batch)
