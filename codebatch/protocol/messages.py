"""Messages between a coordinator and its workers: a closed union, msgspec-typed, length-prefixed.

A message on the wire is its length as an unsigned 32-bit big-endian integer, then msgpack. The channel is a socket
pair made by the coordinator; its end of file means that the peer is dead.

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

from codebatch.model.outcome import Commit, HolderId, Unit, Used
from codebatch.model.shard import ShardId

PROTOCOL_VERSION = 1
MESSAGE_BYTES_MAX = 64 * 1024 * 1024

_prefix = struct.Struct(">I")


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The worker is set up and idle."""

    version: int
    holder: HolderId


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Items [start, end) of a unit's shard that need not be done by a task: an older batch, `base`, has the same.

    `first` is the place of the first of them in the plan of that batch.
    """

    task: str
    start: int
    end: int
    base: str
    first: int


class NeedState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command stands that another needs. Its last attempt was of this item, in this round; 0: it had none.

    `log` is the name of what it printed, empty where it printed nothing.
    """

    id: str
    state: str
    shard: ShardId
    start: int
    round: int
    exit_status: int | None
    log: str


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker cannot read in the definition of a command: how many attempts failed since a request last opened
    it, the round and the log of the one before (0 and empty where there was none), and what it needs.
    """

    tried: int = 0
    previous_round: int = 0
    previous_log: str = ""
    needs: tuple[NeedState, ...] = ()


class Assign(msgspec.Struct, frozen=True, kw_only=True, tag="assign"):
    """Do this unit, leased under this epoch; what is served is not done but taken over.

    Of a work batch: the unit is one command, assigned with the first `requests` requests in mind, with a brief; `then`
    are those that are to follow it, one after the other, as long as all goes well and fast. One that `is_repeatable`
    may be begun twice, should the machine die: its lease is not waited for.
    """

    unit: Unit
    epoch: int
    served: tuple[Served, ...] = ()
    requests: int = 0
    brief: Brief = Brief()
    is_repeatable: bool = False
    then: tuple[Assign, ...] = ()


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """Another process linked that epoch of the lease before; the worker is idle again."""

    epoch: int


class Committed(msgspec.Struct, frozen=True, kw_only=True, tag="committed"):
    """A part of the unit is durable. `lost` counts outcomes whose name another process had taken before.

    Of commands, what the attempt of each outcome `used`.
    """

    commit: Commit
    lost: int
    used: tuple[Used, ...] = ()


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """Nothing of the unit is left to this worker; it is idle. A worn one wants to be replaced (leaked descriptors)."""

    seconds: float
    is_worn: bool = False


class Returned(msgspec.Struct, frozen=True, kw_only=True, tag="returned"):
    """The last `count` commands of what was assigned at once are not begun by this worker; all before them were.

    Said where they are to wait no longer for the one at hand, be there none behind it.
    """

    count: int


class Delayed(msgspec.Struct, frozen=True, kw_only=True, tag="delayed"):
    """How commands ended cannot be made durable: the disk refuses it, as the message says. It is tried again, once
    nothing runs for so many seconds.
    """

    message: str
    seconds: float


class GaveUp(msgspec.Struct, frozen=True, kw_only=True, tag="gave_up"):
    """The worker cannot go on, through no fault of a file: the disk refused a write, a task cannot be set up.

    It ends now. Nothing of the unit that is not committed is done. The fields are those of a CodebatchError.
    """

    code: str
    message: str
    hint: str | None


class Drain(msgspec.Struct, frozen=True, kw_only=True, tag="drain"):
    """Finish the item or command at hand, commit, report, and be idle."""


class Shrink(msgspec.Struct, frozen=True, kw_only=True, tag="shrink"):
    """The unit at hand, which began at this item, ends earlier now: another worker has the rest.

    An owner that is past that end already ends where it is; what is done twice then is refused or never read.
    """

    start: int
    end: int


class Terminate(msgspec.Struct, frozen=True, kw_only=True, tag="terminate"):
    """End the command at hand: SIGTERM, and after so many seconds (None: its own) SIGKILL.

    A `cancelled` attempt is committed as that. Nothing is committed of a `stopped` one, which a request names. If a
    task is named that is not at hand, it is over, and nothing is to be ended.
    """

    why: Literal["cancelled", "stopped"]
    grace_seconds: float | None = None
    task: str = ""


class Proceed(msgspec.Struct, frozen=True, kw_only=True, tag="proceed"):
    """Hand the answer to what the command at hand asks over to it: there is room for it to go on."""


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """End now; only sent to an idle worker."""


ToWorker = Assign | Shrink | Drain | Terminate | Proceed | Stop
FromWorker = Hello | Refused | Committed | Returned | Finished | Delayed | GaveUp

_encoder = msgspec.msgpack.Encoder()
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_from_worker: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)


def encode_message(message: ToWorker | FromWorker) -> bytes:
    """The bytes of a message on the wire."""
    body = _encoder.encode(message)
    assert len(body) <= MESSAGE_BYTES_MAX
    return _prefix.pack(len(body)) + body


class MessageBuffer:
    """Cuts a byte stream into message bodies."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def torn_bytes(self) -> int:
        """How much there is of a message of which the rest has not arrived."""
        return len(self._data)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add received bytes; yields the bodies that are whole. Raises ValueError for an absurd length."""
        self._data += data
        while len(self._data) >= _prefix.size:
            (length,) = _prefix.unpack_from(self._data)
            if length > MESSAGE_BYTES_MAX:
                raise ValueError(f"a message of {length} bytes")
            if len(self._data) < _prefix.size + length:
                return
            body = bytes(self._data[_prefix.size : _prefix.size + length])
            del self._data[: _prefix.size + length]
            yield body


def decode_to_worker(body: bytes) -> ToWorker:
    """Read what a coordinator sent. Raises msgspec.DecodeError."""
    return _to_worker.decode(body)


def decode_from_worker(body: bytes) -> FromWorker:
    """Read what a worker sent. Raises msgspec.DecodeError."""
    return _from_worker.decode(body)
