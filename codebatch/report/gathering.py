"""The metrics and the number of findings of each file of a batch, for a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codebatch.model.analysis.language_groups import DATA_LANGUAGES, PROSE_LANGUAGES
from codebatch.model.record import FileClass
from codebatch.operations.api.batch import Batch
from codebatch.operations.queries.findings import RuleFindings
from codebatch.query.answers.dependent_counts import DependentCounts, count_dependents
from codebatch.query.answers.known_dependents import has_hidden_dependents, unparsed_languages
from codebatch.query.answers.numbers import read_file_metrics
from codebatch.query.completeness import emitting_tasks
from codebatch.query.fields import JsonRecord, record_path
from codebatch.query.filters.filters import path_bytes

_FILE_METRICS = ("code", "cognitive", "max_cognitive", "duplicated_lines", "functions")
_PRODUCTION_CLASSES: frozenset[FileClass] = frozenset(("text", "test", "example"))
"""Classes of files that are the project's own code."""
PRODUCTION, TEST, VENDORED = range(3)
"""Categories of files. VENDORED includes generated and minified files."""
_PARTIAL_PARSE_STATES = ("partial", "errors")


@dataclass(slots=True, kw_only=True)
class FileSums:
    """The metrics of a file.

    `key` is its path as bytes, and `path` its display form. `category` is PRODUCTION, TEST or VENDORED. If
    `dependents_partial` is set, the file may have more dependents than were counted.
    """

    key: bytes
    path: str
    language: str
    category: int = PRODUCTION
    findings: int = 0
    dependents_partial: bool = False
    metrics: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> int:
        return self.metrics.get(metric, 0)


@dataclass(slots=True, kw_only=True)
class ReportFiles:
    """The files of a batch by path: the project's own files (`production`), and `vendored` files.

    For each class of other files, `excluded_lines` has the number of files and of their lines.
    """

    production: Mapping[bytes, FileSums]
    vendored: Mapping[bytes, FileSums]
    excluded_lines: Mapping[str, tuple[int, int]]
    partly_parsed: int


_TASK_BY_KIND = {"file": "parse", "metric": "analyze", "duplicate": "duplicates", "edge": "dependencies"}


def emittable_kinds(batch: Batch) -> frozenset[str]:
    """Return the kinds of records that a report uses and that the tasks of the batch can emit.

    A report uses the findings of all tasks. It uses other records only of the built-in task that emits this kind.
    """
    kinds = {kind for kind, task in _TASK_BY_KIND.items() if task in batch.tasks}
    findings = {"diagnostic"} if emitting_tasks(batch.question.catalogue, batch.tasks, ("diagnostic",)) else set()
    return frozenset(kinds | findings)


def gather_files(batch: Batch, rules: Iterable[RuleFindings]) -> ReportFiles:
    """Return the files of a batch by path, with their findings and metrics. Raises StoreCorrupt."""
    records = batch.question.records
    production: dict[bytes, FileSums] = {}
    vendored: dict[bytes, FileSums] = {}
    excluded_lines: dict[str, tuple[int, int]] = {}
    partly_parsed = 0
    non_production = batch.question.non_production_files
    for record in batch.files().result if "parse" in batch.tasks else ():
        partly_parsed += record.get("parse") in _PARTIAL_PARSE_STATES
        key, class_ = path_bytes(record), str(record.get("class"))
        language = str(record.get("lang"))
        category = {None: PRODUCTION, "test": TEST, "foreign": VENDORED}[non_production.category_of(key)]
        file = FileSums(key=key, path=record_path(record), language=language, category=category)
        if class_ in _PRODUCTION_CLASSES and language not in DATA_LANGUAGES:
            production[key] = file
            continue
        if category == VENDORED and language not in DATA_LANGUAGES:
            vendored[key] = file
        own_reason = "text" if language in PROSE_LANGUAGES else "data"
        reason = own_reason if class_ in _PRODUCTION_CLASSES else class_
        files, lines = excluded_lines.get(reason, (0, 0))
        excluded_lines[reason] = files + 1, lines + _line_count(record)
    dependents = DependentCounts({}, are_minimums=False)
    if "dependencies" in batch.tasks:
        dependents = count_dependents(records)
    unparsed = unparsed_languages(records.files)
    for file in (*production.values(), *vendored.values()):
        file.dependents_partial = dependents.are_minimums or has_hidden_dependents(file.language, unparsed)
    for metric, values in (*read_file_metrics(records, _FILE_METRICS).items(), ("dependents", dependents.by_path)):
        for key, value in values.items():
            sums = production.get(key) or vendored.get(key)
            if sums is not None:
                sums.metrics[metric] = value
    for rule in rules:
        for finding in rule.findings:
            sums = production.get(path_bytes(finding)) or vendored.get(path_bytes(finding))
            if sums is not None:
                sums.findings += 1
    return ReportFiles(
        production=production, vendored=vendored, excluded_lines=excluded_lines, partly_parsed=partly_parsed
    )


def _line_count(record: JsonRecord) -> int:
    value = record.get("lines")
    return value if isinstance(value, int) else 0
