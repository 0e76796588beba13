"""The environment of the programs that codebatch starts for users, and the directories in which it finds programs.

The environment is that of this process, with two differences. Changes that Python made are undone. The jobserver of GNU
make is removed if programs cannot reach it: its pipe is open only in this process, and make would warn and run one job
at a time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

_LOCALE_VARIABLE = "LC_CTYPE"
_COERCED_LOCALES = {"C.UTF-8", "C.utf8", "UTF-8"}
_MAKE_VARIABLES = ("MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS")
_JOBSERVER_OPTIONS = ("--jobserver-auth=", "--jobserver-fds=")
_FIFO_PREFIX = "fifo:"


def original_environment() -> dict[str, str]:
    """Return the environment with which this process was started, without a jobserver that other processes lack.

    LC_CTYPE is omitted if Python set it (PEP 538) to replace the C locale. Programs such as `sort` and `grep` would
    produce other output with it.
    """
    variables = without_jobserver(os.environ)
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


def without_jobserver(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the options of GNU make for a jobserver whose pipe has to be inherited.

    The number of jobs is removed too, because it is that of the outer make. A jobserver with a FIFO (make 4.4) stays
    while the FIFO exists.
    """
    variables = dict(environment)
    for name in _MAKE_VARIABLES:
        options, separator, definitions = variables.get(name, "").partition(" -- ")
        words = options.split(" ")
        servers = [word.partition("=")[2] for word in words if word.startswith(_JOBSERVER_OPTIONS)]
        if servers and not all(map(_is_fifo, servers)):
            kept = [word for word in words if not word.startswith((*_JOBSERVER_OPTIONS, "-j"))]
            variables[name] = " ".join(kept) + separator + definitions
    return variables


def _is_fifo(server: str) -> bool:
    try:
        return server.startswith(_FIFO_PREFIX) and stat.S_ISFIFO(os.stat(server.removeprefix(_FIFO_PREFIX)).st_mode)
    except (OSError, ValueError):
        return False
