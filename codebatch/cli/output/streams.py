"""The standard streams, whatever state they were handed to us in: closed, on a full disk, with nobody at the other end.

Standard output is the answer: what cannot be written there ends the command, with the error of a disk. Standard error
is for whoever looks: what cannot be written there is lost, and the work goes on.

A stream that is a terminal shows control characters as escapes, in text and in bytes, wherever they come from. What we
write to steer it (colours, links, the line of progress) goes through `write_own`.
"""

from __future__ import annotations

import io
import os
import sys
from codecs import getincrementaldecoder
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

from codebatch.cli.output.terminal import harmless

if TYPE_CHECKING:
    from typing_extensions import Buffer

STDOUT = 1
STDERR = 2


class ReaderGone(Exception):
    """Whoever read our answer has left (`| head`): what it wanted it has."""


class _StandardOutput(io.FileIO):
    def write(self, data: Buffer, /) -> int:
        try:
            while (written := super().write(data)) is None:  # Somebody made the pipe one that does not wait.
                from select import select  # which few answers need

                select((), (self,), ())
            return written
        except BrokenPipeError as error:  # click would end the process on one.
            raise ReaderGone from error
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from error


class _StandardError(io.FileIO):
    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data) or len(memoryview(data))
        except OSError:
            return len(memoryview(data))


class _Terminal(io.TextIOWrapper):
    """Text on a terminal, of which nothing steers it."""

    def write(self, text: str, /) -> int:
        super().write(harmless(text))
        return len(text)

    def write_own(self, text: str) -> None:
        """Write text in which all that steers a terminal is ours."""
        super().write(text)

    @property
    def buffer(self) -> io.BufferedIOBase:  # type: ignore[override]
        return self._harmless_bytes

    @property
    def unfiltered(self) -> BinaryIO:
        """The stream of bytes below, which may steer the terminal."""
        return cast("BinaryIO", super().buffer)

    @cached_property
    def _harmless_bytes(self) -> _HarmlessBytes:
        return _HarmlessBytes(self.unfiltered)


class _HarmlessBytes(io.BufferedIOBase):
    """Bytes on a terminal: UTF-8, of which nothing steers it. What is no UTF-8 is shown as escapes."""

    def __init__(self, below: BinaryIO) -> None:
        self._below = below
        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: Buffer, /) -> int:
        text = self._decoder.decode(data)
        self._below.write(harmless(text, in_json=True).encode())
        return len(memoryview(data))

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._below.flush()


def write_own(stream: TextIO, text: str) -> None:
    """Write text in which all that steers a terminal is ours; what it holds of data has been made `printable`."""
    if isinstance(stream, _Terminal):
        stream.write_own(text)
    else:
        stream.write(text)


def set_up_streams() -> None:
    """Have standard output and error as this module says. A closed one gets a descriptor, which no file is to have."""
    for descriptor in (0, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free one is what open(2) gives. Not open for writing, so that an answer is refused.
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout = _text(_StandardOutput(STDOUT, "wb", closefd=False), sys.stdout, errors="strict")
    sys.stderr = _text(_StandardError(STDERR, "wb", closefd=False), sys.stderr, errors="backslashreplace")
    sys.stderr.reconfigure(line_buffering=True)


def _text(raw: io.FileIO, before: TextIO | None, *, errors: str) -> io.TextIOWrapper:
    kind = _Terminal if raw.isatty() else io.TextIOWrapper
    return kind(
        io.BufferedWriter(raw),
        encoding=before.encoding if before is not None else "utf-8",
        errors=(before.errors if before is not None else None) or errors,
        line_buffering=raw.isatty(),
    )
