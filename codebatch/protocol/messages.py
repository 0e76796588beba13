"""Messages between a coordinator and its workers: a closed union of msgspec types with a length prefix.

On the wire, a message is its length as an unsigned 32-bit big-endian integer, then msgpack. The channel is a socket
pair that the coordinator creates. End of file means that the peer is dead.

    coordinator                                worker
        |  <------------------------------  Hello
        |  Assign  ------------------------>  |
        |  <------------------------------  Committed, Returned, Finished | Refused
        |  Shrink | Drain  ---------------->  |         (while it works)
        |  Stop  -------------------------->  |
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, HolderId, ResourceUsage, WorkUnit
from codebatch.model.shard import ShardId
from codebatch.model.work.trees import TreeInput
from codebatch.model.work.work_batch import TaskSuccess

PROTOCOL_VERSION = 1
MESSAGE_BYTES_MAX = 64 * 1024 * 1024

_length_prefix = struct.Struct(">I")


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The worker is set up and idle."""

    version: int
    holder: HolderId


class ReusedRange(msgspec.Struct, frozen=True, kw_only=True):
    """A range of items whose results a task takes from the batch `base`: items [start, end) of the unit's shard.

    `first` is the number of the first of these items in the plan of `base`.
    """

    task: str
    start: int
    end: int
    base: str
    first: int


class NeedState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a command that another command needs, with its last attempt.

    The needed command is item `start` of `shard`, and `round` is the round of its last attempt, or 0 if there was none.
    `log` is the name of this attempt's log, or empty if the attempt printed nothing.
    """

    id: str
    state: str
    shard: ShardId
    start: int
    round: int
    exit_status: int | None
    log: str


class AttemptInput(msgspec.Struct, frozen=True, kw_only=True):
    """Input of an attempt that is not in the definition of the command.

    - `tried`: the number of failed tries since a request last opened the command.
    - `previous_round`, `previous_log`: the round and the log of the previous attempt. If there was none, they are 0 and
      empty.
    - `needs`: the states of the commands that this command needs.
    - `tree`: the input of the tree of an isolated command. Otherwise None.
    - `outputs`: the digests of the outputs that the command uses, by the task that wrote them.
    - `success`: the last success of the command in an earlier batch, if it has not been attempted in this batch.
    """

    tried: int = 0
    previous_round: int = 0
    previous_log: str = ""
    needs: tuple[NeedState, ...] = ()
    tree: TreeInput | None = None
    outputs: dict[str, Digest] = {}
    success: TaskSuccess | None = None


class Assign(msgspec.Struct, frozen=True, kw_only=True, tag="assign"):
    """Lease this unit under this epoch and execute it. Results in `served` are taken from older batches, not computed.

    In a work batch, the unit is one command, and `brief` belongs to it. `requests` is the number of requests known when
    the command was scheduled. If `is_repeatable` is set, the lease is not synced. So after a crash of the machine, the
    command may be executed a second time. `then` has further units. The worker executes them one after the other, as
    long as each ends successfully and quickly.
    """

    unit: WorkUnit
    epoch: int
    served: tuple[ReusedRange, ...] = ()
    requests: int = 0
    brief: AttemptInput = AttemptInput()
    is_repeatable: bool = False
    then: tuple[Assign, ...] = ()


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The worker could not lease its unit: another process had taken this epoch. The worker is idle again."""

    epoch: int


class Committed(msgspec.Struct, frozen=True, kw_only=True, tag="committed"):
    """A part of the unit is durable. `lost` is the number of outcomes whose register another process had taken.

    In a work batch, `used` has the resource use of the attempt of each outcome.
    """

    commit: Commit
    lost: int
    used: tuple[ResourceUsage, ...] = ()


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The worker has finished its unit and is idle.

    If `is_worn` is set, the worker has leaked file descriptors and must be replaced.
    """

    seconds: float
    is_worn: bool = False


class Returned(msgspec.Struct, frozen=True, kw_only=True, tag="returned"):
    """The worker does not start the last `count` commands of its assignment. It has started all commands before them.

    The worker sends this when its current command takes long, even with a `count` of 0. From then on, no command may be
    queued behind the current one.
    """

    count: int


class Delayed(msgspec.Struct, frozen=True, kw_only=True, tag="delayed"):
    """The worker cannot make outcomes of commands durable, because the disk refuses writes. `message` says why.

    When no command runs any more, the worker retries for `seconds` and then gives up.
    """

    message: str
    seconds: float


class GaveUp(msgspec.Struct, frozen=True, kw_only=True, tag="gave_up"):
    """The worker ends because it cannot continue: the disk refused a write, or a task cannot be set up.

    No file of the unit is the cause, so none is charged. All work that is not committed is open again. The fields
    describe the error like those of a CodebatchError.
    """

    code: str
    message: str
    hint: str | None


class Drain(msgspec.Struct, frozen=True, kw_only=True, tag="drain"):
    """Finish the current item or command, commit, report, and become idle."""


class Shrink(msgspec.Struct, frozen=True, kw_only=True, tag="shrink"):
    """The current unit, which began at item `start`, now ends at `end`. Another worker gets the rest.

    If the worker is already past the new end, it stops after its current item. Then both workers may execute some
    items. For such an item, only one of the two results is used.
    """

    start: int
    end: int


class Terminate(msgspec.Struct, frozen=True, kw_only=True, tag="terminate"):
    """Terminate the current command: SIGTERM, then SIGKILL after `grace_seconds`.

    None means the grace period of the command.

    If `why` is `cancelled`, the attempt gets an outcome of this type. If `why` is `stopped`, a Stop request names the
    attempt, and the attempt gets no outcome. If `task` is set and the worker runs another command, `task` has ended,
    and the worker ignores the message.
    """

    why: Literal["cancelled", "stopped"]
    grace_seconds: float | None = None
    task: str = ""


class Proceed(msgspec.Struct, frozen=True, kw_only=True, tag="proceed"):
    """Give the current command the answer to its question. It may continue, because it has its slots again."""


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """End now. Sent only to an idle worker."""


MessageToWorker = Assign | Shrink | Drain | Terminate | Proceed | Stop
MessageFromWorker = Hello | Refused | Committed | Returned | Finished | Delayed | GaveUp

_encoder = msgspec.msgpack.Encoder()
_to_worker_decoder: msgspec.msgpack.Decoder[MessageToWorker] = msgspec.msgpack.Decoder(MessageToWorker)
_from_worker_decoder: msgspec.msgpack.Decoder[MessageFromWorker] = msgspec.msgpack.Decoder(MessageFromWorker)


def encode_message(message: MessageToWorker | MessageFromWorker) -> bytes:
    """Return the bytes of a message on the wire."""
    body = _encoder.encode(message)
    assert len(body) <= MESSAGE_BYTES_MAX
    return _length_prefix.pack(len(body)) + body


class MessageBuffer:
    """A buffer of received bytes. It splits them into the bodies of messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def torn_bytes(self) -> int:
        """Number of received bytes that belong to an incomplete message."""
        return len(self._data)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add received bytes and yield each complete body. Raises ValueError if a length exceeds MESSAGE_BYTES_MAX."""
        self._data += data
        while len(self._data) >= _length_prefix.size:
            (length,) = _length_prefix.unpack_from(self._data)
            if length > MESSAGE_BYTES_MAX:
                raise ValueError(f"a message of {length} bytes")
            if len(self._data) < _length_prefix.size + length:
                return
            body = bytes(self._data[_length_prefix.size : _length_prefix.size + length])
            del self._data[: _length_prefix.size + length]
            yield body


def decode_to_worker(body: bytes) -> MessageToWorker:
    """Decode a message from a coordinator. Raises msgspec.DecodeError."""
    return _to_worker_decoder.decode(body)


def decode_from_worker(body: bytes) -> MessageFromWorker:
    """Decode a message from a worker. Raises msgspec.DecodeError."""
    return _from_worker_decoder.decode(body)
