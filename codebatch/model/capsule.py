"""Capsules and their answers: the input and the result of a part that an engine executes (SPEC.md "Engines")."""

from __future__ import annotations

from typing import Annotated

import msgspec

from codebatch.model.command_table import CommandTaskLocation
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.part import DigestText, ShortText
from codebatch.model.plan import ContextTable, PlannedTask
from codebatch.model.shard import Shard, ShardId
from codebatch.model.task import CustomTaskLocation

CAPSULE_FORMAT = 1

REFUSAL_CHARACTERS_MAX = 4_000
"""Maximum length of the message and of the hint of a refusal."""

_RefusalText = Annotated[str, msgspec.Meta(max_length=REFUSAL_CHARACTERS_MAX)]
_Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]


class CapsuleLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the workers of a part. `call_seconds` maps command tasks to the time limit of a call.

    If `memory_bytes` is None, it depends on the available memory of the machine.
    """

    file_seconds: float
    memory_bytes: int | None
    call_seconds: dict[str, float] = {}


class CustomFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a custom task. `name` is its name in the `files` of the task, or empty for the file with the task."""

    task: str
    name: str
    content: bytes


class CapsuleHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a capsule. The objects of its files follow.

    - `plan_digest`: the digest of the whole plan.
    - `codebatch`, `python`: the version of the program, and the minor version of Python, such as `3.12`.
    - `tasks`: the file tasks, in dependency order.
    - `shards`: the shards under their own IDs, numbered from the first item of the capsule.
    - `items`: the files of the shards, in path order.
    - `locations`, `files`: the custom tasks and command tasks, and the files of the custom tasks.
    - `jobs`: the number of worker processes.
    - `seconds_max`: the time limit of the whole part.
    """

    format: int = CAPSULE_FORMAT
    plan_digest: Digest
    codebatch: str
    python: str
    pipeline: str
    tasks: tuple[PlannedTask, ...]
    shards: tuple[Shard, ...]
    items: tuple[Entry, ...]
    contexts: dict[str, ContextTable]
    locations: dict[str, CustomTaskLocation | CommandTaskLocation]
    files: tuple[CustomFile, ...]
    limits: CapsuleLimits
    jobs: int
    hash_seed: int
    seconds_max: float


class CapsuleObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object of a capsule: the frame in which the store has it."""

    digest: Digest
    size: int
    frame: bytes


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The error with which a machine refused a capsule, or could not execute it: its code, message and hint."""

    code: ShortText
    message: _RefusalText
    hint: _RefusalText | None = None


class AnswerHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of an answer. If `refusal` is None, the outcomes of all tasks for all shards follow.

    `host` is the name of the machine. `seconds` and `cpu_seconds` are those of the part, with all its processes.
    """

    format: int = CAPSULE_FORMAT
    plan_digest: DigestText
    shards: tuple[ShardId, ...]
    host: ShortText
    codebatch: ShortText
    python: ShortText
    seconds: _Seconds
    cpu_seconds: _Seconds
    refusal: Refusal | None = None
