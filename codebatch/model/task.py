"""Declarations of tasks, and pipelines. No heavy library is imported, so the coordinator never loads a parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from codebatch.model.entry import Entry

Json = object
"""A decoded JSON value. Receivers must check its type."""

_NUMBERED = re.compile(r"\d+_(?=.)", re.ASCII)
TASK_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")


class SnapshotView(Protocol):
    """The input of a context: the snapshot only."""

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, sorted by path."""

    def read(self, path: bytes) -> bytes | None:
        """Return the content of the file at a path, or None if there is no such file."""


Context = Callable[[SnapshotView], Callable[[Entry], bytes]]
"""A function that derives a further input of an entry's result from the whole snapshot (SPEC.md "Context").

Each context has a name. If several tasks declare the same name, they must declare the same function. A plan evaluates
the function once.
"""


Prepare = Callable[..., tuple[msgspec.Struct, str]]
"""`prepare(config, is_project=…)` returns the configuration for the plan, and a note for people, or "".

The note describes how this configuration differs from the given one. If `is_project` is false, the tree does not
belong to the project of the configuration. Then no file of the tree may affect the result. Raises ValueError or
InvalidConfiguration.
"""

ConfiguredContexts = Callable[..., Mapping[str, Context]]
"""`configured_contexts(config)` returns the further contexts that a task has with a configuration.

No other task may have contexts of these names.
"""


class NoConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The empty configuration, for tasks that take none."""


class TaskDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a declaration that is data, so that other processes can receive it.

    - `implementation`: `module:attribute`, which only workers import. `codebatch_workers.api.protocols` describes the
      attribute.
    - `tools`: the distributions whose versions can change results. They are part of the cache key.
    - `optional_tools`: distributions that are part of the cache key if they are installed. Each is mapped to what is
      impossible without it.
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


class TaskDeclaration(TaskDescription, frozen=True, kw_only=True):
    """The declaration of a task. It contains everything that is needed to plan the task.

    - `contexts`: the contexts that the task sees, in addition to the contexts of the tasks that it needs.
    - `config`: the type of its configuration. It is a struct whose fields have defaults and can be written as JSON.
      `__post_init__` raises ValueError for invalid values, before a batch is created. The struct should forbid unknown
      fields.
    - `prepare`: a function that converts the configuration that the user wrote to the configuration in the plan.
    - `configured_contexts`: a function that returns further contexts, depending on the configuration.
    """

    config: type[msgspec.Struct] = NoConfig
    prepare: Prepare | None = None
    contexts: Mapping[str, Context] = msgspec.field(default_factory=dict)
    configured_contexts: ConfiguredContexts | None = None

    @property
    def description(self) -> TaskDescription:
        """The declaration without its functions and types."""
        return TaskDescription(**{name: getattr(self, name) for name in TaskDescription.__struct_fields__})


class CustomTaskLocation(msgspec.Struct, frozen=True, kw_only=True):
    """The location of a custom task (workers/TASKS.md "Custom tasks"), and its inputs other than the analysed file.

    `python` is `/absolute/path.py:function`. `tools` are distributions; None means the distributions that the file
    imports. `files` maps names in the configuration to absolute paths of files that the task reads. Later batches reuse
    its results if possible and `reuse` is true. `project` is the directory of the configuration.
    """

    python: str
    tools: tuple[str, ...] | None = None
    files: dict[str, str] = {}
    reuse: bool = True
    project: str = ""


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """A named list of tasks in dependency order."""

    name: str
    summary: str
    tasks: tuple[str, ...]


WORK_PIPELINE = "work"
"""The pipeline of work batches, whose tasks are commands."""

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


def task_name(name: str) -> str:
    """Return a task's name without the numeric prefix of CodeBatch 1.x: `parse` for `01_parse`."""
    return _NUMBERED.sub("", name, count=1)
