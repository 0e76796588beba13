"""The command line and environment of a worker. Coordinator and worker both use these definitions."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from typing import Literal

import msgspec

from codebatch.model.command_table import TaskLocation
from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId

WORKER_MODULE = "codebatch_workers"
FACT_SERVICES_MODULE = "codebatch_workers.languages.facts"
LANGUAGE_SERVICES_MODULE = "codebatch_workers.runtime.introspection"
ABSENCE_SERVICES_MODULE = "codebatch_workers.runtime.absence_reasons"
NAME_SERVICES_MODULE = "codebatch_workers.runtime.name_search"
USE_SERVICES_MODULE = "codebatch_workers.languages.project_uses"
SOURCE_SERVICES_MODULE = "codebatch_workers.runtime.source_lines"

HOLDER_VARIABLE = "CODEBATCH_HOLDER"
"""Environment variable with the holder ID of a worker.

It marks the worker and its descendants, which are killed when the worker ends.
"""

ATTEMPT_VARIABLE = "CODEBATCH_ATTEMPT"
"""Environment variable with the mark of an attempt (`attempt_mark`).

It marks the attempt's processes, which may outlive the coordinator.
"""

STACK_SIGNAL = signal.SIGUSR1
"""The signal on which a worker writes its stack to standard error, even during a call of C code."""

WORKER_DESCRIPTORS_MIN = 64
"""Minimum limit of open file descriptors for a worker: its files, the pipes of tools that tasks start, and a reserve.
"""

VARIABLES_KEPT = ("HOME", "PATH", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")


WorkerRole = Literal["tasks", "commands"]


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of all workers of one coordinator.

    - `own_tasks`: the tasks that the configuration defines (`plugins/catalogue.py`).
    - `store_lock`: the file descriptor of the coordinator's lock of the store. Workers inherit it and hold the lock
      until they exit.
    - `keeps_terms`: workers also write terms files, from which the index will be built.
    - `hash_seed`: the value of PYTHONHASHSEED for the workers. Output must not depend on this value.
    - `role`: `commands` in a work batch, otherwise `tasks`.
    - `wants_colors`: set environment variables so that commands print colors.
    """

    store: str
    batch: str
    coordinator: HolderId
    store_lock: int | None = None
    own_tasks: dict[str, TaskLocation] = {}
    keeps_terms: bool = False
    hash_seed: int = 0
    role: WorkerRole = "tasks"
    wants_colors: bool = False


class WorkerLaunch(WorkerSettings, frozen=True, kw_only=True):
    """The settings of one worker. They are passed on its command line as one argument, as JSON."""

    holder: HolderId
    channel: int
    parent: int


def encode_launch(launch: WorkerLaunch) -> str:
    """Return the argument of a worker."""
    return json.dumps(msgspec.to_builtins(launch))


def decode_launch(argument: str) -> WorkerLaunch:
    """Decode the argument that `encode_launch` made.

    The JSON decoder of the standard library is used, because msgspec does not accept paths that are not UTF-8.
    """
    return msgspec.convert(json.loads(argument), WorkerLaunch)


def attempt_mark(holder: HolderId, shard: ShardId, item: int, epoch: int) -> str:
    """Return the text that identifies an attempt by its lease.

    It is the value of ATTEMPT_VARIABLE in the attempt's processes.
    """
    return f"{holder}.{shard}.{item}.{epoch}"


def worker_environment(environment: Mapping[str, str], holder: HolderId, hash_seed: int) -> dict[str, str]:
    """Return the environment of a worker."""
    return program_environment(environment) | {HOLDER_VARIABLE: holder, "PYTHONHASHSEED": str(hash_seed)}


def program_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that a worker or a coordinator calls.

    It has the allowed variables, and settings for equal results and low CPU use. `environment` is that of the worker or
    coordinator.
    """
    inherited = {name: environment[name] for name in (*VARIABLES_KEPT, HOLDER_VARIABLE) if name in environment}
    return inherited | {
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": environment.get("PYTHONHASHSEED", "0"),
        "PYTHONUTF8": "1",
        "RAYON_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TOKIO_WORKER_THREADS": "1",
    }
