"""Part files: the outcomes of a part, in a file that another machine joins (SPEC.md "Part files").

A part file may come from anywhere. So its lengths and checksum are verified before anything is decoded.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.digest import Digest
from codebatch.model.part import PART_FORMAT, ExternalOutcome, PartHeader
from codebatch.store import layout
from codebatch.store.sealed_records import DamagedRecords, SealedFormat, UnknownRecords
from codebatch.system.files.files import RealFiles

MAGIC = b"cbpart\0\1"
PART_BYTES_MAX = 64 << 30

_part_format = SealedFormat(MAGIC, PartHeader, ExternalOutcome)


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
    appender = files.open_append(hidden)
    try:
        try:
            digest, size = _part_format.write(appender.append, header, outcomes)
            appender.sync()
        finally:
            appender.close()
        path = target / part_name(header, digest) if target.is_dir() else target
        files.replace(hidden, path)
    except BaseException:
        files.remove(hidden)
        raise
    files.sync_directory(directory)
    return PartFile(path, header, digest, size)


def read_part(path: Path) -> PartFile:
    """Verify the lengths and the checksum of a part file, and return its header.

    Raises InvalidInput if the file cannot be read or is not a part file, and DamagedPart if it is damaged or truncated.
    """
    with _open_part(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > PART_BYTES_MAX:
            raise InvalidInput(f"{str(path)!r} is longer than {PART_BYTES_MAX >> 30} GiB")
        try:
            with _damage_as_error(path):
                header, digest = _part_format.read_header(file, size)
        except UnknownRecords as error:
            raise InvalidInput(
                f"{str(path)!r} is not a part file", hint="write one with: codebatch run --part K/N PATH"
            ) from error
    if header.format != PART_FORMAT:
        raise InvalidInput(
            f"{str(path)!r} has format {header.format}, but this version reads format {PART_FORMAT}",
            hint="use the same version of codebatch for all parts",
        )
    return PartFile(path, header, digest, size)


def iter_part_outcomes(part: PartFile) -> Iterator[ExternalOutcome]:
    """Yield the outcomes of a part file. Raises DamagedPart or InvalidInput."""
    with _open_part(part.path) as file, _damage_as_error(part.path):
        yield from _part_format.iter_records(file, part.bytes)


@contextlib.contextmanager
def _damage_as_error(path: Path) -> Iterator[None]:
    try:
        yield
    except DamagedRecords as error:
        raise DamagedPart(f"the part {str(path)!r} is damaged: {error}", hint="run this part again") from error


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
