"""Definitions of tasks.

If the definition of a task has changed since the task was completed, the task is not current.
See SPEC.md "Unfinished tasks".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from codebatch.model.digest import digest_bytes
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.work_batch import InferredEdge, WorkEdge

_DIGEST_LENGTH = 16
# Limits do not change the result of a completed task. A title is only for people, unless a placeholder uses it.
_FIELDS_NOT_COVERED = frozenset(
    {
        "format",
        "id",
        "title",
        "timeout_seconds",
        "when_timeout_seconds",
        "stall_seconds",
        "grace_seconds",
        "memory_mb_max",
        "log_mb_max",
        "retry_if",
        "wait_if",
        "wait_exits",
    }
)
_TITLE_PLACEHOLDER = b"{title}"
_DEFAULT_COMMAND = Command(id=CommandId(""), run="")
_COVERED_FIELDS = [name for name in Command.__struct_fields__ if name not in _FIELDS_NOT_COVERED]


class TaskDefinition(NamedTuple):
    """A command, and the commands that it needs according to the task list. Inferred dependencies are not included."""

    command: Command
    needs: frozenset[CommandId]

    @property
    def digest(self) -> str:
        """The digest of all settings that can change the result.

        Fields with default values do not contribute. So the digest stays the same if a later version adds a field.
        """
        command = self.command
        covered = {name: getattr(command, name) for name in _COVERED_FIELDS}
        values = {name: value for name, value in covered.items() if value != getattr(_DEFAULT_COMMAND, name)}
        if command.tries:
            values["tries"] = [
                msgspec.structs.replace(command_try, timeout_seconds=None) for command_try in command.tries
            ]
        data = msgspec.json.encode([values, sorted(self.needs)], order="sorted")
        if _TITLE_PLACEHOLDER in data:
            data += command.title.encode()
        return digest_bytes(data)[:_DIGEST_LENGTH]


def explicit_needs(
    edges: Iterable[WorkEdge], inferred: Iterable[InferredEdge] = ()
) -> dict[CommandId, frozenset[CommandId]]:
    """Map each command to the commands that it needs. Inferred dependencies are left out."""
    inferred_pairs = {(inferred_edge.task, inferred_edge.on) for inferred_edge in inferred}
    needs: dict[CommandId, set[CommandId]] = {}
    for edge in edges:
        if edge.kind == "needs" and (edge.task, edge.on) not in inferred_pairs:
            needs.setdefault(edge.task, set()).add(edge.on)
    return {task: frozenset(on) for task, on in needs.items()}
