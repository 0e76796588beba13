"""What the code that workers run knows of findings: whether a rule is off at a path, whether a note silences it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from codebatch.errors import CodebatchError
from codebatch.model.plan import PlannedTask
from codebatch.model.task import Json
from codebatch.protocol.launch import SILENCING_MODULE
from codebatch.system.plugins import load_question

# How notes begin that silence something: ours, and what ruff heeds.
_NOTES = (b"codebatch: ignore", b"noqa")
# The task whose rules can be turned off.
_TASK = "lint"

Switch = Callable[[bytes, str, str], bool | None]


def switch_of(task: PlannedTask) -> Switch | None:
    """Whether a task's configuration has a rule off, asked with a path, a tool and a code; None of what it has not.

    None at all where all it has is on, or what it was configured with is not understood any more.
    """
    if task.name != _TASK:
        return None
    ask = cast("Callable[[Mapping[str, Json]], Switch | None]", load_question("rule_switch", SILENCING_MODULE))
    return ask(task.config)


def has_notes(content: bytes) -> bool:
    """Whether a file may have a note that silences something."""
    return any(note in content for note in _NOTES)


def are_silenced(
    path: bytes, content: bytes, contexts: Mapping[str, bytes], findings: Sequence[tuple[int, str, str]]
) -> list[bool]:
    """Which findings a note in a file silences, each given as line, tool and code.

    Where the file is not understood any more none is.
    """
    ask = cast(
        "Callable[[bytes, bytes, Mapping[str, bytes], Sequence[tuple[int, str, str]]], list[bool]]",
        load_question("are_silenced", SILENCING_MODULE),
    )
    try:
        return ask(path, content, contexts, findings)
    except CodebatchError:
        return [False] * len(findings)
