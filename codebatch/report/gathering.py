"""What a report needs of a batch, summed while its records are read once."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from codebatch.application.opened_batch import OpenedBatch
from codebatch.model.record import SEVERITIES, Duplicate
from codebatch.query.completeness import tasks_that_give
from codebatch.query.fields import JsonRecord, PathKey, path_key, record_path
from codebatch.query.filters import path_bytes
from codebatch.report.contents import Function

_OF_FILES = ("code", "cognitive", "max_cognitive", "duplicated_lines", "dependents", "functions")
_OF_FUNCTIONS = ("cognitive", "complexity", "nesting", "parameters")
_OWN = "text"
"""The class of files that the project itself wrote."""


@dataclass(slots=True, kw_only=True)
class FileSums:
    """A file of the project's own code, with its numbers (contents.py). `path` is as people are shown it."""

    key: bytes
    path: str
    language: str
    findings: int = 0
    metrics: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> int:
        return self.metrics.get(metric, 0)


@dataclass(slots=True, kw_only=True)
class RuleSums:
    """What was found by a rule: how often, in how many files, and the first of the gravest."""

    first: JsonRecord
    count: int = 0
    paths: set[PathKey] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class Gathered:
    """What was read. `left_out` counts files and their lines by class; `duplicates` are by group."""

    asked: frozenset[str]
    files: dict[PathKey, FileSums] = field(default_factory=dict)
    left_out: dict[str, tuple[int, int]] = field(default_factory=dict)
    partly_parsed: int = 0
    functions: list[Function] = field(default_factory=list)
    rules: dict[str, RuleSums] = field(default_factory=dict)
    duplicates: dict[str, list[Duplicate]] = field(default_factory=dict)


def gather(batch: OpenedBatch, functions_max: int) -> Gathered:
    """Read a batch. Of functions the hardest alone are kept, by path where they are equal. Raises StoreCorrupt."""
    gathered = Gathered(asked=_asked(batch))
    if "file" in gathered.asked:
        _take_files(gathered, batch.files().found)
    if "metric" in gathered.asked:
        every = batch.metrics(metric=sorted({*_OF_FILES, *_OF_FUNCTIONS})).found
        functions = _take_metrics(gathered, every)
        gathered.functions = heapq.nsmallest(functions_max, functions, key=lambda each: -each.cognitive)
    if "diagnostic" in gathered.asked:
        _take_findings(gathered, batch.diagnostics().found)
    if "duplicate" in gathered.asked:
        for each in batch.duplicates():
            if _key_of(each) in gathered.files:
                gathered.duplicates.setdefault(each.group, []).append(each)
    return gathered


def _asked(batch: OpenedBatch) -> frozenset[str]:
    """The kinds of which there can be records in a batch."""
    catalogue = batch.question.catalogue
    return frozenset(
        kind
        for kind in ("file", "metric", "diagnostic", "duplicate", "edge")
        if tasks_that_give(catalogue, batch.tasks, (kind,))
    )


def _key_of(record: Duplicate) -> PathKey:
    return (
        record.path if isinstance(record.path, str) else None,
        record.path_b64 if isinstance(record.path_b64, str) else None,
    )


def _take_files(gathered: Gathered, records: Iterable[JsonRecord]) -> None:
    for record in records:
        gathered.partly_parsed += record.get("parse") == "errors"
        class_ = str(record.get("class"))
        if class_ == _OWN:
            key = path_key(record)
            gathered.files[key] = FileSums(
                key=path_bytes(record), path=record_path(record), language=str(record.get("lang"))
            )
        else:
            files, lines = gathered.left_out.get(class_, (0, 0))
            gathered.left_out[class_] = files + 1, lines + _number(record, "lines")


def _take_metrics(gathered: Gathered, records: Iterable[JsonRecord]) -> Iterator[Function]:
    """Take the numbers of files, and give the functions."""
    for _, of_file in groupby(records, key=path_bytes):
        sums: FileSums | None = None
        functions: dict[tuple[str, int], dict[str, int]] = {}
        for record in of_file:
            sums = sums or gathered.files.get(path_key(record))
            if sums is None:
                break
            name, metric = str(record.get("symbol", "")), str(record["metric"])
            if name:
                functions.setdefault((name, _number(record, "line")), {})[metric] = _number(record, "value")
            else:
                sums.metrics[metric] = _number(record, "value")
        for (name, line), metrics in functions.items():
            assert sums is not None, "it has functions"
            values = {metric: metrics.get(metric, 0) for metric in _OF_FUNCTIONS}
            yield Function(name=name, path=sums.path, line=line, **values)


def _take_findings(gathered: Gathered, records: Iterable[JsonRecord]) -> None:
    for record in records:
        key = path_key(record)
        sums = gathered.files.get(key)
        if sums is not None and record.get("severity") != "hint":
            sums.findings += 1
        rule = gathered.rules.setdefault(str(record.get("code")), RuleSums(first=record))
        rule.count += 1
        rule.paths.add(key)
        if _gravity(record) < _gravity(rule.first):
            rule.first = record


def _gravity(record: JsonRecord) -> int:
    severity = record.get("severity")
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _number(record: JsonRecord, name: str) -> int:
    value = record.get(name, 1 if name == "line" else 0)
    return value if isinstance(value, int) else 0
