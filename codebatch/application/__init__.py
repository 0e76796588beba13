"""What a user of codebatch can have done: use cases, called by the command line, by `import codebatch` and by views.

They take plain values, return typed results, raise CodebatchErrors and print nothing. What is worth knowing and is no
result goes to a callback, as one sentence.
"""

from __future__ import annotations

from collections.abc import Callable

Note = Callable[[str], None]


def ignore_note(text: str) -> None:
    """For whoever wants no notes."""
