"""Custom tasks of the current project: `python = "tools/x.py:task"` under `[tasks.NAME]` of its configuration.

The setting names a function `task(file)` or `task(file, config)`, which returns the records of a file. The annotation
of `config` is a msgspec struct, the type of the task's configuration. If the first parameter is named `project`, the
task has project scope. Then the function is called once, after all tasks of the pipeline `full` and all custom tasks of
file scope, and returns records of any files.

The file with the function is read once. The digest of its bytes and of the function's name identifies the code that is
run. If the file has changed since the plan was made, a worker rejects it. A coordinator reads the file and never runs
it (isolated_tasks.py).

The digest must cover all code of the project that is run. So Python's path is not changed: the file can import
installed modules, but no modules from its own directory. Other files that the function reads must be listed in `files`,
so that the digest covers them too. `tools` are the distributions whose versions are in the cache key, by default the
distributions of imported modules.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from codebatch.errors import Interrupted, InvalidConfiguration
from codebatch.model.digest import Digest, digest_bytes, digest_pairs
from codebatch.model.record import RECORD_KINDS
from codebatch.model.task import TASK_NAME_PATTERN, CustomTaskLocation, JsonValue, NoConfig, TaskDeclaration
from codebatch.plugins.input_audit import InputAudit
from codebatch.system.files.regular_files import file_fingerprint, read_regular
from codebatch.system.processes.process_state import ProcessState

_FUNCTION_PARAMETERS_MAX = 2
CUSTOM_FILE_BYTES_MAX = 16 << 20

LOCATION_SETTINGS = ("python", "tools", "files", "reuse")
"""The settings in `[tasks.NAME]` that codebatch itself uses.

All other settings are the configuration of the custom task.
"""


def custom_task_location(name: str, settings: Mapping[str, JsonValue], project: Path) -> CustomTaskLocation:
    """Return the location of a custom task from its settings in `[tasks.NAME]`. Raises InvalidConfiguration."""
    value = settings["python"]
    hint = f'write [tasks.{name}] python = "tools/{name}.py:task"'
    if not TASK_NAME_PATTERN.match(name):
        raise InvalidConfiguration(f"{name!r} is not a valid task name", hint="use lower-case letters, digits, - and _")
    path, _, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not path.endswith(".py") or not function.isidentifier():
        raise InvalidConfiguration(
            f"`python` of the task {name!r} must be a file and a function, not {value!r}", hint=hint
        )
    file = (project / path).resolve()
    if not file.is_relative_to(project.resolve()):
        raise InvalidConfiguration(f"the file of the task {name!r} is outside the project: {file}", hint=hint)
    if not file.is_file():
        raise InvalidConfiguration(f"the file of the task {name!r} does not exist: {file}", hint=hint)
    try:
        tools = msgspec.convert(settings.get("tools"), tuple[str, ...] | None)
        files = {key: (project / key).resolve() for key in msgspec.convert(settings.get("files", ()), list[str])}
        reuse = msgspec.convert(settings.get("reuse", True), bool)
    except (ValueError, OSError) as error:  # A path that contains NUL raises ValueError.
        raise InvalidConfiguration(
            f"invalid `tools`, `files` or `reuse` of the task {name!r}: {error}",
            hint='for example: files = ["tools/words.txt"]',
        ) from error
    for key, file_path in files.items():
        if not file_path.is_relative_to(project.resolve()):
            raise InvalidConfiguration(f"{key!r} of the task {name!r} is outside the project", hint=hint)
    return CustomTaskLocation(
        python=f"{file}:{function}",
        tools=tools,
        files={key: str(file_path) for key, file_path in sorted(files.items())},
        reuse=reuse,
        project=str(project.resolve()),
    )


class CustomTaskSource(msgspec.Struct, frozen=True):
    """The file of a custom task, read but not run.

    - `digest`: covers the file, the name of the function and the `files` of the task.
    - `named`: all modules that the file imports, even inside functions, except the standard library and codebatch.
    - `imports`: the modules in `named` whose versions affect the result.
    - `states`: maps the names of `files` in the configuration to fingerprints of these files, taken before they were
      read.
    - `may_change_files`: whether the code has an attribute or name with which changes of files are proposed.
    """

    content: bytes
    digest: Digest
    named: frozenset[str]
    imports: tuple[str, ...]
    states: Mapping[str, tuple[int, ...]]
    may_change_files: bool

    def changed_file(self, place: CustomTaskLocation) -> str | None:
        """Return one of the `files` that has changed since it was read for the digest, or None."""
        for key, file_path in place.files.items():
            with contextlib.suppress(OSError):
                if file_fingerprint(file_path) == self.states[key]:
                    continue
            return key
        return None


class CustomTask(msgspec.Struct, frozen=True):
    """A custom task that was loaded: its function and its declaration."""

    source: CustomTaskSource
    declaration: TaskDeclaration
    function: Callable[..., object]
    takes_config: bool


@contextlib.contextmanager
def restoring_process_state() -> Iterator[None]:
    """Import foreign modules inside the `with`. At its end, restore the process state, except the working directory.

    Raises ImportError if a module would end the process.
    """
    state_before = ProcessState()
    try:
        yield
    except (Exception, Interrupted):
        raise
    except BaseException as error:
        raise ImportError(
            f"it ends the process ({exception_text(error)}): move that below `if __name__ == '__main__':`"
        ) from error
    finally:
        state_before.restore()


def exception_text(error: BaseException) -> str:
    """Return the type and the text of an exception, even if its conversion to text raises another exception."""
    return traceback.format_exception_only(error)[-1].strip()


def read_custom_task_source(name: str, place: CustomTaskLocation) -> CustomTaskSource:
    """Read the file of a custom task and its `files`, without running any code. Raises InvalidConfiguration."""
    path, _, attribute = place.python.rpartition(":")
    try:
        content = _read_task_file(path)
        states = {key: file_fingerprint(file_path) for key, file_path in place.files.items()}
        digests = [(key, digest_bytes(_read_task_file(file_path))) for key, file_path in place.files.items()]
        tree = ast.parse(content)
    except Exception as error:
        raise _loading_error(name, path, exception_text(error)) from error
    named = frozenset(_imported_modules(tree))
    return CustomTaskSource(
        content=content,
        # The path of the file is not included, so the digest does not depend on its location.
        digest=digest_pairs([(attribute, digest_bytes(content)), *digests]),
        named=named,
        imports=tuple(sorted(named)) if place.tools is None else (),
        states=states,
        may_change_files=any(map(_can_propose_change, ast.walk(tree))),
    )


def load_custom_task(
    name: str, place: CustomTaskLocation, source: CustomTaskSource, watch: InputAudit | None = None
) -> CustomTask:
    """Run the file of a custom task. Return its function and declaration.

    If it has project scope, the catalogue adds the tasks that it needs. `watch` audits what the file reads. Raises
    InvalidConfiguration if it cannot be loaded.
    """
    path, _, attribute = place.python.rpartition(":")
    try:
        module = types.ModuleType(f"codebatch_own_{name}")
        module.__file__ = path
        # Python looks up the module of a class in sys.modules. The entry also keeps the module alive until the process
        # ends.
        sys.modules[module.__name__] = module
        code = compile(source.content, path, "exec", dont_inherit=True)
        with restoring_process_state():
            if watch is None:
                exec(code, module.__dict__)  # noqa: S102  # The user configured this file.
            else:
                watch.audit_call(name, exec, code, module.__dict__)
        function = getattr(module, attribute)
        parameters = list(inspect.signature(function).parameters)
        if not 1 <= len(parameters) <= _FUNCTION_PARAMETERS_MAX:
            raise TypeError(f"{attribute} must take a file or the project, and optionally a configuration")
        is_of_project = parameters[0] == "project"
        takes_config = len(parameters) == _FUNCTION_PARAMETERS_MAX
        config = NoConfig if not takes_config else typing.get_type_hints(function).get(parameters[1])
        if not (isinstance(config, type) and issubclass(config, msgspec.Struct)):
            raise TypeError(f"`{parameters[1]}` of {attribute} must be annotated with a msgspec.Struct")
    except Exception as error:
        raise _loading_error(name, path, exception_text(error)) from error
    declaration = TaskDeclaration(
        name=name,
        version="1",
        summary=(inspect.getdoc(function) or place.python).split("\n")[0],
        implementation=place.python,
        records=RECORD_KINDS,
        scope="project" if is_of_project else "file",
        needs=("parse",),
        config=config,
        tools=place.tools or (),
    )
    return CustomTask(source, declaration, function, takes_config)


def _loading_error(name: str, path: str, why: str) -> InvalidConfiguration:
    return InvalidConfiguration(f"the task {name!r} cannot be loaded from {path}: {why}")


def _read_task_file(path: str) -> bytes:
    return read_regular(Path(path), bytes_max=CUSTOM_FILE_BYTES_MAX, is_link_followed=True)


def _can_propose_change(node: ast.AST) -> bool:
    """Return whether a node is `file.change` or the import of the record type for changes."""
    match node:
        case ast.Attribute(attr="change" | "FileChange") | ast.alias(name="FileChange"):
            return True
        case _:
            return False


def _imported_modules(tree: ast.Module) -> set[str]:
    """Return the top-level modules that a source file imports, even inside functions.

    codebatch and the standard library are omitted.
    """
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            named.add(node.module or "")
    tops = {name.partition(".")[0] for name in named}
    return tops - sys.stdlib_module_names - {"", "codebatch", "codebatch_workers"}
