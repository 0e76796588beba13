"""What callers may give. What would be answered falsely, or never, is refused with InvalidInput."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from codebatch.errors import InvalidInput
from codebatch.model.text.suggestions import did_you_mean


def refuse_unknown(noun: str, asked: Iterable[str], known: Collection[str]) -> None:
    """Refuse a value that is none of those there are."""
    for value in asked:
        if value not in known:
            raise InvalidInput(f"unknown {noun} {value!r}", hint=did_you_mean(value, known))


def refuse_below_one(**given: int | None) -> None:
    """Refuse a number below 1; None is whatever is the default."""
    for name, value in given.items():
        if value is not None and value < 1:
            raise InvalidInput(f"`{name}` must be at least 1, not {value}")


def refuse_text(**given: Iterable[str]) -> None:
    """Refuse one text where several are meant, of which it would be the letters."""
    for name, value in given.items():
        if isinstance(value, str):
            raise InvalidInput(
                f"`{name}` must be a tuple, not the str {value!r}", hint="for several values use a tuple"
            )


def path_of(given: str | Path) -> Path:
    """A path that can be asked for. The empty one is refused: it is an unset variable, not the current directory."""
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
