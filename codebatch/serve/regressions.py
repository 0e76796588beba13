"""Regressions of an analysis: findings that are new or more severe than in the previous analysis of the project."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import msgspec

from codebatch.report.contents import ChangedFinding
from codebatch.serve.bodies import RegressionsBody
from codebatch.serve.child_process import run_codebatch
from codebatch.store.batches.batch_directory import BatchDir

ROWS_MAX = 50
KEPT_MAX = 16


class _RegressionsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The members of the answer of `codebatch regressions --json` that are used here."""

    count: int
    complete: bool
    regressions: tuple[ChangedFinding, ...]


class RegressionReader:
    """Compares analyses of one store, one pair at a time. It keeps the latest answers."""

    def __init__(self, store: str) -> None:
        """`store` is the path of the store."""
        self._store = store
        self._lock = asyncio.Lock()
        self._kept: OrderedDict[tuple[str, str], RegressionsBody] = OrderedDict()

    async def read(self, batch: BatchDir, base: str | None) -> RegressionsBody:
        """Return the regressions of a batch since its base. Raises BatchIncomplete if they cannot be compared."""
        if base is None:
            return RegressionsBody(base=None, count=0, complete=True, regressions=())
        async with self._lock:
            key = (base, batch.id)
            if key in self._kept:
                return self._kept[key]
            output = await run_codebatch("regressions", "--store", self._store, "--json", base, batch.id)
            answer = msgspec.json.decode(output, type=_RegressionsAnswer)
            body = RegressionsBody(
                base=base, count=answer.count, complete=answer.complete, regressions=answer.regressions[:ROWS_MAX]
            )
            if answer.complete:  # Otherwise the next answer may have more.
                self._kept[key] = body
                while len(self._kept) > KEPT_MAX:
                    self._kept.popitem(last=False)
            return body
