"""Checks of arguments. InvalidInput is raised for values that would give a wrong or useless answer."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from codebatch.errors import InvalidInput
from codebatch.model.text.suggestions import did_you_mean_text


def refuse_unknown(noun: str, values: Iterable[str], known: Collection[str]) -> None:
    """Raise InvalidInput if a value is not in `known`. The hint suggests the most similar known value."""
    for value in values:
        if value not in known:
            raise InvalidInput(f"unknown {noun} {value!r}", hint=did_you_mean_text(value, known))


def refuse_numbers_below_one(**arguments: int | None) -> None:
    """Raise InvalidInput for a number less than 1. None is accepted; it selects the default."""
    for name, value in arguments.items():
        if value is not None and value < 1:
            raise InvalidInput(f"`{name}` must be at least 1, not {value}")


def refuse_invalid_texts(**arguments: Iterable[str]) -> None:
    """Raise InvalidInput if an argument for several texts is a single text.

    A single text would be iterated character by character.
    """
    for name, value in arguments.items():
        if isinstance(value, str):
            raise InvalidInput(
                f"`{name}` must be a tuple, not the str {value!r}", hint="for several values use a tuple"
            )


def path_argument(given: str | Path) -> Path:
    """Return a path argument as a Path. Raises InvalidInput if it is not a valid path.

    An empty path is refused: it is more likely an unset variable than a name for the current directory.
    """
    text = str(given)
    if not text:
        raise InvalidInput("a path is empty", hint="check whether a shell variable in the command is empty")
    try:
        is_path = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        raise InvalidInput(f"{text!r} is not a valid path")
    return Path(given)
