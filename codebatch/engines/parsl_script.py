"""A script of Parsl in a process that imports no module of the analysed tree.

The command is `python -m codebatch.engines.parsl_script PARENT SCRIPT ARGUMENT...`. PARENT is empty for a pool of
workers. For the interchange, it is the pid of the coordinator. The interchange would outlive it; without an
interchange, workers end themselves. The interchange reads messages of workers, so it rejects foreign objects.
"""

from __future__ import annotations

import functools
import importlib
import pickle
import runpy
import sys
from typing import IO

from codebatch.coordinator.engines.foreign_objects import refuse_foreign_objects
from codebatch.system.processes.processes import die_with_parent


class _ConfigurationReader(pickle.Unpickler):
    """A reader of the configuration, which the coordinator sends on standard input. It may name any class."""

    def find_class(self, module: str, name: str) -> object:
        """Return a class or function."""
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def _load_configuration(file: IO[bytes]) -> object:
    return _ConfigurationReader(file).load()


def run_script(parent: str, script: str, arguments: list[str]) -> None:
    """Run a script of Parsl as the main program."""
    if parent:
        die_with_parent(int(parent))
        refuse_foreign_objects()
        vars(pickle)["load"] = _load_configuration
    sys.argv[:] = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    run_script(sys.argv[1], sys.argv[2], sys.argv[3:])
