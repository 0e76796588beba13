"""Asking something of a batch, whoever is at work on it, or nobody: a request, which outlives who made it."""

from __future__ import annotations

import os
import pwd

from codebatch.model.work.request import Open, Request, RequestBody
from codebatch.store.batches.batches import BatchDir
from codebatch.store.work.requests import Requests, is_cancelled
from codebatch.system.clock import wall_ns
from codebatch.system.host import this_host


def request(batch: BatchDir, body: RequestBody) -> Request:
    """Ask something of a batch. On return it is on disk. Raises StoreUnwritable, StoreCorrupt."""
    return Requests(batch.files, batch.root).append(body, by=_we(), at_ns=wall_ns())


def lift_cancel(batch: BatchDir) -> None:
    """Whoever goes on with an analysis has what was cancelled be done all the same. Raises as `request` does."""
    if is_cancelled(batch.files, batch.root):
        request(batch, Open())


def _we() -> str:
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    return f"{user}@{this_host().name} pid {os.getpid()}"
