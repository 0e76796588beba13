"""The worker's end of the channel to the coordinator."""

from __future__ import annotations

import socket
from collections import deque

from codebatch.errors import CodebatchError
from codebatch.protocol.messages import (
    GaveUp,
    MessageBuffer,
    MessageFromWorker,
    MessageToWorker,
    decode_to_worker,
    encode_message,
)

RECEIVE_BYTES = 64 * 1024


class CoordinatorLost(Exception):
    """The channel was closed: the coordinator has ended."""


class CoordinatorChannel:
    """A socket to the coordinator, over which messages are sent and received. Calls block unless stated otherwise."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = MessageBuffer()
        self._messages: deque[MessageToWorker] = deque()

    def fileno(self) -> int:
        """Return the file descriptor of the socket."""
        return self._connection.fileno()

    def send(self, *messages: MessageFromWorker) -> None:
        """Send messages in order. Raises CoordinatorLost."""
        try:
            self._connection.sendall(b"".join(map(encode_message, messages)))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise CoordinatorLost from error

    def receive(self) -> MessageToWorker:
        """Wait for the next message. Raises CoordinatorLost."""
        while not self._messages:
            self._read_messages()
        return self._messages.popleft()

    def try_receive(self) -> MessageToWorker | None:
        """Return the next message if one has arrived, otherwise None. This does not block. Raises CoordinatorLost."""
        while not self._messages:
            try:
                self._read_messages(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
        return self._messages.popleft()

    def _read_messages(self, flags: int = 0) -> None:
        try:
            data = self._connection.recv(RECEIVE_BYTES, flags)
        except ConnectionResetError as error:
            raise CoordinatorLost from error
        if not data:
            raise CoordinatorLost
        self._messages.extend(decode_to_worker(body) for body in self._buffer.feed(data))


def report_fatal_error(channel: CoordinatorChannel, error: CodebatchError) -> None:
    """Report to the coordinator that this worker ends. No file caused the error."""
    channel.send(GaveUp(code=error.code, message=error.message, hint=error.hint))
