"""Use cases of codebatch. Callers are the command line, programs that import codebatch, and HTML views.

Use cases take plain values, return typed results, raise CodebatchErrors and print nothing. Information that is not part
of a result is passed to a callback as one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from codebatch.coordinator.analysis.progress_counter import Phase

Note = Callable[[str], None]


class PhaseCallback(Protocol):
    """A callback that receives the current phase and its progress: `done` of `planned` things, both 0 if unknown."""

    def __call__(self, phase: Phase, done: int = 0, planned: int = 0, unit: str = "files") -> None: ...


def ignore_phase(phase: Phase, done: int = 0, planned: int = 0, unit: str = "files") -> None:
    """Ignore the phase and its progress. The default callback."""


def ignore_note(text: str) -> None:
    """Ignore a note. The default callback."""
