"""Declarations of tasks, and pipelines.

This module imports no parser, so the coordinator can load it without the code of tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from codebatch.model.entry import Entry, EntryKind

JsonValue = object
"""A decoded JSON value of any type. Code that receives one must check the type."""

_NUMBER_PREFIX = re.compile(r"\d+_(?=.)", re.ASCII)
TASK_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")


class SnapshotView(Protocol):
    """The view of a snapshot that the function of a context gets.

    It can read entries and files of the snapshot, nothing else.

    A context is a value, computed from the snapshot, that a task's result for an entry may depend on
    (`ContextFactory`).
    """

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, sorted by path."""

    def read(self, path: bytes, kind: EntryKind = "file") -> bytes | None:
        """Return the content of the file, or the target of the link, at a path. Return None if there is none."""


ContextFactory = Callable[[SnapshotView], Callable[[Entry], bytes]]
"""A function from a snapshot to a function that computes the value of the context for each entry (SPEC.md "Context").

The value is an input of the task's result for the entry, in addition to the entry's content. Each context has a name.
If several tasks declare the same name, they must declare the same function. For each plan, the function is called once.
"""


PrepareFunction = Callable[..., tuple[msgspec.Struct, str]]
"""A function `prepare(config, is_project=…)` that returns the configuration for the plan, and a note for people, or "".

The note describes how the returned configuration differs from `config`. If `is_project` is false, the tree does not
belong to the project of the configuration. Then no file of the tree may affect the result. Raises ValueError or
InvalidConfiguration.
"""

ContextsFactory = Callable[..., Mapping[str, ContextFactory]]
"""A function `configured_contexts(config)` that returns further contexts of a task by name.

The result may depend on the task's configuration. No other task may have a context with one of these names.
"""


class NoConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The empty configuration, for tasks that take none."""


class TaskDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a declaration that is data, so that other processes can receive it.

    - `implementation`: `module:attribute`, which only workers import. `codebatch_workers.api.protocols` describes the
      attribute.
    - `tools`: the distributions whose versions can change results. They are part of the cache key.
    - `optional_tools`: distributions that are part of the cache key if they are installed. Each is mapped to a
      description of what the task cannot do without it.
    - `programs`: the versions of programs that the task calls. They are part of the cache key.
    - `sources`: packages and modules whose changes can change results, in addition to the top-level package of the
      implementation. The digest of their files is part of the cache key. The default is all packages of codebatch.
    """

    name: str
    version: str
    summary: str
    implementation: str
    records: tuple[str, ...]
    scope: Literal["file", "project"] = "file"
    needs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ("codebatch", "codebatch_workers")
    tools: tuple[str, ...] = ()
    optional_tools: Mapping[str, str] = msgspec.field(default_factory=dict)
    programs: Mapping[str, str] = msgspec.field(default_factory=dict)


class TaskDeclaration(TaskDescription, frozen=True, kw_only=True):
    """The declaration of a task: everything that is needed to plan the task.

    - `contexts`: the contexts that the task sees, in addition to the contexts of the tasks that it needs.
    - `config`: the type of the task's configuration. It is a struct whose fields have defaults and can be written as
      JSON. Its `__post_init__` raises ValueError for invalid values, before a batch is created. The struct should
      forbid unknown fields.
    - `prepare`: a function that converts the configuration that the user wrote to the configuration in the plan.
    - `configured_contexts`: a function that returns further contexts, depending on the configuration.
    """

    config: type[msgspec.Struct] = NoConfig
    prepare: PrepareFunction | None = None
    contexts: Mapping[str, ContextFactory] = msgspec.field(default_factory=dict)
    configured_contexts: ContextsFactory | None = None

    @property
    def description(self) -> TaskDescription:
        """The declaration without its functions and types."""
        return TaskDescription(**{name: getattr(self, name) for name in TaskDescription.__struct_fields__})


class CustomTaskLocation(msgspec.Struct, frozen=True, kw_only=True, tag="python", tag_field="type"):
    """The location of a custom task (workers/TASKS.md "Custom tasks"), and its inputs other than the analysed file.

    `python` is `/absolute/path.py:function`. `tools` are distributions; None means the distributions that this file
    imports. `files` maps names in the configuration to absolute paths of files that the task reads. If `reuse` is
    false, later batches do not reuse the task's results. `project` is the directory of the configuration.
    """

    python: str
    tools: tuple[str, ...] | None = None
    files: dict[str, str] = {}
    reuse: bool = True
    project: str = ""


class RewriteTaskLocation(msgspec.Struct, frozen=True, kw_only=True, tag="rewrites", tag_field="type"):
    """A task that consists of rewrites. They are its configuration, so it needs no file and no program."""


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """A named list of tasks in dependency order."""

    name: str
    summary: str
    tasks: tuple[str, ...]


WORK_PIPELINE = "work"
"""The name of the pipeline of work batches. It has one task, which runs commands."""

PIPELINES: Mapping[str, Pipeline] = {
    pipeline.name: pipeline
    for pipeline in (
        Pipeline(name="parse", summary="language and class of each file, and syntax errors", tasks=("parse",)),
        Pipeline(
            name="analyze",
            summary="parse, metrics of each file, and duplicate blocks",
            tasks=("parse", "analyze", "duplicates"),
        ),
        Pipeline(
            name="full",
            summary="everything: metrics, duplicates, symbols and relations, lint",
            tasks=("parse", "analyze", "symbols", "lint", "dependencies", "duplicates"),
        ),
    )
}

BUILT_IN_TASKS = PIPELINES["full"].tasks
"""The tasks that come with codebatch, in dependency order. Imports of findings and task lists have other tasks."""


def task_name(name: str) -> str:
    """Return a task's name without the numeric prefix of CodeBatch 1.x: `parse` for `01_parse`."""
    return _NUMBER_PREFIX.sub("", name, count=1)
