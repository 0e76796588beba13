"""The environment with which this process was started, and the directories in which it finds programs."""

from __future__ import annotations

import os
from pathlib import Path

_LOCALE_VARIABLE = "LC_CTYPE"
_COERCED_LOCALES = {"C.UTF-8", "C.utf8", "UTF-8"}


def original_environment() -> dict[str, str]:
    """Return the environment with which this process was started. LC_CTYPE is omitted if Python set it (PEP 538).

    Python sets it to replace the C locale. Programs such as `sort` and `grep` would produce other output with it.
    """
    variables = dict(os.environ)
    if variables.get(_LOCALE_VARIABLE) in _COERCED_LOCALES:
        try:
            initial = Path("/proc/self/environ").read_bytes()
        except OSError:
            return variables
        if not any(variable.startswith(b"LC_CTYPE=") for variable in initial.split(b"\0")):
            del variables[_LOCALE_VARIABLE]
    return variables


def program_directories() -> list[str]:
    """Return the directories of PATH, without relative and empty ones: they may lead into an untrusted tree."""
    return [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(entry)]
