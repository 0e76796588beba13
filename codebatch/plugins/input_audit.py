"""Audit for inputs of custom tasks that their cache keys do not cover. It uses Python's audit events (PEP 578).

A process has one audit hook. It is active while a custom task runs: while its module is executed or its function is
called. An event is either the access to a path, or an action whose input is unknown, such as the start of another
process, a connection or a call of C code. A path is either covered by the task's key or not (key_coverage.py).

A module may store what it read in a variable. So after a task's first input that is not covered, all its later results
in this process may depend on this input. Its earlier results do not. Audit hooks cannot be removed.

A module is executed only once in a process. So its files count for each task that imports it. If files are read while
the code of a module runs, they count for each task that imports this module.

Python has no events for stat(2), the environment, clocks, random numbers, shared memory, and files opened by C code.
"""

from __future__ import annotations

import os
import sys
from _thread import _count as count_threads
from _thread import get_ident
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Events that read, list or rename files. For each, the index of the path among its arguments.
_PATH_ARGUMENT_BY_EVENT = {
    "open": 0,
    "import": 1,
    "os.listdir": 0,
    "os.scandir": 0,
    "os.getxattr": 0,
    "os.listxattr": 0,
    "os.link": 0,
    "os.rename": 0,
    "ctypes.dlopen": 0,
}
# Events of actions with unknown input: external input, and code that the hook does not observe, such as other
# processes, interpreters and C code.
_UNOBSERVABLE_EVENTS = frozenset(
    {
        "builtins.input",
        "cpython.PyInterpreterState_New",
        "ctypes.call_function",
        "ctypes.dlsym/handle",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.gethostname",
        "socket.getnameinfo",
        "socket.getservbyname",
        "socket.getservbyport",
        "socket.sendmsg",
        "socket.sendto",
        "subprocess.Popen",
    }
)
_AUDITED_EVENTS = (
    _UNOBSERVABLE_EVENTS | _PATH_ARGUMENT_BY_EVENT.keys() | {"ctypes.dlsym", "os.mkdir", "sqlite3.connect"}
)
_SPAWN_MODULE = "multiprocessing.popen_spawn"
_RUNNING_THREAD_INPUT = "a thread that goes on"
# If these modules list a directory, they search for a module or, on Python's path, for a distribution. This is no
# input: files that they find are opened later, and the opening is audited.
_IMPORT_MODULES = frozenset({"importlib._bootstrap_external", "_frozen_importlib_external"})
_METADATA_MODULE = "importlib.metadata"


class PathCoverage(Protocol):
    """The paths that the cache key of a task covers. Paths are absolute and without links."""

    def has(self, path: str) -> bool:
        """Return whether the key covers the content of a file or directory."""

    def displayed_path(self, path: str) -> str:
        """Return the path as relative text for people."""


class InputAudit:
    """An audit of the inputs of custom tasks."""

    def __init__(self, store: str) -> None:
        """Install the hook. Files in the store that other threads open are ignored: these threads are codebatch's."""
        self._store = os.path.realpath(store)
        self._path = frozenset(map(os.path.realpath, sys.path))
        self._thread = get_ident()
        self._threads_in_hook: set[int] = set()
        self._current_task: str | None = None
        self._coverage: dict[str, PathCoverage] = {}
        self._imports: dict[str, frozenset[str]] = {}
        self._modules: list[tuple[frozenset[str], str]] = []
        self._checked_files: dict[str, set[str]] = {}
        self._load_inputs: dict[str, list[tuple[str, str]]] = {}
        self._created_paths: dict[str, set[str]] = {}
        self._uncovered_inputs: dict[str, str] = {}
        self._install_hook()

    def first_uncovered_input(self, task: str) -> str:
        """Return the first input of a task that its key does not cover, such as `open tools/words.txt`.

        Return an empty string if there is none.
        """
        if task in self._coverage and task not in self._uncovered_inputs:
            self._check_loaded_modules(task)
        return self._uncovered_inputs.get(task, "")

    def audit_call(self, task: str, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call `call`, which runs code of a custom task, and audit the inputs of this task meanwhile."""
        previous_task, self._current_task = self._current_task, task
        threads = count_threads()
        try:
            return call(*arguments, **options)
        finally:
            self._current_task = previous_task
            if count_threads() > threads:
                self._uncovered_inputs.setdefault(task, _RUNNING_THREAD_INPUT)

    def set_coverage(self, task: str, coverage: PathCoverage, imports: frozenset[str]) -> None:
        """Set the coverage of a task's key.

        Inputs that were recorded while the task was loaded are compared with it now. `imports` are the modules that the
        task imports and that are loaded from files.
        """
        self._coverage[task] = coverage
        self._imports[task] = imports
        for event, path in self._load_inputs.pop(task, ()):
            self._check_path(task, event, path)

    def _install_hook(self) -> None:
        def audit_hook(event: str, arguments: tuple[object, ...]) -> None:
            task = self._current_task
            if task is None or event not in _AUDITED_EVENTS or task in self._uncovered_inputs:
                return
            thread = get_ident()
            if thread in self._threads_in_hook:
                return  # The audit's own code caused the event.
            self._threads_in_hook.add(thread)
            try:
                self._handle_event(task, event, arguments)
            # The argument is not a path, or a method of the argument raises. The audited call then fails too, and the
            # task gets the error.
            except Exception:
                self._uncovered_inputs[task] = event
            finally:
                self._threads_in_hook.discard(thread)

        sys.addaudithook(audit_hook)

    def _handle_event(self, task: str, event: str, arguments: tuple[object, ...]) -> None:
        if event in _UNOBSERVABLE_EVENTS or (event == "ctypes.dlsym" and getattr(arguments[0], "_name", None) is None):
            self._uncovered_inputs[task] = event
        elif event == "sqlite3.connect":
            if arguments[0] not in (":memory:", ""):
                self._uncovered_inputs[task] = event
        elif event == "os.mkdir":
            self._record_created(task, _real_path(arguments[0]))
        elif event in _PATH_ARGUMENT_BY_EVENT and not (event == "os.listdir" and self._is_import_search(arguments[0])):
            self._handle_path(task, event, arguments)

    def _is_import_search(self, directory: object) -> bool:
        searcher = _calling_module(3)
        return searcher in _IMPORT_MODULES or (searcher == _METADATA_MODULE and _real_path(directory) in self._path)

    def _handle_path(self, task: str, event: str, arguments: tuple[object, ...]) -> None:
        argument = arguments[_PATH_ARGUMENT_BY_EVENT[event]]
        if argument is None and event in ("os.listdir", "os.scandir"):
            argument = os.curdir
        if isinstance(argument, int) and str(_calling_module(3)).startswith(_SPAWN_MODULE):
            # This module starts processes without an audit event for the start. It is recognized here, by an earlier
            # event.
            self._uncovered_inputs[task] = _SPAWN_MODULE
        if argument is None or isinstance(argument, int):
            return  # The path is part of the interpreter, or is a descriptor whose opening was audited before.
        if event == "ctypes.dlopen" and os.sep not in str(argument):
            self._uncovered_inputs[task] = event  # The library has no path, so the system searches for it.
            return
        path = _real_path(argument)
        if event == "open" and isinstance(flags := arguments[2], int):
            if flags & os.O_ACCMODE != os.O_RDONLY and os.path.isdir(path):
                # Opening a directory fails, or creates an anonymous or temporary file in it. Neither is an input.
                return
            if flags & os.O_CREAT:
                self._record_created(task, path)
        if get_ident() != self._thread and is_below_directory(path, self._store):
            return
        if event == "import" or _calling_module(3) in _IMPORT_MODULES:
            self._modules.append((_running_modules(), path))
        if task in self._coverage:
            self._check_path(task, event, path)
        else:
            self._load_inputs.setdefault(task, []).append((event, path))

    def _check_loaded_modules(self, task: str) -> None:
        """Audit the files of modules that a task imports and that this process loaded earlier."""
        imports, checked_files = self._imports[task], self._checked_files.setdefault(task, set())
        files = [
            file
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] in imports and isinstance(file := getattr(module, "__file__", None), str)
        ]
        files += [path for running, path in self._modules if not imports.isdisjoint(running)]
        for file in set(files) - checked_files:
            self._check_path(task, "open", _real_path(file))
        checked_files.update(files)

    def _record_created(self, task: str, path: str) -> None:
        """Record a file or directory that a task creates. If the task reads it later, this is not an input."""
        if not os.path.lexists(path):
            self._created_paths.setdefault(task, set()).add(path)

    def _check_path(self, task: str, event: str, path: str) -> None:
        coverage = self._coverage[task]
        if task in self._uncovered_inputs or self._is_created(task, path):
            return
        try:
            if not coverage.has(path):
                displayed = coverage.displayed_path(path).encode("utf-8", "backslashreplace").decode("utf-8")
                self._uncovered_inputs[task] = f"{event} {displayed}"
        except Exception:  # A distribution is damaged, or an import finder fails: the coverage is unknown.
            self._uncovered_inputs[task] = event

    def _is_created(self, task: str, path: str) -> bool:
        if task not in self._created_paths:
            return False
        parts = path.split(os.sep)
        return any(os.sep.join(parts[:end]) in self._created_paths[task] for end in range(2, len(parts) + 1))


def is_below_directory(path: str, directory: str) -> bool:
    """Return whether a path is `directory` or below it. Only the texts of the paths are compared."""
    return path == directory or path.startswith(directory + os.sep)


def _running_modules() -> frozenset[str]:
    """Return the names of the modules whose top-level code is running now.

    Each of them may have caused the current event.
    """
    frame: FrameType | None = sys._getframe()
    names: set[str] = set()
    while frame is not None:
        names.add(str(frame.f_globals.get("__name__")).partition(".")[0])
        frame = frame.f_back
    return frozenset(names)


def _calling_module(frames: int) -> object:
    """Return the name of the module whose code called the caller of this function, `frames` calls above it."""
    return sys._getframe(frames + 1).f_globals.get("__name__")


def _real_path(argument: object) -> str:
    """Return a path with links resolved. Raises ValueError or OSError if the argument is not a path."""
    try:
        return os.path.realpath(os.fsdecode(argument))  # type: ignore[arg-type]  # The call tests the type.
    except TypeError as error:
        raise ValueError(f"{type(argument).__name__} is not a path") from error
