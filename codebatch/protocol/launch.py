"""How a worker is launched: the argument vector and environment, one definition for both sides."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Literal

import msgspec

from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.model.task import OwnPlace

WORKER_MODULE = "codebatch_workers"
QUESTIONS_MODULE = "codebatch_workers.runtime.introspection"
SILENCING_MODULE = "codebatch_workers.runtime.absence_reasons"
SOURCE_MODULE = "codebatch_workers.runtime.source_lines"

HOLDER_VARIABLE = "CODEBATCH_HOLDER"
"""Marks a worker and whatever it starts, so that none of it outlives the worker."""

ATTEMPT_VARIABLE = "CODEBATCH_ATTEMPT"
"""Marks what an attempt of a command starts, by `attempt_mark`: commands outlive their coordinator."""

STACK_SIGNAL = signal.SIGUSR1
"""Makes a worker write where it is to its standard error, be it deep in C."""

WORKER_DESCRIPTORS_MIN = 64
"""File descriptors that a worker may have at least: its reserve, its files, the pipes of the tools that tasks start."""

ENVIRONMENT_KEPT = ("HOME", "PATH", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")


Role = Literal["tasks", "commands"]


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told on its command line, as one JSON argument. `own_tasks`: `plugins/catalogue.py`.

    `store_lock` is the descriptor by which it holds the coordinator's lock of the store. `keeps_terms`: an index is to
    be made, for which it writes terms files. A worker for `commands` is of a work batch; if it `wants_colors`, it asks
    them to colour what they print.
    """

    store: str
    batch: str
    holder: HolderId
    coordinator: HolderId
    channel: int
    parent: int
    store_lock: int | None = None
    own_tasks: dict[str, OwnPlace] = {}
    keeps_terms: bool = False
    role: Role = "tasks"
    wants_colors: bool = False


def worker_arguments(python: str, launch: Launch) -> list[str]:
    """The command line of a worker. `-P` is not in Python 3.10, so the working directory must be an empty one."""
    import json  # 1 ms of who starts no worker

    return [python, "-m", WORKER_MODULE, json.dumps(msgspec.to_builtins(launch))]


def decode_launch(argument: str) -> Launch:
    """What `worker_arguments` says. By the standard library, whose JSON takes paths that are no UTF-8."""
    import json

    return msgspec.convert(json.loads(argument), Launch)


def attempt_mark(holder: HolderId, shard: ShardId, item: int, epoch: int) -> str:
    """The mark of an attempt: whose lease it is under."""
    return f"{holder}.{shard}.{item}.{epoch}"


def worker_environment(environment: Mapping[str, str], holder: HolderId, hash_seed: int) -> dict[str, str]:
    """What a worker sees: an allow-list, and settings that keep results and core counts the same everywhere."""
    kept = {name: environment[name] for name in ENVIRONMENT_KEPT if name in environment}
    return kept | {
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
