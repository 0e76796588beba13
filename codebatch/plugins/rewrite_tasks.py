"""Tasks that consist of rewrites, and the commands `verify` of tasks that propose changes (SPEC.md "Changes")."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.errors import InvalidConfiguration
from codebatch.model.task import TASK_NAME_PATTERN, JsonValue, RewriteTaskLocation

VERIFY_SETTING = "verify"
"""The setting of a task that is not part of its configuration, and so not of its key."""


def rewrite_task_location(name: str) -> RewriteTaskLocation:
    """Return the location of a task that consists of rewrites. Raises InvalidConfiguration if its name is invalid."""
    if not TASK_NAME_PATTERN.match(name):
        raise InvalidConfiguration(f"{name!r} is not a valid task name", hint="use lower-case letters, digits, - and _")
    return RewriteTaskLocation()


def verify_setting(name: str, settings: Mapping[str, JsonValue]) -> str:
    """Return the setting `verify` of a task. Raises InvalidConfiguration if it is not the text of a command."""
    command = settings[VERIFY_SETTING]
    if not isinstance(command, str) or "\0" in command or not command.strip():
        raise InvalidConfiguration(
            f"`verify` of the task {name!r} must be a shell command, not {command!r}",
            hint='for example: verify = "python -m compileall -q src"',
        )
    return command
