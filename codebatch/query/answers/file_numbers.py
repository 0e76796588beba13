"""Cached numbers of the files of a merged batch, so that frequent questions read few records.

`cache/numbers-<16 hex of the result digest>.bin` contains the non-production files, the partially parsed files and some
metrics of each file. The first caller that needs all of them writes it.
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
    """The cached numbers of the files of a batch.

    Each part is packed separately, because few questions need all of them.

    `made_of` has the digest of the merged results and the classes of non-production files; they identify the inputs.
    `metrics` and `languages` have a value for each of `paths`. A missing metric is 0.
    """

    made_of: tuple[str, list[str]]
    packed_apart: msgspec.Raw
    packed_in_part: msgspec.Raw
    packed_paths: msgspec.Raw
    packed_languages: msgspec.Raw
    packed_metrics: dict[str, msgspec.Raw]

    @property
    def apart(self) -> dict[bytes, Apart]:
        """The category of each non-production file, by path."""
        return cast("dict[bytes, Apart]", _unpack(self.packed_apart, dict[bytes, str]))

    @property
    def in_part(self) -> set[bytes]:
        """The partially parsed files and the files with syntax errors."""
        return _unpack(self.packed_in_part, set[bytes])

    @property
    def languages(self) -> Mapping[bytes, str]:
        """The language of each file that has one of the metrics, by path."""
        languages = _unpack(self.packed_languages, list[str])
        return dict(zip(_unpack(self.packed_paths, list[bytes]), languages, strict=True))

    def of(self, metric: str) -> Mapping[bytes, int] | None:
        """Return the values of a metric that are not 0, by path, or None if the batch did not run the task that
        computes it.
        """
        if metric not in self.packed_metrics:
            return None
        values = _unpack(self.packed_metrics[metric], list[int])
        paths = _unpack(self.packed_paths, list[bytes])
        return {path: value for path, value in zip(paths, values, strict=True) if value}


def kept_numbers(records: BatchRecords) -> FileNumbers | None:
    """Return the cached numbers of a batch, or None if there is no valid cache file."""
    outputs = records.source.outputs
    if outputs is None:
        return None
    digest = outputs.manifest.result_digest
    body = read_kept(records.store, layout.numbers_cache_name(digest), _MAGIC)
    try:
        cached = None if body is None else _unpack(body, FileNumbers)
    except msgspec.DecodeError:
        return None
    return cached if cached is not None and cached.made_of == _cache_inputs(digest) else None


def keep_numbers(records: BatchRecords) -> FileNumbers | None:
    """Compute and cache the numbers of a batch. Return None if the batch lacks results. Raises StoreCorrupt."""
    from codebatch.query.answers.numbers import numbers_of_files

    # Imported late: the cache is written once for each batch.
    from codebatch.query.sources.parsed_files import IN_PART, files_apart

    outputs = records.source.outputs
    if outputs is None or not records.source.is_done:
        return None
    by_metric = numbers_of_files(records, _METRICS)
    paths = sorted(set().union(*by_metric.values()))
    languages = {file.path_bytes: file.lang for file in records.files}
    digest = outputs.manifest.result_digest
    numbers = FileNumbers(
        _cache_inputs(digest),
        _pack(files_apart(records.files)),
        _pack(sorted(file.path_bytes for file in records.files if file.parse in IN_PART)),
        _pack(paths),
        _pack([languages.get(path, "") for path in paths]),
        {metric: _pack([values.get(path, 0) for path in paths]) for metric, values in by_metric.items()},
    )
    write_kept(records.store, layout.numbers_cache_name(digest), _MAGIC, msgspec.msgpack.encode(numbers))
    return numbers


def _cache_inputs(result_digest: Digest) -> tuple[str, list[str]]:
    return result_digest, sorted(CLASSES_APART)


def _pack(part: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(part))


def _unpack(packed: bytes | msgspec.Raw, type_: type[T]) -> T:
    return msgspec.msgpack.decode(packed, type=type_)
