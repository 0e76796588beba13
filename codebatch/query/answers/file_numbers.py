"""What is asked most often of the files of a merged batch, kept so that few records need to be read for it.

`cache/numbers-<16 hex of the result digest>.bin` holds which files stand apart, which were parsed in part, and some
metrics of each. Who asks for all of it makes it, where it is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.record import CLASSES_APART
from codebatch.query.secondary_files import Apart
from codebatch.query.sources.records import BatchRecords
from codebatch.store import layout
from codebatch.store.cache_files import read_kept, write_kept

_METRICS = ("dependents", "cycle", "cognitive", "max_cognitive", "max_complexity")
_MAGIC = b"cbnumb\0\3"

T = TypeVar("T")


class FileNumbers(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of the files of a batch, each part packed: few questions need all of them.

    `made_of`: of which merged results, and by which classes files stand apart. `metrics` have a value for each of
    `paths`, 0 where there is none; `languages` are theirs.
    """

    made_of: tuple[str, list[str]]
    packed_apart: msgspec.Raw
    packed_in_part: msgspec.Raw
    packed_paths: msgspec.Raw
    packed_languages: msgspec.Raw
    packed_metrics: dict[str, msgspec.Raw]

    @property
    def apart(self) -> dict[bytes, Apart]:
        """The files that stand apart."""
        return cast("dict[bytes, Apart]", _unpack(self.packed_apart, dict[bytes, str]))

    @property
    def in_part(self) -> set[bytes]:
        """The files that were parsed in part, or have syntax errors."""
        return _unpack(self.packed_in_part, set[bytes])

    @property
    def languages(self) -> Mapping[bytes, str]:
        """The language of each file that has any of the metrics, by path."""
        languages = _unpack(self.packed_languages, list[str])
        return dict(zip(_unpack(self.packed_paths, list[bytes]), languages, strict=True))

    def of(self, metric: str) -> Mapping[bytes, int] | None:
        """A metric of the files of which it is not 0; None where the batch lacks the task that gives it."""
        if metric not in self.packed_metrics:
            return None
        values = _unpack(self.packed_metrics[metric], list[int])
        paths = _unpack(self.packed_paths, list[bytes])
        return {path: value for path, value in zip(paths, values, strict=True) if value}


def kept_numbers(records: BatchRecords) -> FileNumbers | None:
    """What is kept of a batch; None where nothing is."""
    outputs = records.source.outputs
    if outputs is None:
        return None
    digest = outputs.manifest.result_digest
    body = read_kept(records.store, layout.numbers_cache_name(digest), _MAGIC)
    try:
        kept = None if body is None else _unpack(body, FileNumbers)
    except msgspec.DecodeError:
        return None
    return kept if kept is not None and kept.made_of == _made_of(digest) else None


def keep_numbers(records: BatchRecords) -> FileNumbers | None:
    """Make what is kept of a batch; None where it does not know all of its files. Raises StoreCorrupt."""
    from codebatch.query.answers.numbers import numbers_of_files
    from codebatch.query.sources.parsed_files import IN_PART, files_apart  # 2 ms, and once of each batch

    outputs = records.source.outputs
    if outputs is None or not records.source.is_done:
        return None
    found = numbers_of_files(records, _METRICS)
    paths = sorted(set().union(*found.values()))
    languages = {file.path_bytes: file.lang for file in records.files}
    digest = outputs.manifest.result_digest
    made = FileNumbers(
        _made_of(digest),
        _pack(files_apart(records.files)),
        _pack(sorted(file.path_bytes for file in records.files if file.parse in IN_PART)),
        _pack(paths),
        _pack([languages.get(path, "") for path in paths]),
        {metric: _pack([values.get(path, 0) for path in paths]) for metric, values in found.items()},
    )
    write_kept(records.store, layout.numbers_cache_name(digest), _MAGIC, msgspec.msgpack.encode(made))
    return made


def _made_of(result_digest: Digest) -> tuple[str, list[str]]:
    return result_digest, sorted(CLASSES_APART)


def _pack(part: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(part))


def _unpack(packed: bytes | msgspec.Raw, of: type[T]) -> T:
    return msgspec.msgpack.decode(packed, type=of)
