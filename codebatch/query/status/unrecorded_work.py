"""Work of isolated tasks of a task list that their change sets do not record."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from codebatch.errors import StoreCorrupt
from codebatch.model.change import UnrecordedPath, UnrecordedReason, unrecorded_text
from codebatch.model.entry import PathMembers, path_fields
from codebatch.model.text.quantities import count_text
from codebatch.model.work.command import CommandId
from codebatch.query.status.work_status import CommandStatus
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.change_sets import read_change_set


class UnrecordedRow(PathMembers, frozen=True, kw_only=True):
    """A path with changes of a task that its change set does not record.

    `reason`: `ignored` by ignore files, `repository`, a changed `submodule`, a `special` file, a name that is
    `reserved` by git, or a changed `type` with equal content.
    """

    task: str
    reason: UnrecordedReason

    @property
    def is_lost(self) -> bool:
        """Whether work is missing from the change set."""
        return UnrecordedPath(path=self.path_bytes, reason=self.reason).is_lost


def make_unrecorded_rows(task: str, paths: Iterable[UnrecordedPath]) -> list[UnrecordedRow]:
    """Return a row for each path."""
    rows: list[UnrecordedRow] = []
    for each in paths:
        text, encoded = path_fields(each.path)
        rows.append(UnrecordedRow(path=text, path_b64=encoded, task=task, reason=each.reason))
    return rows


def read_unrecorded_work(
    store: StoreDir, commands: Sequence[CommandStatus]
) -> dict[CommandId, tuple[UnrecordedPath, ...]]:
    """Return the paths with work that is missing from the change sets of tasks, for each such task.

    If a change set is damaged, its paths are unknown, and the tuple is empty.
    """
    lost: dict[CommandId, tuple[UnrecordedPath, ...]] = {}
    for command in commands:
        if command.unrecorded:
            lost[command.id] = ()
            with contextlib.suppress(StoreCorrupt):
                lost[command.id] = read_change_set(store.objects(), command.changes).lost
    return lost


def has_unknown_changes(command: CommandStatus) -> bool:
    """Return whether the changes of a task could not be recorded, so that it failed. Its tree is kept."""
    return command.reason == "check" and command.exit_status is None


def unrecorded_work_text(count: int, paths: Sequence[UnrecordedPath] = ()) -> str:
    """Return as text what is not recorded: the first paths, or only their number."""
    return f"not recorded: {unrecorded_text(paths) if paths else count_text(count, 'path')}"
