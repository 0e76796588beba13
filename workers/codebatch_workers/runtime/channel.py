"""The worker's end of the channel to its coordinator."""

from __future__ import annotations

import select
import socket
from collections import deque

from codebatch.errors import CodebatchError
from codebatch.protocol.messages import FromWorker, GaveUp, MessageBuffer, ToWorker, decode_to_worker, encode_message

RECEIVE_BYTES = 64 * 1024


class CoordinatorGone(Exception):
    """The channel reached its end: nobody is left to work for."""


class Channel:
    """A blocking, message-wise view of the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = MessageBuffer()
        self._messages: deque[ToWorker] = deque()

    def fileno(self) -> int:
        """Its descriptor."""
        return self._connection.fileno()

    def send(self, *messages: FromWorker) -> None:
        """Send messages, one behind the other. Raises CoordinatorGone."""
        try:
            self._connection.sendall(b"".join(map(encode_message, messages)))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise CoordinatorGone from error

    def receive(self) -> ToWorker:
        """Wait for the next message. Raises CoordinatorGone."""
        while not self._messages:
            self._read()
        return self._messages.popleft()

    def try_receive(self) -> ToWorker | None:
        """The next message if it is there. Raises CoordinatorGone."""
        while not self._messages and select.select([self._connection], [], [], 0)[0]:
            self._read()
        return self._messages.popleft() if self._messages else None

    def _read(self) -> None:
        try:
            data = self._connection.recv(RECEIVE_BYTES)
        except ConnectionResetError as error:
            raise CoordinatorGone from error
        if not data:
            raise CoordinatorGone
        self._messages.extend(decode_to_worker(body) for body in self._buffer.feed(data))


def give_up(channel: Channel, error: CodebatchError) -> None:
    """Tell the coordinator that this worker ends, and that no file is to blame."""
    channel.send(GaveUp(code=error.code, message=error.message, hint=error.hint))
