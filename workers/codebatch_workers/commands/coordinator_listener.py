"""Messages of the coordinator and requests of users that reach a worker during an attempt."""

from __future__ import annotations

from collections import deque

from codebatch.errors import StoreError
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Cancel, Skip, Stop
from codebatch.protocol.messages import Drain, MessageToWorker, Proceed, Terminate
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.work.requests import RequestStore
from codebatch_workers.runtime.channel import CoordinatorChannel, CoordinatorLost

_REQUESTS_POLL_NS = 200_000_000


class CoordinatorListener:
    """The messages and requests that a worker receives.

    If the coordinator of this worker ends, the channel stays closed. A new coordinator reaches the worker only by
    requests on disk.
    """

    def __init__(self, batch: BatchDir, channel: CoordinatorChannel) -> None:
        self._batch = batch
        self._channel = channel
        self._requests = RequestStore(batch.files, batch.root)
        leader, _ = LeaseReader(batch.files, batch.root).read_leader()
        self._next_lead = batch.root / layout.LEASES / layout.coordinator_lease_name(leader + 1)
        self._deferred_messages: deque[MessageToWorker] = deque()
        self._requests_seen = self._round = self._epoch = 0
        self._task = CommandId("")
        self._polled_ns = 0
        self._early_request: Terminate | None = None
        self.is_alone = False
        self.is_queue_recalled = False
        self.may_proceed = False

    @property
    def channel(self) -> int | None:
        """The descriptor on which messages arrive, or None if the coordinator has ended."""
        return None if self.is_alone else self._channel.fileno()

    def receive(self) -> MessageToWorker:
        """Wait for the next message while no command runs. Raises CoordinatorLost."""
        return self._deferred_messages.popleft() if self._deferred_messages else self._channel.receive()

    def check_before_start(self, assigned: int, task: CommandId, round_: int, epoch: int) -> Terminate | None:
        """Return a request to end the attempt that arrived before its start, or None. Raises StoreError.

        `assigned` is the number of requests that the coordinator had read when it assigned the command. If a new
        coordinator exists, `is_alone` becomes true, and the caller must not start the command.

        The caller must first take the lease of the attempt. A new coordinator takes its own lease before it reads the
        leases of workers. So either this worker detects the new coordinator, or the new coordinator detects this
        attempt.
        """
        self._requests_seen, self._task, self._round, self._epoch = assigned, task, round_, epoch
        self.may_proceed = False
        self._early_request = None
        if self._batch.files.stat(self._next_lead) is not None:
            self.is_alone = True
        return self._read_messages() or self._read_requests()

    def poll(self, now_ns: int) -> Terminate | None:
        """Return a request to end the attempt that arrived since the last call, or None.

        Requests on disk are read every 0.2 s. If reading them fails, None is returned, and the command continues.
        """
        request = self._read_messages()
        if request is None and now_ns - self._polled_ns >= _REQUESTS_POLL_NS:
            self._polled_ns = now_ns
            try:
                request = self._read_requests()
            except StoreError:
                return None
        return request

    def poll_early(self, now_ns: int) -> Terminate | None:
        """Like `poll`, but return the same request again at each further call, while no command of the attempt runs."""
        self._early_request = self._early_request or self.poll(now_ns)
        return self._early_request

    def _read_messages(self) -> Terminate | None:
        try:
            while not self.is_alone and (message := self._channel.try_receive()) is not None:
                if isinstance(message, Terminate):
                    if message.task in ("", self._task):
                        return message
                elif isinstance(message, Proceed):
                    self.may_proceed = True
                elif isinstance(message, Drain):
                    self.is_queue_recalled = True
                else:
                    self._deferred_messages.append(message)
        except CoordinatorLost:
            self.is_alone = True
        return None

    def _read_requests(self) -> Terminate | None:
        for request in self._requests.read()[self._requests_seen :]:
            self._requests_seen = request.n
            self.is_queue_recalled = True
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
