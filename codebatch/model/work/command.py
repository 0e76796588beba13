"""Commands of work batches. A definition is a document and an object of the store (SPEC.md "Work batches").

User-visible texts and task lists call a command "task". In this code, a `task` is an element of a pipeline, and a
command is called `command`.
"""

from __future__ import annotations

import re
from typing import Literal, NewType

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.documents import Document, decode_document, encode_document
from codebatch.model.work.placeholders import used_placeholders

CommandId = NewType("CommandId", str)

COMMAND_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
"""A pattern for the IDs of tasks. The ID of a member of a group is two such words with a slash between them."""

COMMAND_FORMAT = 1
COMMAND_BYTES_MAX = 4 * 1024 * 1024
LOG_MB_MAX = 32
GRACE_SECONDS = 10.0
QUESTION_LINES = 20
WHEN_SECONDS = 60.0

LeftoverAction = Literal["kill", "leave"]
Isolation = Literal["worktree", "copy"]
"""The tree in which a command works: a new git work tree, or a copy of the files of the root."""


class RetryChanges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Changes to the command for a retry. Members that are empty or None change nothing.

    `text_suffix` is appended to the text.
    """

    run: str | tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    timeout_seconds: float | None = None
    text_suffix: str = ""


class QuestionRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rule that finds a question in the last lines of a command's output.

    - `pattern`: a regular expression. If it matches the last lines, the question is the group `text`, or without this
      group, the whole match. `^` and `$` match at every line.
    - `exits`: exit statuses. If the command exits with one of them, the last lines are the question.
    - `last_lines`: the number of lines that are searched.
    """

    pattern: str = ""
    last_lines: int = QUESTION_LINES
    exits: tuple[int, ...] = ()


class RetryRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The failures after which a task is retried.

    The exit status is one of `exits` (128 + n for signal n), or the regular expression `pattern` matches the end of the
    output. `^` and `$` match at every line.
    """

    pattern: str = ""
    exits: tuple[int, ...] = ()


class ResultPointers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """JSON pointers (RFC 6901) into the last JSON object that a command prints. An empty pointer is not used."""

    text: str = ""
    question: str = ""
    cost: str = ""
    session: str = ""


class EnvFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of environment variables, which is read at each attempt.

    `path` is absolute or relative to the root of the batch. If the file is missing and `required` is set, the attempt
    fails.
    """

    path: str
    required: bool = True


class EnvLayer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Environment variables from files and from `env`. If both define a variable, `env` wins."""

    files: tuple[EnvFile, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)


class Command(Document, frozen=True, kw_only=True):
    """The definition of a task, as written: placeholders and variables in `env` are not expanded.

    - `run`: a list is executed directly, a string with `/bin/sh -c`.
    - `cwd`: the directory in which the command starts, relative to the root of the batch.
    - `stdin`: `none`, `text`, or `file:` with a path that is relative to the root of the batch.
    - `exit_ok`: the exit statuses that mean success.
    - `timeout_seconds`: the time limit of an attempt. The time in which the machine is suspended does not count.
    - `stall_seconds`: the time limit without output.
    - `grace_seconds`: the time between SIGTERM and SIGKILL.
    - `leftovers`: whether processes that still run after the command has exited are killed or left.
    - `memory_mb_max`: the limit of the resident memory of all its processes.
    - `log_mb_max`: the size limit of the log of an attempt.
    - `check`: a command that runs after success and decides whether the task succeeded.
    - `tries`: changes for retries. The first entry applies to the second try, and so on; the last entry applies to all
      later tries.
    - `question`, `result`: how a question is found in the output.
    - `retry_if`: failures by exit status, signal or `check` are retried only if they match.
    - `wait_if`: a regular expression that matches the output if the command reached a rate limit. Its group `at` is the
      time when the limit ends, or its group `seconds` is the duration of the limit.
    - `wait_exits`: exit statuses of success after which `wait_if` is searched too. Missing: only after failures.
    - `env_under`: layers of variables that `env` overrides, the lowest first. It is set only if a layer has files.
    - `values`: the values of placeholders that `each` defines, by name.
    - `files`: the value of `{files}`.
    - `skip_status`: the exit status of `run` that means that there was nothing to do. The task is then done.
    - `when`: a command that runs before the first try. With status 0, `run` follows. With status 1, there is nothing to
      do. With any other end, the task fails.
    - `when_timeout_seconds`: the time limit of `when`.
    - `isolation`: the command works in a tree of its own (model/work/trees.py). Missing: in the root of the batch.
    - `outputs`: patterns of the files that are collected into the store after success. Missing: none are collected.
    - `outputs_of`: the tasks whose outputs the command uses, by the name in `{tasks.NAME.outputs}`. The empty name has
      the tasks whose outputs only count as inputs of `skip_if_unchanged`.
    - `skip_if_unchanged`: the command does not run if nothing that the list names has changed since its last success:
      this definition, variables, outputs of needed tasks, and the files that the patterns `inputs` match.
    - `secret`: variables whose values are masked in the output, beside those that are secret by their names.
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
    leftovers: LeftoverAction = "kill"
    memory_mb_max: int | None = None
    log_mb_max: int = LOG_MB_MAX
    values: dict[str, str] = msgspec.field(default_factory=dict)
    files: tuple[str, ...] = ()
    check: str | tuple[str, ...] = ()
    tries: tuple[RetryChanges, ...] = ()
    question: QuestionRule | None = None
    result: ResultPointers | None = None
    retry_if: RetryRule | None = None
    wait_if: str = ""
    wait_exits: tuple[int, ...] | UnsetType = UNSET
    env_under: tuple[EnvLayer, ...] | UnsetType = UNSET
    isolation: Isolation | UnsetType = UNSET
    secret: tuple[str, ...] | UnsetType = UNSET
    skip_status: int | UnsetType = UNSET
    when: str | tuple[str, ...] | UnsetType = UNSET
    when_timeout_seconds: float | UnsetType = UNSET
    outputs: tuple[str, ...] | UnsetType = UNSET
    outputs_of: dict[str, tuple[CommandId, ...]] | UnsetType = UNSET
    skip_if_unchanged: bool | UnsetType = UNSET
    inputs: tuple[str, ...] | UnsetType = UNSET

    def environment_layers(self) -> list[dict[str, str]]:
        """Return the variables in `env`, then those in each layer of `env_under`, highest first.

        Env files are not read.
        """
        return [self.env, *(layer.env for layer in self.env_under or ())]

    def placeholders(self) -> set[str]:
        """Return the names of all placeholders that the command uses."""
        texts = [*self.environment_layers(), *(one.env for one in self.tries)]
        runs = [self.run, self.check, self.when or "", *(one.run for one in self.tries)]
        suffixes = [one.text_suffix for one in self.tries]
        if "{" not in "".join(map(str, (*runs, *texts, *suffixes))):
            return set()
        values = [value for env in texts for value in env.values()]
        return used_placeholders([*suffixes, *values]).union(*map(used_placeholders, runs))

    def retry_changes(self, failed_tries: int) -> RetryChanges:
        """Return the changes to the command for the next try, after `failed_tries` failed tries."""
        return self.tries[min(failed_tries, len(self.tries)) - 1] if failed_tries and self.tries else RetryChanges()

    def for_try(self, failed_tries: int) -> Command:
        """Return the command for the next try, after `failed_tries` failed tries.

        The suffix of the text is not applied.
        """
        if not (failed_tries and self.tries):
            return self
        changes = self.retry_changes(failed_tries)
        return msgspec.structs.replace(
            self,
            run=changes.run or self.run,
            env={**self.env, **changes.env},
            timeout_seconds=self.timeout_seconds if changes.timeout_seconds is None else changes.timeout_seconds,
        )


def encode_command(command: Command) -> bytes:
    """Return the bytes of a command's object."""
    return encode_document(command)


def decode_command(data: bytes) -> Command:
    """Decode a command's object. Raises DocumentError."""
    return decode_document(data, Command, COMMAND_FORMAT)
