"""Tasks of the project that the user stands in: `python = "tools/x.py:task"` under `[tasks.NAME]` of its configuration.

What is named is a function `task(file)` or `task(file, config)`, which gives the records of a file; `config` is
annotated with a msgspec struct, the type of the task's configuration. One whose first parameter is called `project` is
of project scope: it is called once, after all tasks of `full` and all of yours that work on files, and gives records of
any files. The file is read once: its digest is that of what runs, and a worker refuses one that changed since the plan
was made. Nothing is put on Python's path, so the file may import what is installed and nothing that lies beside it: the
digest covers all of the project's code that is run.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from codebatch.errors import Interrupted, InvalidConfiguration
from codebatch.model.digest import Digest
from codebatch.model.record import KINDS
from codebatch.model.task import TASK_NAME_PATTERN, NoConfig, TaskDeclaration
from codebatch.system.regular import read_regular

_PARAMETERS_MAX = 2
_STDOUT = 1
_STDERR = 2
_FILE_BYTES_MAX = 16 << 20


def place_of(name: str, value: object, project: Path) -> str:
    """Where an own task lies, from its `python` setting. Raises InvalidConfiguration."""
    hint = f'write [tasks.{name}] python = "tools/{name}.py:task"'
    if not TASK_NAME_PATTERN.match(name):
        raise InvalidConfiguration(f"{name!r} is no name for a task", hint="small letters, digits, - and _")
    path, _, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not path.endswith(".py") or not function.isidentifier():
        raise InvalidConfiguration(f"`python` of the task {name!r} is {value!r}, no file and function", hint=hint)
    whole = (project / path).resolve()
    if not whole.is_relative_to(project.resolve()):
        raise InvalidConfiguration(f"the task {name!r} lies outside of the project: {whole}", hint=hint)
    if not whole.is_file():
        raise InvalidConfiguration(f"the task {name!r} is to be in {whole}, which is no file", hint=hint)
    return f"{whole}:{function}"


class OwnTask(typing.NamedTuple):
    """A task of the project's, loaded."""

    declaration: TaskDeclaration
    function: Callable[..., object]
    takes_config: bool
    digest: Digest


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Around the import of a task's module, which may do anything: what it prints is no answer of ours.

    Raises ImportError where it would end the process.
    """
    streams = sys.stdout, sys.stderr
    answers = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        with open(_STDERR, "w", errors="backslashreplace", closefd=False) as sys.stdout:
            yield
    except (Exception, Interrupted):
        raise
    except BaseException as error:
        raise ImportError(
            f"it ends the process ({said(error)}): put that below `if __name__ == '__main__':`"
        ) from error
    finally:
        sys.stdout, sys.stderr = streams
        os.dup2(answers, _STDOUT)
        os.close(answers)


def said(error: BaseException) -> str:
    """An exception's kind and text, of whatever a task may raise: its text may be another exception."""
    import traceback  # 5 ms, of failures alone

    return traceback.format_exception_only(error)[-1].strip()


def load_own_task(name: str, place: str) -> OwnTask:
    """Run the file at a place and take its function. One of project scope needs what its catalogue says.

    Raises InvalidConfiguration where it cannot be loaded.
    """
    path, _, attribute = place.rpartition(":")
    try:
        source = read_regular(Path(path), bytes_max=_FILE_BYTES_MAX, is_link_followed=True)
        module = types.ModuleType(f"codebatch_own_{name}")
        module.__file__ = path
        code = compile(source, path, "exec", dont_inherit=True)
        with importing():
            exec(code, module.__dict__)  # noqa: S102  # the user's own file
        function = getattr(module, attribute)
        parameters = list(inspect.signature(function).parameters)
        if not 1 <= len(parameters) <= _PARAMETERS_MAX:
            raise TypeError(f"{attribute} must take a file or the project, and if it wants a configuration")
        is_of_project = parameters[0] == "project"
        takes_config = len(parameters) == _PARAMETERS_MAX
        config = NoConfig if not takes_config else typing.get_type_hints(function).get(parameters[1])
        if not (isinstance(config, type) and issubclass(config, msgspec.Struct)):
            raise TypeError(f"`{parameters[1]}` of {attribute} must be annotated with a msgspec.Struct")
    except Exception as error:
        raise InvalidConfiguration(f"the task {name!r} cannot be loaded from {path}: {said(error)}") from error
    declaration = TaskDeclaration(
        name=name,
        version="1",
        summary=(inspect.getdoc(function) or place).split("\n")[0],
        implementation=place,
        records=KINDS,
        scope="project" if is_of_project else "file",
        needs=("parse",),
        config=config,
    )
    return OwnTask(declaration, function, takes_config, Digest(hashlib.sha256(source).hexdigest()))
