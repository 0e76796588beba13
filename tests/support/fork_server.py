"""A server that forks commands from a process that has already imported the command line.

Most of the time of a short command is imports. A forked command has its own arguments, environment, directory,
descriptors, signals and exit status, like any process. It differs from a started one in three ways: the interpreter is
not initialized again, all modules are already imported, and caches that a command fills at first use exist. Tests that
depend on these run the script itself, and so do the tests of every command line in README and the help pages. The
workers of forked commands are forked too: tests/support/forked_workers.py.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import pickle
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

REQUEST_BYTES_MAX = 64 * 1024
PIPE_BYTES = 64 * 1024
LOCALE = "C.UTF-8"
INTERPRETER_PREFIXES = ("PYTHON", "LC_", "LANG", "LD_")


def run_forked(
    arguments: Sequence[str | bytes | Path],
    directory: Path,
    environment: Mapping[str, str],
    seconds: float,
    *,
    plugins: Path | None = None,
) -> tuple[int, bytes, bytes] | None:
    """Run a command without input. Return its exit status, as in `subprocess`, its standard output and standard error.

    `plugins` is a directory of more packages for the command. Return None if the command cannot be forked: see
    `started`. Raises TimeoutError if the command takes longer than `seconds`.
    """
    with contextlib.ExitStack() as closing:
        no_input = closing.enter_context(open(os.devnull, "rb")).fileno()
        read, written = zip(os.pipe(), os.pipe(), strict=True)
        for descriptor in read:
            closing.callback(os.close, descriptor)
        with contextlib.ExitStack() as handing_over:
            for descriptor in written:
                handing_over.callback(os.close, descriptor)
            descriptors = [no_input, *written]
            forked = closing.enter_context(started(arguments, directory, environment, descriptors, plugins=plugins))
        if forked is None:
            return None
        stdout, stderr = _read_all(read, time.monotonic() + seconds)
        return forked.wait(), stdout, stderr


class Forked:
    """A started command."""

    def __init__(self, channel: socket.socket, pid: int) -> None:
        self._channel = channel
        self._pid = pid
        self._returned: int | None = None

    def wait(self) -> int:
        """Wait for the end of the command. Return its exit status, as in `subprocess`."""
        if self._returned is None:
            self._returned = _receive(self._channel)
        return self._returned

    def kill(self) -> None:
        """Kill the command, unless it has ended."""
        if self._returned is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self.wait()


@contextlib.contextmanager
def started(
    arguments: Sequence[str | bytes | Path],
    directory: Path,
    environment: Mapping[str, str],
    descriptors: Sequence[int],
    *,
    plugins: Path | None = None,
) -> Iterator[Forked | None]:
    """Start a command with a standard input, output and error. It is killed on exit, unless it has ended.

    Yield None if the command cannot be forked: its environment affects the start of the interpreter, its request is
    too long, or another forked command is running.
    """
    request = pickle.dumps((list(map(os.fsencode, arguments)), str(directory), dict(environment), plugins))
    interpreter_variables = {
        name: value for name, value in environment.items() if name.startswith(INTERPRETER_PREFIXES)
    }
    if interpreter_variables != {"LC_ALL": LOCALE} or len(request) > REQUEST_BYTES_MAX:
        yield None
        return
    channel, turn = _server()
    if not turn.acquire(blocking=False):
        yield None
        return
    try:
        socket.send_fds(channel, [request], descriptors)
        forked = Forked(channel, _receive(channel))
        try:
            yield forked
        finally:
            forked.kill()
    finally:
        turn.release()


@functools.cache
def _server() -> tuple[socket.socket, threading.Lock]:
    """Start the fork server. Return the channel to it, and a lock that its current user holds."""
    parent_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with child_end:
        process = subprocess.Popen(
            [sys.executable, __file__, str(child_end.fileno())],
            env={"PATH": os.environ["PATH"], "LC_ALL": LOCALE, "PYTHONHASHSEED": "0"},  # Workers have the same.
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[child_end.fileno()],
        )

    def end() -> None:
        parent_end.close()
        process.wait()

    atexit.register(end)
    from tests.support.resources import keep_open  # Deferred: the fork server runs this file as a script.

    keep_open(parent_end.fileno())
    return parent_end, threading.Lock()


def _receive(channel: socket.socket) -> int:
    return int(channel.recv(64))


def _read_all(descriptors: Sequence[int], end: float) -> list[bytes]:
    read = dict.fromkeys(descriptors, b"")
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                chunk = os.read(key.fd, PIPE_BYTES)
                read[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
    return list(read.values())


def _serve(channel: socket.socket) -> None:
    while True:
        request, descriptors, _, _ = socket.recv_fds(channel, REQUEST_BYTES_MAX, 3)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become(descriptors, *pickle.loads(request))
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(b"%d" % pid)
        _, status = os.waitpid(pid, 0)
        channel.send(b"%d" % os.waitstatus_to_exitcode(status))


def _become(
    descriptors: list[int],
    arguments: list[bytes],
    directory: str,
    environment: dict[str, str],
    plugins: Path | None,
) -> NoReturn:
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(directory)
        sys.argv[:] = map(os.fsdecode, arguments)
        from codebatch.__main__ import main
        from codebatch.plugins.entry_points import clear_package_caches
        from tests.support.forked_workers import fork_workers

        if plugins is not None:
            sys.path.insert(1, str(plugins))  # PYTHONPATH has the same effect.
            clear_package_caches()
        fork_workers()
        main()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _run_once() -> None:
    """Run commands once, so that forked commands inherit caches such as compiled decoders of documents."""
    from codebatch.cli import cli
    from codebatch.cli.framework.exit import run_to_exit_status
    from tests.support.forked_workers import fork_workers

    fork_workers()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        Path("a.py").write_text("import os\n", encoding="ascii")
        for words in ("run . -q --store store -j 1", "run . -q --store store", "summary --store store"):
            assert run_to_exit_status(cli, words.split()) == 0
        os.chdir("/")


def _import_all() -> None:
    """Import all modules of commands and workers."""
    import codebatch
    import codebatch_workers
    from codebatch_workers.syntax.language_queries import captures_query
    from tests.support import forked_workers  # noqa: F401

    for package in (codebatch, codebatch_workers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(("codebatch.testing", "codebatch.engines.dask", "codebatch.engines.parsl")):
                importlib.import_module(module.name)
    for language in ("python", "javascript", "typescript"):
        assert captures_query(language) is not None


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as served:
        sys.path[0] = str(Path(__file__).parents[2])
        _import_all()
        sys.path[0] = os.path.dirname(sys.executable)  # The console script has the same first entry.
        _run_once()
        _serve(served)
