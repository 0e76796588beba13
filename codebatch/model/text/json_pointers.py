"""JSON pointers (RFC 6901)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import UNSET

POINTER_PATTERN = re.compile("(?:/(?:[^~/]|~[01])*)*")

EVERY_ELEMENT = "*"
"""A step that means every element of an array. The RFC does not have this step."""

_STEP = re.compile("/([^/]*)")


def pointer_steps(pointer: str) -> tuple[str, ...]:
    """Return the names and indexes in a pointer. An empty pointer has none."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in _STEP.findall(pointer))


def resolve_steps(value: object, steps: Sequence[str]) -> object:
    """Return the value at some steps below a decoded JSON value, or UNSET if there is none."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step, UNSET)
        elif isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 10:
            value = value[int(step)] if int(step) < len(value) else UNSET
        else:
            return UNSET
    return value
