"""The command line and environment of a worker. Coordinator and worker both use these definitions."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from typing import Literal

import msgspec

from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.model.task import CustomTaskLocation

WORKER_MODULE = "codebatch_workers"
QUESTIONS_MODULE = "codebatch_workers.runtime.introspection"
SILENCING_MODULE = "codebatch_workers.runtime.absence_reasons"
SOURCE_MODULE = "codebatch_workers.runtime.source_lines"

HOLDER_VARIABLE = "CODEBATCH_HOLDER"
"""Environment variable that marks a worker and its descendants. When the worker ends, they are killed."""

ATTEMPT_VARIABLE = "CODEBATCH_ATTEMPT"
"""Environment variable that marks the descendants of an attempt by `attempt_mark`. They may outlive the coordinator."""

STACK_SIGNAL = signal.SIGUSR1
"""Signal that makes a worker write its stack to standard error, even during a call of C code."""

WORKER_DESCRIPTORS_MIN = 64
"""Minimum number of file descriptors of a worker: a reserve, its files, and the pipes of tools that tasks start."""

ENVIRONMENT_KEPT = ("HOME", "PATH", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")


Role = Literal["tasks", "commands"]


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of all workers of one coordinator.

    - `own_tasks`: the custom tasks (`plugins/catalogue.py`).
    - `store_lock`: the file descriptor of the coordinator's lock of the store. Workers inherit it and hold the lock
      until they exit.
    - `keeps_terms`: write terms files, because an index will be built.
    - `hash_seed`: PYTHONHASHSEED of the workers. Output must not depend on it.
    - `role`: `commands` in a work batch, otherwise `tasks`.
    - `wants_colors`: ask commands for colored output.
    """

    store: str
    batch: str
    coordinator: HolderId
    store_lock: int | None = None
    own_tasks: dict[str, CustomTaskLocation] = {}
    keeps_terms: bool = False
    hash_seed: int = 0
    role: Role = "tasks"
    wants_colors: bool = False


class Launch(WorkerSettings, frozen=True, kw_only=True):
    """The argument on a worker's command line, as JSON."""

    holder: HolderId
    channel: int
    parent: int


def worker_arguments(python: str, launch: Launch) -> list[str]:
    """Return the command line of a worker. Start it in an empty directory.

    Otherwise Python would import modules from that directory: Python 3.10 does not have the option `-P`.
    """
    return [python, "-m", WORKER_MODULE, json.dumps(msgspec.to_builtins(launch))]


def decode_launch(argument: str) -> Launch:
    """Decode the argument that `worker_arguments` made.

    This uses the JSON decoder of the standard library, because it accepts paths that are not UTF-8.
    """
    return msgspec.convert(json.loads(argument), Launch)


def attempt_mark(holder: HolderId, shard: ShardId, item: int, epoch: int) -> str:
    """Return the mark of an attempt, which identifies its lease. Its value is in ATTEMPT_VARIABLE."""
    return f"{holder}.{shard}.{item}.{epoch}"


def worker_environment(environment: Mapping[str, str], holder: HolderId, hash_seed: int) -> dict[str, str]:
    """Return the environment of a worker: allowed variables, and settings for equal results and low CPU use."""
    inherited = {name: environment[name] for name in ENVIRONMENT_KEPT if name in environment}
    return inherited | {
        HOLDER_VARIABLE: holder,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONUTF8": "1",
        "RAYON_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TOKIO_WORKER_THREADS": "1",
    }
