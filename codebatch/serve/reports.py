"""Reports for the page: made by a child process, and opened once by a secret path."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict

from anyio import to_thread

from codebatch.errors import BatchIncomplete, UnknownId
from codebatch.serve.child_process import run_codebatch
from codebatch.store.batches.batch_directory import BatchDir, check_kind
from codebatch.store.results.outputs import current_outputs

KEPT_MAX = 3
OPEN_SECONDS_MAX = 60.0
_PATHS_MAX = 64


class ReportMaker:
    """Makes reports of the batches of one store, one at a time. It keeps the latest reports in memory."""

    def __init__(self, store: str) -> None:
        """`store` is the path of the store."""
        self._store = store
        self._lock = asyncio.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._by_nonce: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    async def make(self, batch: BatchDir) -> str:
        """Return a path below `/report/` that opens the report of a batch once, within OPEN_SECONDS_MAX.

        Raises WrongBatchKind for a task list, and BatchIncomplete if the batch has no outputs, or if its report cannot
        be made.
        """
        check_kind(batch, "analysis")
        outputs = await to_thread.run_sync(current_outputs, batch)
        if outputs is None:
            raise BatchIncomplete(
                f"batch {batch.id} has no outputs yet", hint="open the report when the batch has ended"
            )
        async with self._lock:
            key = f"{batch.id} {outputs.manifest.result_digest}"
            page = self._kept.get(key)
            if page is None:
                page = await run_codebatch("report", "--store", self._store, "--batch", batch.id, "--output", "-")
            self._kept[key] = page
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        nonce = secrets.token_urlsafe(32)
        self._by_nonce[nonce] = (page, time.monotonic() + OPEN_SECONDS_MAX)
        while len(self._by_nonce) > _PATHS_MAX:
            self._by_nonce.popitem(last=False)
        return f"/report/{nonce}"

    def take(self, nonce: str) -> bytes:
        """Return the report of a path, which is then no longer valid. Raises UnknownId."""
        page, expires_at = self._by_nonce.pop(nonce, (b"", 0.0))
        if time.monotonic() >= expires_at:
            raise UnknownId("this address of a report is not valid any more", hint="open the report on the page again")
        return page
