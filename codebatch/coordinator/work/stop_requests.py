"""Stop requests of a coordinator. A request names only attempts that have taken their lease.

An attempt that was sent to a worker may never take its lease. A later attempt of the command then gets the same epoch,
perhaps from another coordinator. A request that names the earlier attempt would also stop the later attempt. The
command could then be executed once more than its policy allows.

So a request for such an attempt waits. As soon as the attempt has its lease, a further request is written that names
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Stop
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.work.attempts import AttemptReader, read_leases
from codebatch.store.work.requests import RequestStore


class StopRequests:
    """Writer of the stop requests of one coordinator."""

    def __init__(
        self,
        requests: RequestStore,
        leases: LeaseReader,
        attempts: AttemptReader,
        ids: Sequence[CommandId],
        pid: int,
        wall_ns: Callable[[], int],
    ) -> None:
        self._requests = requests
        self._leases = leases
        self._places = attempts.places
        self._ids = ids
        self._author = f"coordinator pid {pid}"
        self._wall_ns = wall_ns
        self._waiting: list[Stop] = []

    @property
    def is_waiting(self) -> bool:
        """Whether requests wait for attempts that have not taken their lease yet."""
        return bool(self._waiting)

    def append(self, stop: Stop, leased_epochs: Mapping[CommandId, int]) -> None:
        """Append a request. On return, it is durable. Raises StoreUnwritable or StoreCorrupt.

        `leased_epochs` maps each command to the epoch that a live worker of this coordinator has leased or may still
        lease. If an attempt has no lease and is not in this mapping, it never began, so it needs no request.
        """
        self._append_if_leased(stop, leased_epochs, is_due=stop.cause == "timeout")

    def append_waiting(self, leased_epochs: Mapping[CommandId, int]) -> None:
        """Append the waiting requests whose attempts have taken their lease by now.

        Raises the errors of `append`.
        """
        waiting, self._waiting = self._waiting, []
        for stop in waiting:
            self._append_if_leased(stop, leased_epochs, is_due=False)

    def _append_if_leased(self, stop: Stop, leased_epochs: Mapping[CommandId, int], *, is_due: bool) -> None:
        leased = self._leased_attempts(stop)
        unleased = {
            id_: epoch for id_, epoch in stop.attempts.items() - leased.items() if leased_epochs.get(id_) == epoch
        }
        if unleased:
            self._waiting.append(replace(stop, attempts=unleased))
        if leased or is_due:
            self._requests.append(replace(stop, attempts=leased), by=self._author, at_ns=self._wall_ns())

    def _leased_attempts(self, stop: Stop) -> dict[CommandId, int]:
        if not stop.attempts:
            return {}
        leases = read_leases(self._leases, self._places).leases
        epochs = {self._ids[item]: lease.epoch for item, lease in leases.items()}
        return {id_: epoch for id_, epoch in stop.attempts.items() if epochs.get(id_) == epoch}
