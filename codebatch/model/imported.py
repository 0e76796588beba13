"""Imports: what other programs found, as a task of a plan that knows the form of a file, and which object it is.

Whoever plans one gives it a name of its own; what it is follows from its configuration alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.plan import PlannedTask

ImportFormat = Literal["sarif", "checkstyle", "rdjson", "jsonl"]
FORMATS: tuple[ImportFormat, ...] = get_args(ImportFormat)

IMPORT_TASK = "import"
"""The name under which it is declared; no task of a plan has it."""

IMPORT_BYTES_MAX = 256 << 20
"""Of a file that is imported."""


class ImportConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is imported: a file's format, and the object that it is.

    `root` is where the tree lay for whoever made it: absolute paths in it are made relative to that.
    """

    format: ImportFormat | Literal[""] = ""
    object: str = ""
    root: bytes = b""

    def __post_init__(self) -> None:
        if not self.format or not DIGEST_PATTERN.match(self.object):
            raise ValueError("what is imported is not configured: it is planned by `codebatch import`")


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What of an imported file is no record.

    `no_file`: findings of no file that was worked on; `no_place`: in a line that their file does not have; `dismissed`:
    such as the file itself says are none (suppressed, passed). `has_failed`: it says that the tool did not do all.
    `examples` are some of the paths of which there is no file.
    """

    no_file: int = 0
    no_place: int = 0
    dismissed: int = 0
    has_failed: bool = False
    examples: tuple[str, ...] = ()


def imports_in(tasks: Iterable[PlannedTask]) -> dict[str, Digest]:
    """The tasks that are imports, each with the object that it imports."""
    fields = set(ImportConfig.__struct_fields__)
    return {task.name: Digest(str(task.config["object"])) for task in tasks if task.config.keys() == fields}
