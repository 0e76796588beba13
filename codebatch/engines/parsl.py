"""The engine `parsl:FILE.py`: the workers of a HighThroughputExecutor of Parsl. Only this module imports Parsl.

FILE.py assigns a `parsl.Config` with one executor to the name `config`. The file is executed, because the user gave it
on the command line. Parsl starts its interchange, a process that distributes the calls, on this machine. The provider
of the executor starts the workers, for example by Slurm.

If a worker dies, its call ends with an exception. Parsl does not notice the death of its interchange. So a thread
observes it: it counts the connected workers about once a second, and ends all futures if the interchange has ended.

Parsl would call functions that results and exceptions of workers name, and import their modules. So `_read_payload`
takes the place of its function `deserialize`.
"""

from __future__ import annotations

import atexit
import os
import runpy
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import parsl
from parsl.dataflow.dflow import DataFlowKernel
from parsl.executors import HighThroughputExecutor
from parsl.executors.errors import BadStateException
from parsl.executors.high_throughput import executor
from parsl.providers import LocalProvider

from codebatch.coordinator.engines.foreign_objects import (
    ForeignObject,
    RemoteError,
    describe_object,
    read_foreign,
)
from codebatch.coordinator.engines.interface import Engine, EngineReply, RunPart
from codebatch.engines.opening import EngineOptions, reject_tls_files
from codebatch.engines.probes import call_each_process
from codebatch.errors import InvalidInput
from codebatch.system.files.locked_directories import ENGINE_PREFIX, locked_directory
from codebatch.system.processes.environment import program_directories
from codebatch.system.processes.python_start import python_start

_OBSERVE_SECONDS = 1.0
_SILENCE_SECONDS_MAX = 10.0
_CLOSE_SECONDS = 15.0

_SCRIPT_MODULE = "codebatch.engines.parsl_script"
_SAFE_PATH = """
export PYTHONSAFEPATH=1
export PYTHONPATH="$(printf %s "${PYTHONPATH-}" | tr : '\\n' | grep ^/ | paste -s -d : -)"
"""
"""Commands of a shell that remove relative entries from the module search path."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ParslEngine:
    """The workers of a HighThroughputExecutor."""

    def __init__(
        self, name: str, kernel: DataFlowKernel, workers: HighThroughputExecutor, resources: ExitStack
    ) -> None:
        self.name = name
        self.cores_per_slot = max(1, int(workers.cores_per_worker))
        self._kernel = kernel
        self._workers = workers
        self._resources = resources
        self._executor = ParslExecutor(kernel)
        self._slots = 0
        self._observed = time.monotonic()
        self._is_closed = threading.Event()
        threading.Thread(target=self._observe, name="codebatch-parsl", daemon=True).start()

    @property
    def executor(self) -> Executor:
        """The executor."""
        return self._executor

    def slots(self) -> int:
        """Return the number of connected workers. It is 0 while the interchange does not answer."""
        return self._slots if self.is_alive() else 0

    def is_alive(self) -> bool:
        """Return whether the interchange is running, and has answered in the last 10 seconds."""
        is_silent = time.monotonic() - self._observed > _SILENCE_SECONDS_MAX
        return not (is_silent or self._is_closed.is_set() or self._workers.bad_state_is_set or self._has_ended())

    def call_everywhere(self, function: RunPart, argument: bytes, seconds: float) -> list[EngineReply]:
        """Call a function in each connected worker, and return the replies, sorted by process."""
        return call_each_process(self._executor, self.slots(), function, argument, seconds)

    def close(self) -> None:
        """End the interchange and the workers that Parsl started, also those that execute a call."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        # If the interchange has died, or does not answer, Parsl waits for its answer without a limit.
        cleanup = threading.Thread(target=self._clean_up, name="codebatch-parsl-close", daemon=True)
        cleanup.start()
        cleanup.join(0 if self._has_ended() else _CLOSE_SECONDS)
        if cleanup.is_alive():
            self._cancel_blocks()
        self._resources.close()

    def _has_ended(self) -> bool:
        interchange = self._workers.interchange_proc
        return interchange is None or interchange.poll() is not None

    def _observe(self) -> None:
        while not self._is_closed.wait(_OBSERVE_SECONDS if self._slots else _OBSERVE_SECONDS / 10):
            if self._has_ended():
                self._workers.set_bad_state_and_fail_all(ConnectionError("the interchange of Parsl has ended"))
                return
            with suppress(Exception):
                managers = self._workers.connected_managers()
                self._slots = sum(manager["worker_count"] for manager in managers if manager["active"])
                self._observed = time.monotonic()

    def _clean_up(self) -> None:
        with suppress(Exception):
            self._kernel.cleanup()

    def _cancel_blocks(self) -> None:
        atexit.unregister(self._kernel.atexit_cleanup)
        with suppress(Exception):
            self._workers.provider.cancel([*self._workers.blocks_to_job_id.values()])
        interchange = self._workers.interchange_proc
        if interchange is not None:
            interchange.kill()


class ParslExecutor(Executor):
    """Calls of functions through Parsl. Its futures can be cancelled, which Parsl does not support."""

    def __init__(self, kernel: DataFlowKernel) -> None:
        self._call = parsl.python_app(_call, data_flow_kernel=kernel)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Submit a call. If its future is cancelled, the call may still be executed, and its result is ignored."""
        future: Future[_T] = Future()
        self._call(fn, args, kwargs).add_done_callback(lambda call: _copy_outcome(call, future))
        return future


def _call(function: Callable[..., _T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _T:
    # Parsl cannot call functions without a signature, and gives a meaning of its own to some names of arguments.
    return function(*args, **kwargs)


def _copy_outcome(call: Future[_T], future: Future[_T]) -> None:
    error = call.exception()
    result = call.result() if error is None else None
    if isinstance(result, Exception):
        error = result
    if isinstance(error, BadStateException) and error.reason is not None:
        error = ConnectionError(error.reason)  # Its own text has all settings of the executor.
    with suppress(InvalidStateError):  # It was cancelled.
        if error is None:
            future.set_result(call.result())
        else:
            future.set_exception(error)


def _read_payload(payload: bytes) -> object:
    """Return a value that a worker returned. Exceptions and objects of foreign classes become exceptions."""
    try:
        value = read_foreign(payload.partition(b"\n")[2])
    except RemoteError as error:
        return error
    if not isinstance(value, ForeignObject):
        return value
    state = value.state if isinstance(value.state, dict) else {}
    raised = state.get("e_value", value)  # Parsl pickles a RemoteExceptionWrapper with this attribute.
    return raised if isinstance(raised, Exception) else RemoteError(describe_object(raised))


def open_engine(target: str, options: EngineOptions) -> Engine:
    """Execute a configuration file and start its executor. Raises InvalidInput."""
    reject_tls_files("parsl", options)
    if not callable(getattr(executor, "deserialize", None)):
        raise InvalidInput(
            f"Parsl {parsl.__version__} cannot be used: its results cannot be checked", hint="install Parsl 2024.9.9"
        )
    executor.deserialize = _read_payload
    config = _load_config(target)
    if len(config.executors) != 1:
        raise InvalidInput(
            f"{target!r} has {len(config.executors)} executors, but one is required", hint="keep one executor"
        )
    workers = config.executors[0]
    if not isinstance(workers, HighThroughputExecutor):
        raise InvalidInput(
            f"the executor in {target!r} is a {type(workers).__name__}, which cannot be used",
            hint="use a HighThroughputExecutor with the provider of your cluster",
        )
    with ExitStack() as resources:
        if config.run_dir == parsl.Config(executors=[workers]).run_dir:
            config.run_dir = str(resources.enter_context(locked_directory(ENGINE_PREFIX)))
            config.initialize_logging = False
        try:
            _use_scripts_of_interpreter(workers)
            _ignore_modules_of_directory(workers.provider)
            with _interrupts_ignored_by_children():
                kernel = DataFlowKernel(config)
        except Exception as error:
            raise InvalidInput(
                f"Parsl cannot start the executor in {target!r}: {type(error).__name__}: {error}",
                hint="check the settings of the executor and its provider",
            ) from error
        return ParslEngine(f"parsl {target}", kernel, workers, resources.pop_all())


def _load_config(target: str) -> parsl.Config:
    path = Path(target)
    if path.suffix != ".py" or not path.is_file():
        raise InvalidInput(
            f"there is no Python file {target!r}", hint="give a file that assigns `config`: parsl:FILE.py"
        )
    try:
        config = runpy.run_path(str(path)).get("config")
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"{target!r} raised {type(error).__name__}: {error}", hint=f"try: {sys.executable} {target}"
        ) from error
    if not isinstance(config, parsl.Config):
        raise InvalidInput(
            f"{target!r} assigns no parsl.Config to `config`", hint="write: config = parsl.Config(executors=[...])"
        )
    return config


def _use_scripts_of_interpreter(workers: HighThroughputExecutor) -> None:
    """Run Parsl's scripts on this machine in processes that import no module of the analysed tree.

    The scripts are given by their full paths, because a virtual environment may not be on PATH.
    """
    if list(workers.interchange_launch_cmd) == ["interchange.py"]:
        workers.interchange_launch_cmd = _script_command("interchange.py", str(os.getpid()))
    name, _, arguments = workers.launch_cmd.partition(" ")
    if isinstance(workers.provider, LocalProvider) and name == "process_worker_pool.py":
        workers.launch_cmd = f"{shlex.join(_script_command(name, ''))} {arguments}"


def _script_command(name: str, parent: str) -> list[str]:
    return python_start(_SCRIPT_MODULE, parent, _script_path(name), environment=None).arguments


def _ignore_modules_of_directory(provider: Any) -> None:
    """Let workers on other machines import no modules from their current directory, which may be the analysed tree."""
    if hasattr(provider, "worker_init"):
        provider.worker_init += _SAFE_PATH


def _script_path(name: str) -> str:
    directory = os.path.dirname(sys.executable)
    path = shutil.which(name, path=os.pathsep.join([directory, *program_directories()]))
    if path is None:
        raise FileNotFoundError(f"{name}, a script of Parsl, is neither in {directory} nor on PATH")
    return path


@contextmanager
def _interrupts_ignored_by_children() -> Iterator[None]:
    """Let processes that are started meanwhile ignore Ctrl-C. The coordinator handles it, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
