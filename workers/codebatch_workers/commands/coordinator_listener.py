"""What a worker hears while it has a command at hand: its coordinator, while that lives, and requests of people."""

from __future__ import annotations

from collections import deque

from codebatch.errors import StoreError
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Cancel, Skip, Stop
from codebatch.protocol.messages import Drain, Proceed, Terminate, ToWorker
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.work.requests import Requests
from codebatch_workers.runtime.channel import Channel, CoordinatorGone

_REQUESTS_EVERY_NS = 200_000_000


class CoordinatorListener:
    """Hears for one worker. A coordinator that is gone does not come back; another one sends requests alone."""

    def __init__(self, batch: BatchDir, channel: Channel) -> None:
        self._batch = batch
        self._channel = channel
        self._requests = Requests(batch.files, batch.root)
        leader, _ = LeaseReader(batch.files, batch.root).leader()
        self._next_lead = batch.root / layout.LEASES / layout.coordinator_lease_name(leader + 1)
        self._later: deque[ToWorker] = deque()
        self._heeded = self._round = self._epoch = 0
        self._task = CommandId("")
        self._looked_ns = 0
        self.is_alone = False
        self.is_recalled = False
        self.may_proceed = False

    @property
    def channel(self) -> int | None:
        """The descriptor on which more may come; None where nobody is left to send it."""
        return None if self.is_alone else self._channel.fileno()

    def receive(self) -> ToWorker:
        """The next message, for who has no command at hand. Raises CoordinatorGone."""
        return self._later.popleft() if self._later else self._channel.receive()

    def look(self, assigned: int, task: CommandId, round_: int, epoch: int) -> Terminate | None:
        """What was said before an attempt was begun that was assigned with so many requests in mind. Raises StoreError.

        Whether another coordinator has come since decides too, but only after the lease was taken: a coordinator takes
        its own before it reads those of workers, so one of the two sees the other.
        """
        self._heeded, self._task, self._round, self._epoch = assigned, task, round_, epoch
        self.may_proceed = False
        if self._batch.files.stat(self._next_lead) is not None:
            self.is_alone = True
        return self._hear_coordinator() or self._hear_requests()

    def hear(self, now_ns: int) -> Terminate | None:
        """What was said since, by requests every 0.2 s. One that cannot be read changes nothing of what runs."""
        heard = self._hear_coordinator()
        if heard is None and now_ns - self._looked_ns >= _REQUESTS_EVERY_NS:
            self._looked_ns = now_ns
            try:
                heard = self._hear_requests()
            except StoreError:
                return None
        return heard

    def _hear_coordinator(self) -> Terminate | None:
        try:
            while not self.is_alone and (message := self._channel.try_receive()) is not None:
                if isinstance(message, Terminate):
                    if message.task in ("", self._task):
                        return message
                elif isinstance(message, Proceed):
                    self.may_proceed = True
                elif isinstance(message, Drain):
                    self.is_recalled = True
                else:
                    self._later.append(message)
        except CoordinatorGone:
            self.is_alone = True
        return None

    def _hear_requests(self) -> Terminate | None:
        for request in self._requests.read()[self._heeded :]:
            self._heeded = request.n
            self.is_recalled = True
            match request.body:
                case Cancel(grace_seconds=grace):
                    return Terminate(why="cancelled", grace_seconds=grace)
                case Skip(task=task, round=over) if task == self._task and over >= self._round:
                    return Terminate(why="cancelled")
                case Stop(attempts=attempts, terminates=True) if attempts.get(self._task) == self._epoch:
                    return Terminate(why="stopped")
                case _:
                    pass
        return None
