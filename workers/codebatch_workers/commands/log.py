"""The log of an attempt: what a command wrote, byte by byte, the beginning and the end of it where it is too much."""

from __future__ import annotations

import contextlib
from pathlib import Path

from codebatch.errors import StoreError, StoreUnwritable
from codebatch.system.files.files import Appender, Files
from codebatch.system.files.system_calls import PRIVATE_MODE

EVIDENCE_BYTES = 8 * 1024
_COPY_BYTES = 1 << 20
_TAILS = ("tail-0", "tail-1")


class AttemptLogWriter:
    """Half of what a log may hold is its beginning. Of what follows two files in turn keep the end, a quarter each,
    beside the log until `close` appends them to it. Nothing is synced.

    A command is not to suffer from a full disk: what cannot be written is left out, and counted.
    """

    def __init__(
        self, files: Files, path: Path | str, scratch: Path, bytes_max: int, *, end_bytes: int = EVIDENCE_BYTES
    ) -> None:
        """`scratch` is a directory for the time of the attempt; `end_bytes` of the output's end are kept at hand.

        Raises StoreUnwritable.
        """
        self._files = files
        self._scratch = scratch
        try:
            self._head = files.open_append(path, directory_mode=PRIVATE_MODE)  # People may have removed it.
        except FileExistsError:  # Of a start under our lease's name that was forgotten when the machine died.
            files.remove(path)
            self._head = files.open_append(path, directory_mode=PRIVATE_MODE)
        self._room = bytes_max // 2
        self._tail_bytes = bytes_max // 4
        self._tails: list[tuple[Path, Appender, int]] = []
        self._turns = 0
        self._last = b""
        self._end_bytes = end_bytes
        self._left_out = 0
        self._ends_line = True
        self.bytes = 0

    @property
    def evidence(self) -> str:
        """The last that was written."""
        return self._last[-EVIDENCE_BYTES:].decode("utf-8", "replace")

    @property
    def end(self) -> bytes:
        """As much as is at hand of it."""
        return self._last

    def write(self, data: bytes) -> None:
        """Add output."""
        self.bytes += len(data)
        self._last = (
            (self._last + data)[-self._end_bytes :] if len(data) < self._end_bytes else data[-self._end_bytes :]
        )
        head, rest = data[: self._room], data[self._room :]
        if head:
            self._room -= len(head)
            self._add(head)
        while rest:
            rest = self._add_to_tail(rest)

    def close(self) -> None:
        """Complete the log: behind the beginning a line that says how much is left out, and the end."""
        with contextlib.suppress(StoreError, FileNotFoundError):  # The disk is full, or somebody removed the scratch.
            if self._left_out:
                line = f"… {self._left_out:,} bytes omitted …\n"
                self._head.append((line if self._ends_line else f"\n{line}").encode())
            for path, _, size in self._tails:
                for offset in range(0, size, _COPY_BYTES):
                    self._head.append(self._files.read_range(path, offset, min(_COPY_BYTES, size - offset)))
        for appender in (self._head, *(each for _, each, _ in self._tails)):
            appender.close()

    def _add(self, data: bytes) -> None:
        try:
            self._head.append(data)
            self._ends_line = data.endswith(b"\n")
        except StoreUnwritable:
            self._left_out += len(data)

    def _add_to_tail(self, data: bytes) -> bytes:
        """Add what fits to the file whose turn it is; returns the rest."""
        is_full = not self._tails or self._tails[-1][2] >= self._tail_bytes
        if is_full and not self._turn():
            self._left_out += len(data)
            return b""
        path, appender, size = self._tails[-1]
        part = data[: self._tail_bytes - size]
        try:
            appender.append(part)
        except StoreUnwritable:
            self._left_out += len(part)
        else:
            self._tails[-1] = (path, appender, size + len(part))
        return data[len(part) :]

    def _turn(self) -> bool:
        """Begin the next file of the end; the one before the last is given up. False where the disk refuses it."""
        if len(self._tails) == len(_TAILS):
            path, appender, size = self._tails.pop(0)
            appender.close()
            self._left_out += size
        path = self._scratch / _TAILS[self._turns % len(_TAILS)]
        try:
            self._files.remove(path)
            self._tails.append((path, self._files.open_append(path), 0))
        except StoreUnwritable:
            return False
        self._turns += 1
        return True
