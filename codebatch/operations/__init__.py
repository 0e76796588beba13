"""What a user of codebatch can have done: use cases, called by the command line, by `import codebatch` and by views.

They take plain values, return typed results, raise CodebatchErrors and print nothing. What is worth knowing and is no
result goes to a callback, as one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from codebatch.coordinator.analysis.progress_counter import Phase

Note = Callable[[str], None]


class TellPhase(Protocol):
    """A receiver of the present phase and of its progress: `done` of `planned` things, both 0 if unknown."""

    def __call__(self, phase: Phase, done: int = 0, planned: int = 0, things: str = "files") -> None: ...


def ignore_phase(phase: Phase, done: int = 0, planned: int = 0, things: str = "files") -> None:
    """For whoever does not look."""


def ignore_note(text: str) -> None:
    """For whoever wants no notes."""
