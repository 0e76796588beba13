"""The standard streams, whatever state they were handed to us in: closed, on a full disk, with nobody at the other end.

Standard output is the answer: what cannot be written there ends the command, with the error of a disk. Standard error
is for whoever looks: what cannot be written there is lost, and the work goes on.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer

STDOUT = 1
STDERR = 2


class ReaderGone(Exception):
    """Whoever read our answer has left (`| head`): what it wanted it has."""


class _Answers(io.FileIO):
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


class _Notes(io.FileIO):
    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data) or len(memoryview(data))
        except OSError:
            return len(memoryview(data))


def set_up_streams() -> None:
    """Have standard output and error as this module says. A closed one gets a descriptor, which no file is to have."""
    for descriptor in (0, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free one is what open(2) gives. Not open for writing, so that an answer is refused.
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout = _text(_Answers(STDOUT, "wb", closefd=False), sys.stdout, errors="strict")
    sys.stderr = _text(_Notes(STDERR, "wb", closefd=False), sys.stderr, errors="backslashreplace")
    sys.stderr.reconfigure(line_buffering=True)


def _text(raw: io.FileIO, before: TextIO | None, *, errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before is not None else "utf-8",
        errors=(before.errors if before is not None else None) or errors,
        line_buffering=raw.isatty(),
    )
