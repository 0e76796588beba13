"""A command: what a work batch runs. Its definition is a document and an object of the store (SPEC.md "Work batches").

People say "task" for it, and so does the file that they write; here `task` is what a pipeline is made of.
"""

from __future__ import annotations

import re
from typing import Literal, NewType

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.document import Document, decode_document, encode_document

CommandId = NewType("CommandId", str)

COMMAND_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
"""What a task may be called. A member of a group has two such words, joined by a slash."""

COMMAND_FORMAT = 1
COMMAND_BYTES_MAX = 4 * 1024 * 1024
LOG_MB_MAX = 32
GRACE_SECONDS = 10.0
QUESTION_LINES = 20

Leftovers = Literal["kill", "leave"]


class Try(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What another try does otherwise than the first: what is not empty or None. `text_suffix` goes behind the text."""

    run: str | tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    timeout_seconds: float | None = None
    text_suffix: str = ""


class QuestionRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a question is known in the end of what a command prints: its last lines have a match of a regular expression
    (`^` and `$` are the ends of any line), whose group `text` is the question, without one all of it; or its exit
    status is one of `exits`, and the last lines are.
    """

    pattern: str = ""
    last_lines: int = QUESTION_LINES
    exits: tuple[int, ...] = ()


class RetryRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which failures are tried again: the exit status is one of `exits` (128 + n for signal n), or a regular expression
    has a match in the end of the output (`^` and `$` are the ends of any line).
    """

    pattern: str = ""
    exits: tuple[int, ...] = ()


class ResultPointers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """JSON pointers (RFC 6901) into the last JSON object that a command prints; empty where it has no such thing."""

    text: str = ""
    question: str = ""
    cost: str = ""
    session: str = ""


class EnvFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of variables, read at each attempt: its path, absolute or from the root of the batch."""

    path: str
    required: bool = True


class EnvLayer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Variables of files, and over them those of `env`."""

    files: tuple[EnvFile, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)


class Command(Document, frozen=True, kw_only=True):
    """What one attempt does, as it was written: placeholders and variables in `env` stand unexpanded.

    `run` as a list is executed as it is, as a string by `/bin/sh -c`. `cwd` and a path in `stdin` are relative to the
    root of the work batch. `stdin` is `none`, `text`, or a path behind `file:`. Statuses in `exit_ok` are success.
    `timeout_seconds` of an attempt and `stall_seconds` without a byte of output are on a clock that stops in suspend.
    `check` is run after it succeeded, and decides then. The second try does as the first of `tries` says, and so on; as
    the last does all that follow. A question in its output is known by `question` or `result`. Of failures for its exit
    status, a signal or its check only those are tried again of which `retry_if` holds. One with a match of `wait_if` in
    its output met a rate limit: its group `at` or `seconds` says how long that lasts.
    `grace_seconds` lie between SIGTERM and SIGKILL. `leftovers`: what becomes of what it left running when it ended by
    itself. `memory_mb_max` is resident memory of all its processes; `log_mb_max` the size of an attempt's log.
    `env_under` has the layers of variables below `env`, the lowest first; it is there if one of them has files.
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
    check: str | tuple[str, ...] = ()
    tries: tuple[Try, ...] = ()
    question: QuestionRule | None = None
    result: ResultPointers | None = None
    retry_if: RetryRule | None = None
    wait_if: str = ""
    env_under: tuple[EnvLayer, ...] | UnsetType = UNSET

    def environments(self) -> list[dict[str, str]]:
        """Return the variables of `env`, and of each layer under it without its files."""
        return [self.env, *(layer.env for layer in self.env_under or ())]

    def escalation(self, tried: int) -> Try:
        """What is to be done otherwise once so many tries have failed."""
        return self.tries[min(tried, len(self.tries)) - 1] if tried and self.tries else Try()

    def at_try(self, tried: int) -> Command:
        """What is done once so many tries have failed, but for its text."""
        if not (tried and self.tries):
            return self
        other = self.escalation(tried)
        return msgspec.structs.replace(
            self,
            run=other.run or self.run,
            env={**self.env, **other.env},
            timeout_seconds=self.timeout_seconds if other.timeout_seconds is None else other.timeout_seconds,
        )


def encode_command(command: Command) -> bytes:
    """The bytes of a command's object."""
    return encode_document(command)


def decode_command(data: bytes) -> Command:
    """Read a command's object. Raises DocumentError."""
    return decode_document(data, Command, COMMAND_FORMAT)
