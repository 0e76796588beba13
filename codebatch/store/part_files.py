"""Part files: the outcomes of a part, in a file that another machine joins (SPEC.md "Part files").

A part file may come from anywhere. So its type, lengths and checksum are verified before anything is decoded, and only
data of known types is decoded.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
import uuid
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.digest import Digest
from codebatch.model.part import PART_FORMAT, ExternalOutcome, PartHeader
from codebatch.store import layout
from codebatch.system.files.files import RealFiles

MAGIC = b"cbpart\0\1"
PART_BYTES_MAX = 64 << 30
HEADER_BYTES_MAX = 256 << 20
RECORD_BYTES_MAX = 1 << 30
"""Maximum length of an outcome in a part file, with its frames and its table."""

_CHUNK_BYTES = 1 << 20
_DIGEST_BYTES = 32
_length_struct = struct.Struct("<Q")
_encoder = msgspec.msgpack.Encoder()
_header_decoder = msgspec.msgpack.Decoder(PartHeader)
_outcome_decoder = msgspec.msgpack.Decoder(ExternalOutcome)

T = TypeVar("T")


class DamagedPart(InvalidInput):
    """A part file that is truncated, or whose bytes do not match its checksum. The part must run again."""


class PartFile(msgspec.Struct, frozen=True):
    """A part file whose lengths and checksum were verified. `digest` is the checksum of its content."""

    path: Path
    header: PartHeader
    digest: Digest
    bytes: int


def part_name(header: PartHeader, digest: Digest) -> str:
    """Return the name of a part file. Files with different contents have different names."""
    part = header.part
    return f"codebatch-{header.plan_digest[:12]}-{part.numbers}-of-{part.count}-{digest[:8]}{layout.PART_FILE_SUFFIX}"


def write_part(target: Path | None, header: PartHeader, outcomes: Iterable[ExternalOutcome]) -> PartFile:
    """Write a part file under a hidden name, sync it, and rename it. On return the file is durable.

    `target` is the path of the file, or a directory in which it gets the name `part_name`. By default, this is the
    current directory. Raises StoreUnwritable, and the errors of `outcomes`.
    """
    files = RealFiles()
    target = target or Path()
    directory = target if target.is_dir() else target.parent
    # Snapshots exclude this name too, even if the process dies before it renames the file.
    hidden = directory / f".{uuid.uuid4().hex}{layout.PART_FILE_SUFFIX}"
    hasher = hashlib.sha256()
    appender = files.open_append(hidden)
    size = 0
    try:
        try:
            for data in _encode(header, outcomes):
                hasher.update(data)
                appender.append(data)
                size += len(data)
            appender.append(hasher.digest())
            appender.sync()
        finally:
            appender.close()
        digest = Digest(hasher.hexdigest())
        path = target / part_name(header, digest) if target.is_dir() else target
        files.replace(hidden, path)
    except BaseException:
        files.remove(hidden)
        raise
    files.sync_directory(directory)
    return PartFile(path, header, digest, size + _DIGEST_BYTES)


def _encode(header: PartHeader, outcomes: Iterable[ExternalOutcome]) -> Iterator[bytes]:
    yield MAGIC
    for record in chain((header,), outcomes):
        encoded = _encoder.encode(record)
        yield _length_struct.pack(len(encoded)) + encoded


def read_part(path: Path) -> PartFile:
    """Verify the lengths and the checksum of a part file, and return its header.

    Raises InvalidInput if the file cannot be read or is not a part file, and DamagedPart if it is damaged or truncated.
    """
    with _open_part(path) as file:
        size = os.fstat(file.fileno()).st_size
        hasher = hashlib.sha256()
        data = file.read(len(MAGIC))
        if data != MAGIC:
            if data == MAGIC[: len(data)]:
                raise _damage(path, "it is truncated")
            raise InvalidInput(
                f"{str(path)!r} is not a part file", hint="write one with: codebatch run --part K/N PATH"
            )
        if size > PART_BYTES_MAX:
            raise InvalidInput(f"{str(path)!r} is longer than {PART_BYTES_MAX >> 30} GiB")
        hasher.update(data)
        end = size - _DIGEST_BYTES
        header = _decode(path, _header_decoder, _read_record(path, file, end, HEADER_BYTES_MAX, hasher))
        if header.format != PART_FORMAT:
            raise InvalidInput(
                f"{str(path)!r} has format {header.format}, but this version reads format {PART_FORMAT}",
                hint="use the same version of codebatch for all parts",
            )
        while file.tell() < end:
            _skip_record(path, file, end, hasher)
        if file.read(_DIGEST_BYTES + 1) != hasher.digest():
            raise _damage(path, "its checksum does not match")
    return PartFile(path, header, Digest(hasher.hexdigest()), size)


def iter_part_outcomes(part: PartFile) -> Iterator[ExternalOutcome]:
    """Yield the outcomes of a part file. Raises DamagedPart or InvalidInput."""
    with _open_part(part.path) as file:
        end = part.bytes - _DIGEST_BYTES
        file.seek(len(MAGIC))
        _skip_record(part.path, file, end)
        while file.tell() < end:
            yield _decode(part.path, _outcome_decoder, _read_record(part.path, file, end, RECORD_BYTES_MAX))


def _open_part(path: Path) -> BinaryIO:
    """Open a regular file without waiting for the writer of a FIFO. Raises InvalidInput."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "it is not a regular file")
    except OSError as error:
        raise InvalidInput(f"cannot read the part {str(path)!r}: {error.strerror}") from error
    return open(fd, "rb")


def _read_length(path: Path, file: BinaryIO, end: int, limit: int) -> tuple[bytes, int]:
    data = file.read(_length_struct.size)
    if len(data) < _length_struct.size:
        raise _damage(path, "it is truncated")
    (length,) = _length_struct.unpack(data)
    if not 0 < length <= min(limit, end - file.tell()):
        raise _damage(path, "it is truncated, or one of its lengths is wrong")
    return data, length


def _read_record(path: Path, file: BinaryIO, end: int, limit: int, hasher: hashlib._Hash | None = None) -> bytes:
    head, length = _read_length(path, file, end, limit)
    data = file.read(length)
    if hasher is not None:
        hasher.update(head)
        hasher.update(data)
    return data


def _skip_record(path: Path, file: BinaryIO, end: int, hasher: hashlib._Hash | None = None) -> None:
    limit = RECORD_BYTES_MAX if hasher is not None else HEADER_BYTES_MAX
    head, length = _read_length(path, file, end, limit)
    if hasher is None:
        file.seek(length, os.SEEK_CUR)
        return
    hasher.update(head)
    while length and (data := file.read(min(length, _CHUNK_BYTES))):
        hasher.update(data)
        length -= len(data)


def _decode(path: Path, decoder: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _damage(path, str(error)) from error


def _damage(path: Path, problem: str) -> DamagedPart:
    return DamagedPart(f"the part {str(path)!r} is damaged: {problem}", hint="run this part again")
