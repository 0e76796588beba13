"""The environment that this process was given, as opposed to what Python made of it."""

from __future__ import annotations

import os
from pathlib import Path

_LOCALE = "LC_CTYPE"
_COERCED = {"C.UTF-8", "C.utf8", "UTF-8"}


def given_environment() -> dict[str, str]:
    """Our environment without the locale that Python itself puts there where it finds none (PEP 538).

    Whoever gets it may be told another one: `sort` and `grep` would answer otherwise.
    """
    found = dict(os.environ)
    if found.get(_LOCALE) in _COERCED:
        try:
            given = Path("/proc/self/environ").read_bytes()
        except OSError:
            return found
        if not any(variable.startswith(b"LC_CTYPE=") for variable in given.split(b"\0")):
            del found[_LOCALE]
    return found
