"""Standard streams that work even if they are closed, on a full disk, or without a reader.

Standard output has the answer. If it cannot be written, the command ends with a storage error. Standard error is only
for information. If it cannot be written, the error is ignored.

On a terminal, control characters in text and bytes are escaped, whatever their origin. Only `write_with_colors` writes
the program's own control sequences: colours, links and progress.
"""

from __future__ import annotations

import io
import os
import sys
from codecs import getincrementaldecoder
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

from codebatch.cli.output.terminal import escape_controls

if TYPE_CHECKING:
    from typing_extensions import Buffer

STDOUT_DESCRIPTOR = 1
STDERR_DESCRIPTOR = 2


class OutputPipeClosed(Exception):
    """Raised if the reader of the answer has closed the pipe, as in `| head`.

    The rest of the answer is then not needed.
    """


class _StandardOutput(io.FileIO):
    def write(self, data: Buffer, /) -> int:
        try:
            # Another process has made the pipe non-blocking. So wait until the pipe is writable.
            while (written := super().write(data)) is None:
                from select import select  # Only non-blocking output needs this import.

                select((), (self,), ())
            return written
        except BrokenPipeError as error:  # click would end the process at a BrokenPipeError.
            raise OutputPipeClosed from error
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from error


class _StandardError(io.FileIO):
    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data) or len(memoryview(data))
        except OSError:
            return len(memoryview(data))


class _TerminalWriter(io.TextIOWrapper):
    """A text stream to a terminal. It escapes control characters."""

    def write(self, text: str, /) -> int:
        super().write(escape_controls(text))
        return len(text)

    def write_with_escapes(self, text: str) -> None:
        """Write text that may contain the program's own control sequences."""
        super().write(text)

    @property
    def buffer(self) -> io.BufferedIOBase:  # type: ignore[override]
        return self._control_escaping_bytes

    @property
    def unfiltered(self) -> BinaryIO:
        """The underlying byte stream. It does not escape control characters."""
        return cast("BinaryIO", super().buffer)

    @cached_property
    def _control_escaping_bytes(self) -> _ControlEscapingBytes:
        return _ControlEscapingBytes(self.unfiltered)


class _ControlEscapingBytes(io.BufferedIOBase):
    """A byte stream to a terminal. It escapes control characters and invalid UTF-8."""

    def __init__(self, below: BinaryIO) -> None:
        self._target = below
        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: Buffer, /) -> int:
        text = self._decoder.decode(data)
        self._target.write(escape_controls(text, in_json=True).encode())
        return len(memoryview(data))

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._target.flush()


def write_with_colors(stream: TextIO, text: str) -> None:
    """Write text with the program's own control sequences. All data in the text must already be `printable`."""
    if isinstance(stream, _TerminalWriter):
        stream.write_with_escapes(text)
    else:
        stream.write(text)


def set_up_streams() -> None:
    """Set up standard output and standard error as this module describes.

    The descriptors of closed streams are reserved, so that no other file gets them.
    """
    for descriptor in (0, STDOUT_DESCRIPTOR, STDERR_DESCRIPTOR):
        try:
            os.fstat(descriptor)
        except OSError:
            # open(2) returns the lowest free descriptor, which is the closed one. It is opened read-only, so that
            # writing an answer to it fails.
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout = _text_stream(_StandardOutput(STDOUT_DESCRIPTOR, "wb", closefd=False), sys.stdout, errors="strict")
    sys.stderr = _text_stream(
        _StandardError(STDERR_DESCRIPTOR, "wb", closefd=False), sys.stderr, errors="backslashreplace"
    )
    sys.stderr.reconfigure(line_buffering=True)


def _text_stream(raw: io.FileIO, before: TextIO | None, *, errors: str) -> io.TextIOWrapper:
    kind = _TerminalWriter if raw.isatty() else io.TextIOWrapper
    return kind(
        io.BufferedWriter(raw),
        encoding=before.encoding if before is not None else "utf-8",
        errors=(before.errors if before is not None else None) or errors,
        line_buffering=raw.isatty(),
    )
