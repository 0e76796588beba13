"""Imports: findings of other programs, as a task of a plan.

The configuration of this task has the format of the imported files, and the digest of the object that contains the
files. No other input affects the records. The command that plans an import chooses the name of its task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NoReturn

import msgspec

from codebatch.model.analysis.report_formats import ReportFormat
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.plan import PlannedTask, with_config
from codebatch.model.task import JsonValue

IMPORT_TASK = "import"
"""The name under which the task of imports is declared. In a plan, each import is a task with its own name."""

IMPORT_BYTES_MAX = 256 << 20
"""Limit of the total size of all files of one import."""

_SEVERAL_FILES_PREFIX = b"\0codebatch: several files\n"
"""The first bytes of an object with several files. No report in a known format begins with NUL."""


class ImportConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files of an import: their format, and the object that contains them (`join_files`).

    `root` is the path of the tree on the machine where the other program ran. Absolute paths in the files are made
    relative to this path.
    """

    format: ReportFormat | Literal[""] = ""
    object: str = ""
    root: bytes = b""

    def __post_init__(self) -> None:
        if not self.format or not DIGEST_PATTERN.match(self.object):
            raise ValueError("imports cannot be configured: they are planned by `codebatch import`")


def join_files(files: Sequence[bytes]) -> bytes:
    """Return the content of one object for imported files. A single file is returned unchanged."""
    if len(files) == 1 and not files[0].startswith(_SEVERAL_FILES_PREFIX):
        return files[0]
    return _SEVERAL_FILES_PREFIX + msgspec.msgpack.encode(tuple(files))


def split_files(data: bytes) -> tuple[bytes, ...]:
    """Return the files in the content of an imported object. Raises ValueError if `join_files` did not make it."""
    if not data.startswith(_SEVERAL_FILES_PREFIX):
        return (data,)
    return msgspec.msgpack.decode(memoryview(data)[len(_SEVERAL_FILES_PREFIX) :], type=tuple[bytes, ...])


def refuse_task_configuration(_config: ImportConfig, **_: object) -> NoReturn:
    """Reject the configuration.

    This is the `Prepare` function of imports, which only a command can plan. Raises ValueError.
    """
    raise ValueError("an import is planned by `codebatch import` and cannot be configured")


class ExcludedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of an imported file that were not imported.

    - `unknown_files`: the number of findings in files that are not in the batch. `examples` has some of these paths.
    - `unknown_locations`: the number of findings at a line or column that does not exist.
    - `dismissed`: the number of results that the tool does not report as problems, such as suppressed results and
      passed checks.
    - `tool_failed`: whether the file says that the run of the tool was incomplete.
    - `unread`: the number of lines or elements that may report problems but cannot be read. `unread_sample` is the
      first one.
    - `replaced`: the number of unknown values, such as severities, that a default replaces. `replaced_sample` is the
      first one.
    """

    unknown_files: int = 0
    unknown_locations: int = 0
    dismissed: int = 0
    tool_failed: bool = False
    examples: tuple[str, ...] = ()
    unread: int = 0
    unread_sample: str = ""
    replaced: int = 0
    replaced_sample: str = ""


def is_import(task: PlannedTask) -> bool:
    """Return whether a task is an import."""
    return task.config.keys() == _CONFIG_FIELDS


def imported_objects(tasks: Iterable[PlannedTask]) -> dict[str, Digest]:
    """Map the name of each import in `tasks` to the object that it imports."""
    return {task.name: Digest(str(task.config["object"])) for task in tasks if is_import(task)}


def task_configuration(task: PlannedTask) -> dict[str, JsonValue]:
    """Return the configuration of a task, which determines its rules.

    Empty for an import, because the rules of the other program are unknown.
    """
    return {} if is_import(task) else task.config


def adapt_imports(target_tasks: Sequence[PlannedTask], tasks: Iterable[PlannedTask]) -> list[PlannedTask]:
    """Return the tasks of a batch, changed so that they can run on the tree of another batch.

    `target_tasks` are the tasks of the batch whose tree is used. Each import in `tasks` gets the content that the
    import of the same name has in `target_tasks`, or is omitted if there is none.
    """
    other_configs = {task.name: task.config for task in target_tasks if is_import(task)}
    return [
        with_config(task, other_configs[task.name]) if is_import(task) else task
        for task in tasks
        if not is_import(task) or task.name in other_configs
    ]


def have_equal_tasks(other_tasks: Sequence[PlannedTask], tasks: Sequence[PlannedTask]) -> bool:
    """Return whether two batches have the same tasks, without regard to the content of imports.

    An import that only one of the batches has is ignored too.
    """
    names = {task.name for task in tasks}
    other_keys = [task.key for task in other_tasks if not is_import(task) or task.name in names]
    return other_keys == [task.key for task in adapt_imports(other_tasks, tasks)]


_CONFIG_FIELDS = set(ImportConfig.__struct_fields__)
