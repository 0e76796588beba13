"""Calls of programs, and how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class ProgramFailed(Exception):
    """The error that a program returned no usable output. The message is the reason.

    `error_output` is the end of the program's standard error, or empty. `is_overdue`: it exceeded its time limit.
    """

    def __init__(self, reason: str, error_output: bytes = b"", *, is_overdue: bool = False) -> None:
        super().__init__(reason)
        self.error_output = error_output
        self.is_overdue = is_overdue


class ProgramCall(msgspec.Struct, frozen=True, kw_only=True):
    """A program to call: arguments, directory, environment (None: that of this process), standard input, and limits.

    `seconds_max` limits the time, and `output_bytes_max` the size of the standard output. `file_bytes_max` limits the
    size of each file that the program writes (on Linux). None: no limit.
    """

    arguments: Sequence[str | bytes]
    directory: str
    environment: Mapping[str, str] | None = None
    input: bytes = b""
    seconds_max: float
    output_bytes_max: int
    file_bytes_max: int | None = None


class ProgramEnd(msgspec.Struct, frozen=True):
    """The end of a program: its exit status (negative: the signal that ended it), and its outputs.

    `error_output` is the end of the standard error.
    """

    exit_status: int
    output: bytes
    error_output: bytes
