"""Imports: what other programs found, as a task of a plan that knows the form of a file, and which object it is.

Whoever plans one gives it a name of its own; what it is follows from its configuration alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NoReturn, get_args

import msgspec

from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.plan import PlannedTask, with_config
from codebatch.model.task import Json

ImportFormat = Literal["sarif", "checkstyle", "rdjson", "jsonl"]
FORMATS: tuple[ImportFormat, ...] = get_args(ImportFormat)

IMPORT_TASK = "import"
"""The name under which it is declared; no task of a plan has it."""

IMPORT_BYTES_MAX = 256 << 20
"""Bytes of all files of one import."""

_SEVERAL = b"\0codebatch: several files\n"
"""The beginning of an object of several files; no text of FORMATS begins with NUL."""


class ImportConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files of an import: their format, and the object that has them (`join_files`).

    `root` is where the tree lay for whoever made it: absolute paths in it are made relative to that.
    """

    format: ImportFormat | Literal[""] = ""
    object: str = ""
    root: bytes = b""

    def __post_init__(self) -> None:
        if not self.format or not DIGEST_PATTERN.match(self.object):
            raise ValueError("imports cannot be configured: they are planned by `codebatch import`")


def join_files(files: Sequence[bytes]) -> bytes:
    """Return the object that is imported for some files; of one it is the file itself."""
    if len(files) == 1 and not files[0].startswith(_SEVERAL):
        return files[0]
    return _SEVERAL + msgspec.msgpack.encode(tuple(files))


def split_files(data: bytes) -> tuple[bytes, ...]:
    """Return the files of an object that is imported. Raises ValueError if it is not one of `join_files`."""
    if not data.startswith(_SEVERAL):
        return (data,)
    return msgspec.msgpack.decode(memoryview(data)[len(_SEVERAL) :], type=tuple[bytes, ...])


def refuse_configured(_config: ImportConfig, **_: object) -> NoReturn:
    """A `Prepare`: what is run by a configuration imports nothing. Raises ValueError."""
    raise ValueError("an import is planned by `codebatch import` and cannot be configured")


class ExcludedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of an imported file that were not imported.

    - `unknown_files`: the number of findings in files that are not in the batch. `examples` are some of these paths.
    - `unknown_locations`: the number of findings at a line or column that does not exist.
    - `dismissed`: the number of results that the file itself marks as no findings, such as suppressed or passed ones.
    - `tool_failed`: the file says that the run of the tool was incomplete.
    """

    unknown_files: int = 0
    unknown_locations: int = 0
    dismissed: int = 0
    tool_failed: bool = False
    examples: tuple[str, ...] = ()


def is_import(task: PlannedTask) -> bool:
    """Whether a task is an import."""
    return task.config.keys() == _FIELDS


def imports_in(tasks: Iterable[PlannedTask]) -> dict[str, Digest]:
    """The tasks that are imports, each with the object that it imports."""
    return {task.name: Digest(str(task.config["object"])) for task in tasks if is_import(task)}


def way_of(task: PlannedTask) -> dict[str, Json]:
    """How a task looks at files. Of an import that is not known: its configuration is what was found."""
    return {} if is_import(task) else task.config


def for_tree_of(others: Sequence[PlannedTask], tasks: Iterable[PlannedTask]) -> list[PlannedTask]:
    """Tasks of one batch for the tree that `others` are of: imports as they have them, none that they have not."""
    theirs = {task.name: task.config for task in others if is_import(task)}
    return [
        with_config(task, theirs[task.name]) if is_import(task) else task
        for task in tasks
        if not is_import(task) or task.name in theirs
    ]


def are_alike(others: Sequence[PlannedTask], tasks: Sequence[PlannedTask]) -> bool:
    """Whether two batches have been worked by the same, but for what was imported into them, and into one alone."""
    names = {task.name for task in tasks}
    theirs = [task.key for task in others if not is_import(task) or task.name in names]
    return theirs == [task.key for task in for_tree_of(others, tasks)]


_FIELDS = set(ImportConfig.__struct_fields__)
