"""Sealed records: a header and records with a checksum, in a file or in a message (SPEC.md "Part files", "Engines").

The data may come from anywhere. So its type, lengths and checksum are verified before any record is decoded, and only
data of known types is decoded.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import BinaryIO, Generic, TypeVar

import msgspec

from codebatch.model.digest import Digest

HEADER_BYTES_MAX = 256 << 20
RECORD_BYTES_MAX = 1 << 30
"""Maximum length of a record after the header."""

_CHUNK_BYTES = 1 << 20
_DIGEST_BYTES = 32
_length_struct = struct.Struct("<Q")
_encoder = msgspec.msgpack.Encoder()

H = TypeVar("H")
R = TypeVar("R")
T = TypeVar("T")


class UnknownRecords(ValueError):
    """The error that data does not begin with the magic bytes of its format."""


class DamagedRecords(ValueError):
    """The error that data is truncated, or that its bytes do not match its checksum."""


class SealedFormat(Generic[H, R]):
    """A format with 8 magic bytes, a header of the type H, and records of the type R."""

    def __init__(self, magic: bytes, header: type[H], record: type[R]) -> None:
        self._magic = magic
        self._header_decoder = msgspec.msgpack.Decoder(header)
        self._record_decoder = msgspec.msgpack.Decoder(record)

    def write(self, append: Callable[[bytes], object], header: H, records: Iterable[R]) -> tuple[Digest, int]:
        """Pass the encoded data to `append`, piece by piece. Return the checksum, and the size in bytes.

        Raises the errors of `append` and `records`.
        """
        hasher = hashlib.sha256()
        size = 0
        for piece in self._iter_pieces(header, records):
            hasher.update(piece)
            append(piece)
            size += len(piece)
        append(hasher.digest())
        return Digest(hasher.hexdigest()), size + _DIGEST_BYTES

    def encode(self, header: H, records: Iterable[R]) -> bytes:
        """Return the encoded data. Raises the errors of `records`."""
        buffer = io.BytesIO()
        self.write(buffer.write, header, records)
        return buffer.getvalue()

    def _iter_pieces(self, header: H, records: Iterable[R]) -> Iterator[bytes]:
        yield self._magic
        for record in chain((header,), records):
            encoded = _encoder.encode(record)
            yield _length_struct.pack(len(encoded)) + encoded

    def read_header(self, file: BinaryIO, size: int) -> tuple[H, Digest]:
        """Verify the lengths and the checksum of a file with `size` bytes. Return its header and checksum.

        Raises UnknownRecords or DamagedRecords.
        """
        hasher = hashlib.sha256()
        magic = file.read(len(self._magic))
        if magic != self._magic:
            if magic == self._magic[: len(magic)]:
                raise DamagedRecords("it is truncated")
            raise UnknownRecords("it has another type")
        hasher.update(magic)
        end = size - _DIGEST_BYTES
        header = _decode(self._header_decoder, _read_record(file, end, HEADER_BYTES_MAX, hasher))
        while file.tell() < end:
            _skip_record(file, end, hasher)
        if file.read(_DIGEST_BYTES + 1) != hasher.digest():
            raise DamagedRecords("its checksum does not match")
        return header, Digest(hasher.hexdigest())

    def iter_records(self, file: BinaryIO, size: int) -> Iterator[R]:
        """Yield the records of a file whose header was read before. Raises DamagedRecords."""
        end = size - _DIGEST_BYTES
        file.seek(len(self._magic))
        _, length = _read_length(file, end, HEADER_BYTES_MAX)
        file.seek(length, io.SEEK_CUR)
        while file.tell() < end:
            yield _decode(self._record_decoder, _read_record(file, end, RECORD_BYTES_MAX))

    def decode(self, data: bytes) -> tuple[H, Iterator[R]]:
        """Return the header and the records of encoded data.

        Raises UnknownRecords or DamagedRecords. The iterator may raise DamagedRecords too.
        """
        header, _ = self.read_header(io.BytesIO(data), len(data))
        return header, self.iter_records(io.BytesIO(data), len(data))


def _read_length(file: BinaryIO, end: int, limit: int) -> tuple[bytes, int]:
    data = file.read(_length_struct.size)
    if len(data) < _length_struct.size:
        raise DamagedRecords("it is truncated")
    (length,) = _length_struct.unpack(data)
    if not 0 < length <= min(limit, end - file.tell()):
        raise DamagedRecords("it is truncated, or one of its lengths is wrong")
    return data, length


def _read_record(file: BinaryIO, end: int, limit: int, hasher: hashlib._Hash | None = None) -> bytes:
    head, length = _read_length(file, end, limit)
    data = file.read(length)
    if hasher is not None:
        hasher.update(head)
        hasher.update(data)
    return data


def _skip_record(file: BinaryIO, end: int, hasher: hashlib._Hash) -> None:
    head, length = _read_length(file, end, RECORD_BYTES_MAX)
    hasher.update(head)
    while length and (data := file.read(min(length, _CHUNK_BYTES))):
        hasher.update(data)
        length -= len(data)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedRecords(str(error)) from error
