"""Requests to a batch. A request is durable, so it takes effect even if no process is running the batch."""

from __future__ import annotations

import os
import pwd

from codebatch.model.work.request import Open, Request, RequestBody, RequestHead
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.work.requests import RequestStore, is_cancelled
from codebatch.system.clock import wall_ns
from codebatch.system.host import this_host


def append_request(batch: BatchDir, body: RequestBody) -> Request:
    """Append a request to a batch. On return it is durable. Raises StoreUnwritable or StoreCorrupt."""
    return RequestStore(batch.files, batch.root).append(body, by=_requester(), at_ns=wall_ns())


def try_append_request(batch: BatchDir, body: RequestBody, n: int) -> bool:
    """Append a request as the `n`th one. On return it is durable. Return False if there is an `n`th request.

    Raises StoreUnwritable.
    """
    request = Request(RequestHead(n=n, at_ns=wall_ns(), by=_requester()), body)
    return RequestStore(batch.files, batch.root).try_append(request)


def append_cancel_lift(batch: BatchDir) -> None:
    """Reopen the cancelled work of an analysis that is resumed. Raises the errors of `append_request`."""
    if is_cancelled(batch.files, batch.root):
        append_request(batch, Open())


def _requester() -> str:
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    return f"{user}@{this_host().name} pid {os.getpid()}"
