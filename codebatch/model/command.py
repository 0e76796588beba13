"""A command: what a work batch runs. Its definition is a document and an object of the store (SPEC.md "Work batches").

People say "task" for it, and so does the file that they write; here `task` is what a pipeline is made of.
"""

from __future__ import annotations

import re
from typing import Literal, NewType

import msgspec

from codebatch.model.document import Document, decode_document, encode_document

CommandId = NewType("CommandId", str)

COMMAND_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
"""What a task may be called. A member of a group has two such words, joined by a slash."""

COMMAND_FORMAT = 1
COMMAND_BYTES_MAX = 4 * 1024 * 1024
LOG_MB_MAX = 32
GRACE_SECONDS = 10.0

Leftovers = Literal["kill", "leave"]


class Command(Document, frozen=True, kw_only=True):
    """What one attempt does, as it was written: placeholders and `"$NAME"` in `env` stand unexpanded.

    `run` as a list is executed as it is, as a string by `/bin/sh -c`. `cwd` and a path in `stdin` are relative to the
    root of the work batch. `stdin` is `none`, `text`, or a path behind `file:`. Statuses in `exit_ok` are success.
    `timeout_seconds` of an attempt and `stall_seconds` without a byte of output are on a clock that stops in suspend.
    `grace_seconds` lie between SIGTERM and SIGKILL. `leftovers`: what becomes of what it left running when it ended by
    itself. `memory_mb_max` is resident memory of all its processes; `log_mb_max` the size of an attempt's log.
    `values` are those of placeholders besides the ones that every command has, by name; `files` are what `{files}` is.
    """

    format: int = COMMAND_FORMAT
    id: CommandId
    run: str | tuple[str, ...]
    title: str = ""
    text: str = ""
    cwd: str = "."
    env: dict[str, str] = msgspec.field(default_factory=dict)
    clean_env: bool = False
    stdin: str = "none"
    exit_ok: tuple[int, ...] = (0,)
    timeout_seconds: float | None = None
    stall_seconds: float | None = None
    grace_seconds: float = GRACE_SECONDS
    leftovers: Leftovers = "kill"
    memory_mb_max: int | None = None
    log_mb_max: int = LOG_MB_MAX
    values: dict[str, str] = msgspec.field(default_factory=dict)
    files: tuple[str, ...] = ()


def encode_command(command: Command) -> bytes:
    """The bytes of a command's object."""
    return encode_document(command)


def decode_command(data: bytes) -> Command:
    """Read a command's object. Raises DocumentError."""
    return decode_document(data, Command, COMMAND_FORMAT)
