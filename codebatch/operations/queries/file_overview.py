"""Overview of a file: its properties, its rank by complexity, its most complex functions and its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.model.entry import display_path
from codebatch.model.record import SEVERITIES
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.records import FileRecords, inspect_file
from codebatch.operations.queries.source_line import SourceLine, read_lines
from codebatch.query.answers.dependencies import BatchImports, find_dependents
from codebatch.query.answers.known_dependents import has_hidden_dependents, unparsed_languages
from codebatch.query.answers.numbers import read_file_metrics
from codebatch.query.completeness import tasks_completeness
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.record_options import KINDS_FOR_PEOPLE
from codebatch.query.sources.records import BatchRecords

HARDEST_SHOWN_MAX = 3
FINDINGS_SHOWN_MAX = 3
_COGNITIVE_METRIC = "cognitive"


class ComplexFunction(msgspec.Struct, frozen=True):
    """A function of a file with its cognitive complexity."""

    cognitive: int
    symbol: str
    line: int


class OverviewFinding(msgspec.Struct, frozen=True):
    """A diagnostic in the form of JSON answers, and the source line where it begins, or None if unknown."""

    diagnostic: JsonRecord
    source: SourceLine | None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of a file. `numbers` maps the names of metrics to their values.

    - `rank`: the position of the file by complexity, among the files of its language.
    - `dependents_in_all`: the number of files that depend on the file directly or indirectly.
    - `kinds`: the number of records of the file by type.

    `rank` and `dependents_in_all` are None if the batch does not cover the whole project.
    """

    path: bytes
    about: JsonRecord | None
    numbers: dict[str, int]
    rank: int | None
    dependents_in_all: int | None
    dependents_partial: bool
    hardest: tuple[ComplexFunction, ...]
    severities: dict[str, int]
    findings: tuple[OverviewFinding, ...]
    kinds: dict[str, int]


def read_overview(question: BatchQuery, path: str) -> Answer[Overview]:
    """Return the overview of a file. Raises InvalidInput or StoreCorrupt."""
    answer = inspect_file(question, path, RecordFilter(kinds=KINDS_FOR_PEOPLE))
    file = answer.result
    by_kind: dict[str, list[JsonRecord]] = {}
    for record in file.records:
        by_kind.setdefault(str(record["kind"]), []).append(record)
    metrics, diagnostics = by_kind.get("metric", ()), by_kind.get("diagnostic", ())
    numbers = {str(metric["metric"]): _int_or_zero(metric["value"]) for metric in metrics if "symbol" not in metric}
    file_record = next(iter(by_kind.get("file", ())), None)
    severities = Counter(str(diagnostic["severity"]) for diagnostic in diagnostics)
    result = Overview(
        path=file.path,
        about=file_record,
        numbers=numbers,
        rank=_complexity_rank(question, file_record, numbers)
        if _covers_project(question, {"parse", "analyze"})
        else None,
        dependents_in_all=_dependent_count(question.records, file.path)
        if _covers_project(question, {"dependencies"})
        else None,
        dependents_partial=has_hidden_dependents(
            str((file_record or {}).get("lang", "")), unparsed_languages(question.records.files)
        ),
        hardest=_hardest_functions(metrics),
        severities={severity: severities[severity] for severity in SEVERITIES if severities[severity]},
        findings=_with_source(question, file, diagnostics),
        kinds={kind: len(records) for kind, records in by_kind.items()},
    )
    return Answer(question=question, result=result, completeness=answer.completeness)


def _covers_project(question: BatchQuery, tasks: Collection[str]) -> bool:
    """Return whether the batch covers the whole project and has all results of the given tasks."""
    records = question.records
    if question.batch.about.paths or not {*tasks} <= {*records.task_names}:
        return False
    if records.source.is_done:
        return True
    needed = frozenset[str]().union(*map(records.plan.needed_for, tasks))
    return tasks_completeness(records, needed).is_complete


def _complexity_rank(question: BatchQuery, file_record: JsonRecord | None, numbers: dict[str, int]) -> int | None:
    """Return the rank of a file by complexity among files of its language, or None if its complexity is 0."""
    if file_record is None or not numbers.get(_COGNITIVE_METRIC):
        return None
    values = read_file_metrics(question.records, (_COGNITIVE_METRIC,))[_COGNITIVE_METRIC]
    same_language = (file for file in question.records.files if file.lang == file_record["lang"])
    return 1 + sum(values.get(file.path_bytes, 0) > numbers[_COGNITIVE_METRIC] for file in same_language)


def _dependent_count(records: BatchRecords, path: bytes) -> int | None:
    """Return the number of files that depend on a file, directly or indirectly.

    Return None if the path is not UTF-8, because no import can name such a file.
    """
    try:
        return len(find_dependents(BatchImports(records).importers_of, path.decode()))
    except UnicodeDecodeError:
        return None


def _hardest_functions(metrics: Collection[JsonRecord]) -> tuple[ComplexFunction, ...]:
    functions = [
        ComplexFunction(_int_or_zero(metric["value"]), str(metric["symbol"]), _int_or_zero(metric.get("line", 1)))
        for metric in metrics
        if metric["metric"] == _COGNITIVE_METRIC and "symbol" in metric
    ]
    functions.sort(key=lambda metric: (-metric.cognitive, metric.line))
    return tuple(functions[:HARDEST_SHOWN_MAX])


def _with_source(
    question: BatchQuery, file: FileRecords, diagnostics: Sequence[JsonRecord]
) -> tuple[OverviewFinding, ...]:
    """Return the most severe findings, each with its source line. They are sorted by severity, then by location."""
    most_severe = sorted(diagnostics, key=lambda finding: SEVERITIES.index(str(finding["severity"])))[
        :FINDINGS_SHOWN_MAX
    ]
    findings_with_source = []
    for finding in most_severe:
        line = _int_or_zero(finding["line"])
        source: tuple[SourceLine, ...] = ()
        try:
            _, source = read_lines(question, file.path, file.item, line, line)
        except ObjectMissing as error:
            question.note(f"source of {display_path(file.path)} not shown: {error.message}")
        findings_with_source.append(OverviewFinding(finding, source[0] if source else None))
    return tuple(findings_with_source)


def _int_or_zero(value: object) -> int:
    return value if isinstance(value, int) else 0
