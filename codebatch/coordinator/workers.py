"""Worker processes as their coordinator sees them: start, messages, progress cell, standard error, end."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field

from codebatch.engine.session import WorkerId
from codebatch.model.outcome import HolderId
from codebatch.protocol import names
from codebatch.protocol.launch import Launch, worker_arguments, worker_environment
from codebatch.protocol.messages import FromWorker, MessageBuffer, ToWorker, decode_from_worker, encode_message
from codebatch.store.batches import Batch
from codebatch.store.holders import new_holder_id
from codebatch.system.cell import Cell, Step
from codebatch.system.processes import describe_end, kill_group, start_process

STDERR_TAIL_BYTES = 8 * 1024
RECEIVE_BYTES = 256 * 1024


@dataclass(slots=True)
class WorkerProcess:
    """One worker. `killed_for` says why we killed it, if we did."""

    id: WorkerId
    holder: HolderId
    process: subprocess.Popen[bytes]
    channel: socket.socket
    stderr: int
    batch: Batch
    buffer: MessageBuffer = field(default_factory=MessageBuffer)
    stderr_tail: deque[bytes] = field(default_factory=lambda: deque(maxlen=16))
    cell: Cell | None = None
    killed_for: str = ""

    def send(self, message: ToWorker) -> None:
        """Send a message; a worker that is gone is noticed by the loop, not here."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.sendall(encode_message(message))

    def receive(self) -> list[FromWorker] | None:
        """What has arrived; None at the end of the channel."""
        try:
            data = self.channel.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            return None
        if not data:
            return None
        return [decode_from_worker(body) for body in self.buffer.feed(data)]

    def read_stderr(self) -> bool:
        """Take what was written to standard error, keeping the tail; False at its end."""
        data = os.read(self.stderr, STDERR_TAIL_BYTES)
        if data:
            self.stderr_tail.append(data)
        return bool(data)

    def step(self) -> Step | None:
        """What the worker is at; None before it has set up its cell."""
        if self.cell is None:
            path = self.batch.root / names.HOLDERS / names.cell_name(self.holder)
            try:
                self.cell = Cell(path, create=False)
            except FileNotFoundError:
                return None
        return self.cell.read()

    def kill(self, reason: str) -> None:
        """End the worker and its children at once."""
        self.killed_for = self.killed_for or reason
        kill_group(self.process)

    def bury(self) -> str:
        """Reap the process after the end of its channel, with all it left behind; tells how it ended."""
        try:
            returncode = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            kill_group(self.process)
            returncode = self.process.wait()
        kill_group(self.process)
        with contextlib.suppress(BlockingIOError):
            while self.read_stderr():
                pass
        self.channel.close()
        os.close(self.stderr)
        if self.cell is not None:
            self.cell.close()
        self.batch.files.remove_tree(self.batch.root / names.SCRATCH / self.holder)
        return describe_end(returncode)

    @property
    def stderr_text(self) -> str:
        """The last of what it wrote to standard error."""
        return b"".join(self.stderr_tail)[-STDERR_TAIL_BYTES:].decode("utf-8", "replace")


def start_worker(worker: WorkerId, batch: Batch, *, store_root: str, coordinator: HolderId) -> WorkerProcess:
    """Start a worker in an empty directory of its own. Main thread only."""
    holder = new_holder_id()
    scratch = batch.root / names.SCRATCH / holder
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
        )
        process = start_process(
            worker_arguments(sys.executable, launch),
            cwd=scratch,
            environment=worker_environment(os.environ),
            channel=theirs.fileno(),
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
