"""Use cases of codebatch. Callers are the command line, programs that import codebatch, and HTML views.

Use cases take plain values, return typed results, raise CodebatchErrors and print nothing. Information that is not part
of a result is passed to a callback as one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from codebatch.coordinator.analysis.progress_counter import RunPhase

NoteCallback = Callable[[str], None]


class PhaseCallback(Protocol):
    """A callback that receives the current phase of a command and its progress.

    `done` of `planned` units of work are finished. `unit` names the units, for example `files`. Both numbers are 0 if
    unknown.
    """

    def __call__(self, phase: RunPhase, done: int = 0, planned: int = 0, unit: str = "files") -> None: ...


def ignore_phase(phase: RunPhase, done: int = 0, planned: int = 0, unit: str = "files") -> None:
    """Do nothing. The default for a parameter that takes a PhaseCallback."""


def ignore_note(text: str) -> None:
    """Do nothing. The default for a parameter that takes a function for notes."""
