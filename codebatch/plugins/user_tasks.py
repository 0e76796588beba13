"""Tasks of the project that the user stands in: `python = "tools/x.py:task"` under `[tasks.NAME]` of its configuration.

What is named is a function `task(file)` or `task(file, config)`, which gives the records of a file; `config` is
annotated with a msgspec struct, the type of the task's configuration. One whose first parameter is called `project` is
of project scope: it is called once, after all tasks of `full` and all of yours that work on files, and gives records of
any files. The file is read once: its digest, into which the function's name goes, is that of what runs, and a worker
refuses one that changed since the plan was made. A coordinator reads it and never runs it (isolated_tasks.py). Nothing
is put on Python's path, so the file may import what is installed and nothing that lies beside it: the digest covers all
of the project's code that is run. What else it reads of the project, `files` must name: these are in the digest too.
`tools` are the distributions whose versions are in the key, of which the default is what is imported.
"""

from __future__ import annotations

import contextlib
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from codebatch.errors import Interrupted, InvalidConfiguration
from codebatch.model.digest import Digest, digest_bytes, digest_pairs
from codebatch.model.record import KINDS
from codebatch.model.task import TASK_NAME_PATTERN, Json, NoConfig, OwnPlace, TaskDeclaration
from codebatch.plugins.input_audit import InputAudit
from codebatch.system.files.regular_files import file_fingerprint, read_regular
from codebatch.system.processes.process_state import ProcessState

_PARAMETERS_MAX = 2
_FILE_BYTES_MAX = 16 << 20

SETTINGS = ("python", "tools", "files", "reuse")
"""What `[tasks.NAME]` of a local task says that is not its own configuration."""


def place_of(name: str, settings: Mapping[str, Json], project: Path) -> OwnPlace:
    """Where an own task lies, from what its `[tasks.NAME]` says. Raises InvalidConfiguration."""
    value = settings["python"]
    hint = f'write [tasks.{name}] python = "tools/{name}.py:task"'
    if not TASK_NAME_PATTERN.match(name):
        raise InvalidConfiguration(f"{name!r} is not a valid task name", hint="use lower-case letters, digits, - and _")
    path, _, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not path.endswith(".py") or not function.isidentifier():
        raise InvalidConfiguration(
            f"`python` of the task {name!r} is {value!r}, expected a file and a function", hint=hint
        )
    whole = (project / path).resolve()
    if not whole.is_relative_to(project.resolve()):
        raise InvalidConfiguration(f"the file of the task {name!r} is outside the project: {whole}", hint=hint)
    if not whole.is_file():
        raise InvalidConfiguration(f"the file of the task {name!r} does not exist: {whole}", hint=hint)
    try:
        tools = msgspec.convert(settings.get("tools"), tuple[str, ...] | None)
        files = {each: (project / each).resolve() for each in msgspec.convert(settings.get("files", ()), list[str])}
        reuse = msgspec.convert(settings.get("reuse", True), bool)
    except (ValueError, OSError) as error:  # A path with a NUL in it is the former.
        raise InvalidConfiguration(
            f"`tools`, `files` or `reuse` of the task {name!r}: {error}",
            hint='for example: files = ["tools/words.txt"]',
        ) from error
    for each, path_there in files.items():
        if not path_there.is_relative_to(project.resolve()):
            raise InvalidConfiguration(f"{each!r} of the task {name!r} is outside the project", hint=hint)
    return OwnPlace(
        python=f"{whole}:{function}",
        tools=tools,
        files={each: str(there) for each, there in sorted(files.items())},
        reuse=reuse,
        project=str(project.resolve()),
    )


class OwnSource(msgspec.Struct, frozen=True):
    """The file of an own task, read and not run. `digest` covers it, the function's name and the task's `files`.

    `named` are the modules that any import in it names, except those of the standard library and of codebatch.
    `imports` are those of them whose versions decide too. `states` are what the system said of each of the files before
    it was read, by its name in the configuration.
    """

    content: bytes
    digest: Digest
    named: frozenset[str]
    imports: tuple[str, ...]
    states: Mapping[str, tuple[int, ...]]

    def changed_file(self, place: OwnPlace) -> str | None:
        """One of the files that is not what it was when it was read for the digest; None where all are."""
        for called, there in place.files.items():
            with contextlib.suppress(OSError):
                if file_fingerprint(there) == self.states[called]:
                    continue
            return called
        return None


class OwnTask(msgspec.Struct, frozen=True):
    """A task of the project's, loaded."""

    source: OwnSource
    declaration: TaskDeclaration
    function: Callable[..., object]
    takes_config: bool


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Import a module of others. What it changes of the process is changed back, except the working directory.

    Raises ImportError if the module would end the process.
    """
    before = ProcessState()
    try:
        yield
    except (Exception, Interrupted):
        raise
    except BaseException as error:
        raise ImportError(
            f"it ends the process ({said(error)}): move that below `if __name__ == '__main__':`"
        ) from error
    finally:
        before.restore()


def said(error: BaseException) -> str:
    """An exception's kind and text, of whatever a task may raise: its text may be another exception."""
    import traceback  # 5 ms, of failures alone

    return traceback.format_exception_only(error)[-1].strip()


def read_own_source(name: str, place: OwnPlace) -> OwnSource:
    """Read the file at a place, and the `files` of the task. Nothing is run. Raises InvalidConfiguration."""
    path, _, attribute = place.python.rpartition(":")
    try:
        content = _read(path)
        states = {called: file_fingerprint(there) for called, there in place.files.items()}
        read = [(called, digest_bytes(_read(there))) for called, there in place.files.items()]
        named = frozenset(_imports(content))
    except Exception as error:
        raise _cannot_be_loaded(name, path, said(error)) from error
    return OwnSource(
        content=content,
        # The file itself has no name here: wherever it lies it is the same.
        digest=digest_pairs([(attribute, digest_bytes(content)), *read]),
        named=named,
        imports=tuple(sorted(named)) if place.tools is None else (),
        states=states,
    )


def load_own_task(name: str, place: OwnPlace, source: OwnSource, watch: InputAudit | None = None) -> OwnTask:
    """Run the file that was read from a place and take its function.

    The needs of a task of project scope are for its catalogue to add. `watch` hears what the file looks at. Raises
    InvalidConfiguration if it cannot be loaded.
    """
    import inspect  # 5 ms with what it imports, of who has tasks of their own

    path, _, attribute = place.python.rpartition(":")
    try:
        module = types.ModuleType(f"codebatch_own_{name}")
        module.__file__ = path
        sys.modules[module.__name__] = module  # Where its classes look for it, and what clears it at the very end.
        code = compile(source.content, path, "exec", dont_inherit=True)
        with importing():
            if watch is None:
                exec(code, module.__dict__)  # noqa: S102  # the user's own file
            else:
                watch.during(name, exec, code, module.__dict__)
        function = getattr(module, attribute)
        parameters = list(inspect.signature(function).parameters)
        if not 1 <= len(parameters) <= _PARAMETERS_MAX:
            raise TypeError(f"{attribute} must take a file or the project, and optionally a configuration")
        is_of_project = parameters[0] == "project"
        takes_config = len(parameters) == _PARAMETERS_MAX
        config = NoConfig if not takes_config else typing.get_type_hints(function).get(parameters[1])
        if not (isinstance(config, type) and issubclass(config, msgspec.Struct)):
            raise TypeError(f"`{parameters[1]}` of {attribute} must be annotated with a msgspec.Struct")
    except Exception as error:
        raise _cannot_be_loaded(name, path, said(error)) from error
    declaration = TaskDeclaration(
        name=name,
        version="1",
        summary=(inspect.getdoc(function) or place.python).split("\n")[0],
        implementation=place.python,
        records=KINDS,
        scope="project" if is_of_project else "file",
        needs=("parse",),
        config=config,
        tools=place.tools or (),
    )
    return OwnTask(source, declaration, function, takes_config)


def _cannot_be_loaded(name: str, path: str, why: str) -> InvalidConfiguration:
    return InvalidConfiguration(f"the task {name!r} cannot be loaded from {path}: {why}")


def _read(path: str) -> bytes:
    return read_regular(Path(path), bytes_max=_FILE_BYTES_MAX, is_link_followed=True)


def _imports(source: bytes) -> set[str]:
    """The modules at the top that any import in a source names, but for ours and those that come with Python."""
    import ast

    named: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            named.add(node.module or "")
    tops = {name.partition(".")[0] for name in named}
    return tops - sys.stdlib_module_names - {"", "codebatch", "codebatch_workers"}
