"""The start of a Python process. Every Python process of codebatch starts by `python_start` (tests/test_starts.py)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from codebatch.system.processes.import_path import (
    current_directory,
    installed_directories,
    safe_entries,
)

_LAUNCHER = Path(__file__).with_name("python_launcher.py")

# The variables that a new interpreter reads. All others whose names begin with PYTHON are set after its start: they may
# name modules, or directories from which modules are imported. (PYTHONWARNINGS names modules of warnings.)
_PLAIN_VARIABLES = (
    "PYTHONCOERCECLOCALE", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONNOUSERSITE",
    "PYTHONUTF8",
)  # fmt: skip
_PATH_VARIABLES = ("PYTHONHOME", "PYTHONPYCACHEPREFIX", "PYTHONUSERBASE")


class PythonStart(NamedTuple):
    """The command line and the environment of a Python process."""

    arguments: list[str]
    environment: dict[str, str]


def python_start(
    module: str, *arguments: str, environment: Mapping[str, str] | None, trees: Iterable[str] = ()
) -> PythonStart:
    """Return how to start a module of codebatch as the main program of a process, in any directory.

    Its module search path is that of this process, without the current directory and `trees` (import_path.py). The
    command line has removed the project of the current directory already. Once the module runs, `os.environ` is
    `environment`. If it is None, another program starts the process, which inherits the variables of that program. Then
    no variable of Python has an effect.
    """
    directory = current_directory()
    roots = [*map(os.path.abspath, trees)]
    installed = installed_directories()

    def is_safe(path: str) -> bool:
        return bool(safe_entries([path], roots, installed, directory))

    variables = {name: value for name, value in (environment or {}).items() if name.startswith("PYTHON")}
    read_at_start = {
        name
        for name, value in variables.items()
        if name in _PLAIN_VARIABLES or (name in _PATH_VARIABLES and is_safe(value))
    }
    later = {name: value for name, value in variables.items() if name not in read_at_start}
    path = safe_entries(sys.path, roots, installed, directory)
    settings = json.dumps({"path": path, "environment": later})
    # The other program may treat braces as placeholders.
    flags, settings = ([], settings) if environment is not None else (["-I"], settings.encode().hex())
    return PythonStart(
        [sys.executable, *flags, "-S", "-X", "utf8", str(_LAUNCHER), module, settings, *arguments],
        {name: value for name, value in (environment or {}).items() if name not in later},
    )


def restart_in_utf8_mode() -> NoReturn:
    """Replace this process by the same command line in UTF-8 mode. Does not return.

    The option `output-encoding` has the encoding of standard output, which stays that of the locale.
    """
    encoding = sys.stdout.encoding if sys.stdout else "ascii"
    options = ["-X", "utf8", "-X", f"output-encoding={encoding}"]
    os.execv(sys.executable, [sys.executable, *options, *sys.orig_argv[1:]])  # noqa: S606 - needs no shell
