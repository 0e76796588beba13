"""What own tasks look at that their keys do not cover, as Python's audit events tell (PEP 578).

One hook a process, which hears for as long as an own task is at work: while its module is run, and while its function
is called. What it hears is a path, which the key of the task covers or does not (key_coverage.py), or an act of which
nobody can tell what it brings: another process, a connection, a call into C. The first that is not covered stands for
the task until the process ends, for a module may keep what it read; what was done before rests on nothing of it. A hook
cannot be taken off again.

A module is read once a process. So the files of one count for each task that imports it, and what was read for one task
while code of a module ran counts for each that imports that module.

There is no event of stat(2), the environment, clocks and random numbers, shared memory, and of what C code opens.
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

# Of each event that tells a path, which argument that is. Reading, listing, and what gives a file another name.
_PATHS = {
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
# Answers from elsewhere; and what goes on where nothing is heard: other processes, other interpreters, C.
_ACTS = frozenset(
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
_HEARD = _ACTS | _PATHS.keys() | {"ctypes.dlsym", "os.mkdir", "sqlite3.connect"}
_STARTER = "multiprocessing.popen_spawn"
_THREAD = "a thread that goes on"
# Whose listings are searches, for a module, and on Python's path for a distribution: what they find they open.
_IMPORTERS = frozenset({"importlib._bootstrap_external", "_frozen_importlib_external"})
_METADATA = "importlib.metadata"


class Coverage(Protocol):
    """What the key of a task covers. Paths are absolute and hold no link."""

    def has(self, path: str) -> bool:
        """Whether a file or directory is the same wherever the key is."""

    def shown(self, path: str) -> str:
        """The path for people, which is not absolute."""


class InputAudit:
    """Hears what own tasks look at. `found` says what of it is in no key."""

    def __init__(self, store: str) -> None:
        """Hears from now on. Threads of our own open nothing but what lies in the store."""
        self._store = os.path.realpath(store)
        self._path = frozenset(map(os.path.realpath, sys.path))
        self._thread = get_ident()
        self._hearing: set[int] = set()
        self._at: str | None = None
        self._coverage: dict[str, Coverage] = {}
        self._imports: dict[str, frozenset[str]] = {}
        self._modules: list[tuple[frozenset[str], str]] = []
        self._remembered: dict[str, set[str]] = {}
        self._early: dict[str, list[tuple[str, str]]] = {}
        self._made: dict[str, set[str]] = {}
        self._found: dict[str, str] = {}
        self._install()

    def found(self, task: str) -> str:
        """What an own task looked at first that its key does not cover: `open tools/words.txt`; empty where nothing."""
        if task in self._coverage and task not in self._found:
            self._look_at_memory(task)
        return self._found.get(task, "")

    def during(self, task: str, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """What a call answers, in which an own task is at work."""
        before, self._at = self._at, task
        threads = count_threads()
        try:
            return call(*arguments, **options)
        finally:
            self._at = before
            if count_threads() > threads:
                self._found.setdefault(task, _THREAD)

    def judge(self, task: str, coverage: Coverage, imports: frozenset[str]) -> None:
        """From now on hold what a task looks at against its key, and now what it looked at as it was loaded.

        `imports` are the modules that it names, as far as they are read from files.
        """
        self._coverage[task] = coverage
        self._imports[task] = imports
        for event, path in self._early.pop(task, ()):
            self._look(task, event, path)

    def _install(self) -> None:
        def hear(event: str, arguments: tuple[object, ...]) -> None:
            task = self._at
            if task is None or event not in _HEARD or task in self._found:
                return
            thread = get_ident()
            if thread in self._hearing:
                return  # What we ask ourselves.
            self._hearing.add(thread)
            try:
                self._hear(task, event, arguments)
            except Exception:  # No path, or one of a type whose own code raises: the call is the task's, as its errors.
                self._found[task] = event
            finally:
                self._hearing.discard(thread)

        sys.addaudithook(hear)

    def _hear(self, task: str, event: str, arguments: tuple[object, ...]) -> None:
        if event in _ACTS or (event == "ctypes.dlsym" and getattr(arguments[0], "_name", None) is None):
            self._found[task] = event
        elif event == "sqlite3.connect":
            if arguments[0] not in (":memory:", ""):
                self._found[task] = event
        elif event == "os.mkdir":
            self._make(task, _real_path(arguments[0]))
        elif event in _PATHS and not (event == "os.listdir" and self._is_search(arguments[0])):
            self._hear_path(task, event, arguments)

    def _is_search(self, directory: object) -> bool:
        searcher = _caller(3)
        return searcher in _IMPORTERS or (searcher == _METADATA and _real_path(directory) in self._path)

    def _hear_path(self, task: str, event: str, arguments: tuple[object, ...]) -> None:
        given = arguments[_PATHS[event]]
        if given is None and event in ("os.listdir", "os.scandir"):
            given = os.curdir
        if isinstance(given, int) and str(_caller(3)).startswith(_STARTER):
            self._found[task] = _STARTER  # The one way of the standard library to start a process that tells no event.
        if given is None or isinstance(given, int):
            return  # A module that is part of the interpreter, that as a library; a descriptor, which was heard of.
        if event == "ctypes.dlopen" and os.sep not in str(given):
            self._found[task] = event  # It is looked for in the system.
            return
        path = _real_path(given)
        if event == "open" and isinstance(flags := arguments[2], int):
            if flags & os.O_ACCMODE != os.O_RDONLY and os.path.isdir(path):
                return  # Nobody can: it is where a file of no name, or of one that is to be found, is made.
            if flags & os.O_CREAT:
                self._make(task, path)
        if get_ident() != self._thread and is_in(path, self._store):
            return
        if event == "import" or _caller(3) in _IMPORTERS:
            self._modules.append((_running_modules(), path))
        if task in self._coverage:
            self._look(task, event, path)
        else:
            self._early.setdefault(task, []).append((event, path))

    def _look_at_memory(self, task: str) -> None:
        """Look at the modules that the task imports and that were read before it did."""
        imports, remembered = self._imports[task], self._remembered.setdefault(task, set())
        files = [
            file
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] in imports and isinstance(file := getattr(module, "__file__", None), str)
        ]
        files += [path for running, path in self._modules if not imports.isdisjoint(running)]
        for file in set(files) - remembered:
            self._look(task, "open", _real_path(file))
        remembered.update(files)

    def _make(self, task: str, path: str) -> None:
        """A file or directory is about to be made: what is read of it later is what was written into it."""
        if not os.path.lexists(path):
            self._made.setdefault(task, set()).add(path)

    def _look(self, task: str, event: str, path: str) -> None:
        coverage = self._coverage[task]
        if task in self._found or self._is_made(task, path):
            return
        try:
            if not coverage.has(path):
                shown = coverage.shown(path).encode("utf-8", "backslashreplace").decode("utf-8")
                self._found[task] = f"{event} {shown}"
        except Exception:  # A distribution is gone or damaged, or a finder of others is: nobody can tell.
            self._found[task] = event

    def _is_made(self, task: str, path: str) -> bool:
        if task not in self._made:
            return False
        parts = path.split(os.sep)
        return any(os.sep.join(parts[:end]) in self._made[task] for end in range(2, len(parts) + 1))


def is_in(path: str, directory: str) -> bool:
    """Whether a path is that of a directory, or below it. Nothing is looked at."""
    return path == directory or path.startswith(directory + os.sep)


def _running_modules() -> frozenset[str]:
    """The modules at the top of which code is running: what is read now, all of them may have asked for."""
    frame: FrameType | None = sys._getframe()
    names: set[str] = set()
    while frame is not None:
        names.add(str(frame.f_globals.get("__name__")).partition(".")[0])
        frame = frame.f_back
    return frozenset(names)


def _caller(frames: int) -> object:
    """The module of the one who called, so many calls above."""
    return sys._getframe(frames + 1).f_globals.get("__name__")


def _real_path(given: object) -> str:
    """A path without links. Raises ValueError or OSError where it is none."""
    try:
        return os.path.realpath(os.fsdecode(given))  # type: ignore[arg-type]  # that is what is asked
    except TypeError as error:
        raise ValueError(f"{type(given).__name__} is not a path") from error
