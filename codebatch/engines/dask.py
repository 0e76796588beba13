"""The engine `dask:ADDRESS` or `dask:FILE.json`: the workers of a running Dask scheduler.

Only this module imports Dask. A call is executed by a thread of a Dask worker. If a worker dies, Dask executes its
calls again on other workers. After `allowed-failures` deaths, a setting of the scheduler, the call ends with
KilledWorker. If the connection to the scheduler is lost, the futures of all calls are cancelled.

Dask itself never ends a call that is submitted without a connection to the scheduler. DaskExecutor refuses such calls.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import dask.config
import distributed
import msgspec

from codebatch.coordinator.engines.foreign_objects import RemoteError, describe_error, describe_object, read_foreign
from codebatch.coordinator.engines.interface import Engine, EngineReply, RunPart
from codebatch.engines.addresses import check_connection, parse_address, resolve_loopback
from codebatch.engines.opening import INSECURE_VARIABLE, EngineOptions
from codebatch.errors import InvalidInput
from codebatch.system.files.regular_files import read_regular

ANSWER_SECONDS = 2.0
"""The maximum time for an answer of the scheduler. After this time, it counts as unreachable."""

# While the scheduler is unreachable, the client tries for so long to connect again.
_RECONNECT_SECONDS = 30.0
_CLOSE_SECONDS = 5.0
_PEM_BYTES_MAX = 1 << 20
_SCHEDULER_FILE_BYTES_MAX = 16 << 20
_SILENT = logging.CRITICAL + 1

# Dask unpickles the function of a call when it reads the message of the call. A worker that cannot import the module
# of the function ends then, without an answer. So the function of all calls is a builtin, which imports the module.
_CALL = "__import__('pkgutil').resolve_name(name)(*args, **kwargs)"

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DaskEngine:
    """The workers of a Dask scheduler."""

    cores_per_slot = 1

    def __init__(self, name: str, client: distributed.Client) -> None:
        self.name = name
        self._client = client
        self._executor = DaskExecutor(client)

    @property
    def executor(self) -> Executor:
        """The executor."""
        return self._executor

    def slots(self) -> int:
        """Return the number of threads of all workers. It is 0 while the scheduler does not answer."""
        return sum(self._threads().values())

    def is_alive(self) -> bool:
        """Return whether the scheduler answers within ANSWER_SECONDS."""
        try:
            self._query_threads()
        except Exception:
            return False
        return True

    def call_everywhere(self, function: RunPart, argument: bytes, seconds: float) -> list[EngineReply]:
        """Call a function in each worker process, and return the replies, sorted by the addresses of the workers."""
        workers = sorted(self._threads())

        async def call_all() -> list[EngineReply]:
            return [*await asyncio.gather(*(self._call_worker(name, function, argument, seconds) for name in workers))]

        if not workers:
            return []
        try:
            replies: list[EngineReply] = self._client.sync(call_all, callback_timeout=seconds + ANSWER_SECONDS)
        except Exception as error:
            return [EngineReply(process=worker, error=describe_error(error)) for worker in workers]
        return replies

    async def _call_worker(self, worker: str, function: RunPart, argument: bytes, seconds: float) -> EngineReply:
        call: Awaitable[dict[str, object]] = self._client.run(
            call_in_thread, function, argument, workers=[worker], on_error="return"
        )
        try:
            result = (await asyncio.wait_for(call, seconds)).get(worker)
        except asyncio.TimeoutError:
            return EngineReply(process=worker, error=f"no reply within {seconds:g} s")
        except Exception as error:
            return EngineReply(process=worker, error=describe_error(error))
        if isinstance(result, bytes):
            return EngineReply(process=worker, answer=result)
        if isinstance(result, BaseException):
            return EngineReply(process=worker, error=describe_error(_read_exception(result)))
        return EngineReply(process=worker, error="the worker has left the cluster")

    def close(self) -> None:
        """Disconnect. The scheduler forgets all calls of this client."""
        with suppress(Exception):
            self._client.close(timeout=_CLOSE_SECONDS)

    def _threads(self) -> dict[str, int]:
        try:
            return self._query_threads()
        except Exception:
            return {}

    def _query_threads(self) -> dict[str, int]:
        if self._client.status != "running":
            raise ConnectionError("no connection to the scheduler")
        threads: dict[str, int] = self._client.sync(self._client.scheduler.ncores, callback_timeout=ANSWER_SECONDS)
        return threads


class DaskExecutor(Executor):
    """The executor of a client. It refuses calls without a connection, and never blocks when a call is cancelled."""

    def __init__(self, client: distributed.Client) -> None:
        self._client = client

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Submit a call. Raises ConnectionError if the connection to the scheduler is lost."""
        if self._client.status != "running":
            raise ConnectionError("no connection to the scheduler")
        names = {"name": f"{fn.__module__}:{fn.__qualname__}", "args": args, "kwargs": kwargs}
        call = self._client.submit(eval, _CALL, names, pure=False, retries=0)
        future: Future[_T] = Future()
        future.add_done_callback(lambda _: call.cancel() if future.cancelled() and not call.cancelled() else None)
        # The executor of Dask itself never ends the future of a call whose result cannot be read.
        self._client.loop.add_callback(_copy_outcome, call, future)
        if self._client.status != "running":
            # The connection was lost at the same time. Futures that exist before the loss are cancelled by Dask, later
            # ones are not.
            future.cancel()
        return future


async def _copy_outcome(call: distributed.Future, future: Future[_T]) -> None:
    """End a future with the outcome of a call."""
    with suppress(InvalidStateError):  # It was cancelled.
        try:
            future.set_result(await call._result())
        except (CancelledError, asyncio.CancelledError):
            future.cancel()
            future.set_running_or_notify_cancel()
        except Exception as error:
            future.set_exception(_read_exception(error))


def _read_exception(error: BaseException) -> BaseException:
    """Return the exception of another process. If Dask could not read its pickle, `error` has the pickle as text."""
    pickled = error.args[0] if type(error) is Exception and len(error.args) == 1 else None
    if not isinstance(pickled, bytes):
        return error
    try:
        value = read_foreign(pickled)
    except RemoteError as unreadable:
        return unreadable
    return value if isinstance(value, Exception) else RemoteError(describe_object(value))


async def call_in_thread(function: RunPart, argument: bytes) -> bytes:
    """Call a function in a thread of this process, so that the event loop of the worker continues."""
    return await asyncio.to_thread(function, argument)


def open_engine(target: str, options: EngineOptions) -> Engine:
    """Connect to the scheduler with an address, or with the address in a scheduler file. Raises InvalidInput."""
    _silence_dask()
    text = _address_in_file(Path(target)) if target.endswith(".json") else target
    address = parse_address(text)
    name = f"dask {address}"
    security = _make_security(options)
    context: ssl.SSLContext | None = None
    if address.protocol == "tls":
        context = _tls_context(security, str(address))
    elif options.has_tls_files:
        raise InvalidInput(
            f"TLS files are given, but {address} has no TLS", hint=f"give tls://{address.host}:{address.port}"
        )
    elif not options.allows_insecure:
        loopback = resolve_loopback(address)
        if loopback is None:
            raise InvalidInput(
                f"{address} is on another machine and has no TLS: others could read the source code and run commands",
                hint=f"start the scheduler with TLS and give tls://HOST:PORT, or set {INSECURE_VARIABLE}=1",
            )
        address = loopback
    check_connection(address, context)
    try:
        client = distributed.Client(
            str(address), timeout=_RECONNECT_SECONDS, security=security, set_as_default=False, direct_to_workers=False
        )
    except (OSError, ImportError, ValueError, asyncio.TimeoutError) as error:
        raise InvalidInput(
            f"cannot connect to the scheduler at {address}: {describe_error(error)}",
            hint="check the scheduler, and that it has the same version of Dask",
        ) from error
    return DaskEngine(name, client)


def _address_in_file(path: Path) -> str:
    try:
        data = read_regular(path, bytes_max=_SCHEDULER_FILE_BYTES_MAX, is_link_followed=True)
        return msgspec.json.decode(data, type=SchedulerFile).address
    except OSError as error:
        raise InvalidInput(
            f"cannot read the scheduler file {str(path)!r}: {error.strerror}",
            hint="the scheduler creates the file: dask scheduler --scheduler-file FILE.json",
        ) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidInput(
            f"{str(path)!r} is not a scheduler file of Dask: {error}",
            hint="the scheduler creates the file: dask scheduler --scheduler-file FILE.json",
        ) from error


class SchedulerFile(msgspec.Struct, frozen=True):
    """The used part of a scheduler file of Dask."""

    address: str


def _make_security(options: EngineOptions) -> distributed.Security:
    """Return the TLS settings: those of Dask's configuration, replaced by the given files."""
    files = {
        "tls_ca_file": ("--tls-ca", options.tls_ca),
        "tls_client_cert": ("--tls-cert", options.tls_cert),
        "tls_client_key": ("--tls-key", options.tls_key),
    }
    given: dict[str, Any] = {}
    for name, (option, path) in files.items():
        if path is not None:
            _check_pem_file(option, path)
            given[name] = str(path)
    if options.tls_cert is not None and options.tls_key is None:
        given["tls_client_key"] = None  # The key is in the file of the certificate, not in Dask's configuration.
    try:
        return distributed.Security(**given)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"Dask's own configuration of TLS is not valid: {error}", hint="see: dask config list"
        ) from error


def _check_pem_file(option: str, path: Path) -> None:
    try:
        read_regular(path, bytes_max=_PEM_BYTES_MAX, is_link_followed=True)
    except OSError as error:
        raise InvalidInput(
            f"{option}: cannot read {str(path)!r}: {error.strerror}", hint="give the path of a PEM file"
        ) from error


def _has_passphrase(file: str) -> bool:
    # Dask also accepts the text of a key in its configuration, and reports files that cannot be read.
    with suppress(OSError, ValueError):
        return b"ENCRYPTED" in read_regular(Path(file), bytes_max=_PEM_BYTES_MAX, is_link_followed=True)
    return False


def _tls_context(security: distributed.Security, address: str) -> ssl.SSLContext:
    key = security.tls_client_key or security.tls_client_cert
    if key and _has_passphrase(key):
        # OpenSSL would ask for it on the terminal.
        raise InvalidInput(
            f"the key in {key!r} has a passphrase, which codebatch does not ask for",
            hint="give a key without a passphrase, in a file that only you can read",
        )
    try:
        context: ssl.SSLContext | None = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:
        files = (security.tls_ca_file, security.tls_client_cert, security.tls_client_key)
        raise InvalidInput(
            f"the TLS files cannot be used ({describe_error(error)}): {', '.join(str(file) for file in files if file)}",
            hint="give PEM files; the key must belong to the certificate, and have no passphrase",
        ) from error
    if context is None:
        required = {"--tls-ca": security.tls_ca_file, "--tls-cert": security.tls_client_cert}
        missing = [option for option, path in required.items() if not path]
        raise InvalidInput(
            f"{address} requires a client certificate: {' and '.join(missing)} not given",
            hint="give --tls-ca, --tls-cert and --tls-key, or set distributed.comm.tls in Dask's configuration",
        )
    return context


def _silence_dask() -> None:
    """Turn off the logs and warnings of Dask. Its problems are reported by exceptions and by `is_alive`."""
    # Tornado logs the traceback of a call that is waiting for a scheduler that dies.
    for name in (
        "tornado.application",
        "distributed",
        *(name for name in logging.root.manager.loggerDict if name.startswith("distributed.")),
    ):
        logging.getLogger(name).setLevel(_SILENT)
    warnings.filterwarnings("ignore", category=distributed.versions.VersionMismatchWarning)
    # A capsule is an argument of up to some 20 MB. Dask warns on standard error about arguments over 10 MB.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})
