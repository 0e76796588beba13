"""Work of isolated tasks that their change sets do not record."""

from __future__ import annotations

import pytest

from codebatch.model.record import CommandReason
from codebatch.model.work.command import CommandId
from codebatch.query.status.unrecorded_work import has_unknown_changes
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState


@pytest.mark.parametrize(
    ("reason", "exit_status", "is_unknown"),
    [
        ("check", None, True),
        ("check", 1, False),  # The command `check` of the task failed.
        ("start", None, False),  # It has no changes.
        ("exit", 1, False),
    ],
)
def test_changes_are_unknown_if_they_could_not_be_recorded(
    reason: CommandReason, exit_status: int | None, is_unknown: bool
) -> None:
    command = CommandStatus(
        id=CommandId("a"), item=0, state=CommandState.FAILED, reason=reason, exit_status=exit_status
    )
    assert has_unknown_changes(command) is is_unknown
