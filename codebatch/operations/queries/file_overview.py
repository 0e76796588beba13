"""A file on one screen: what it is, how it stands among others, what is hardest in it, what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.model.entry import display_path, path_row
from codebatch.model.record import SEVERITIES
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.records import FileRecords, inspect
from codebatch.operations.queries.source_line import SourceLine, read_lines
from codebatch.query.answers.dependents import count_dependents
from codebatch.query.answers.import_rules import may_be_used_without_import
from codebatch.query.answers.numbers import files_above
from codebatch.query.completeness import completeness
from codebatch.query.fields import JsonRecord, path_key
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.record_options import KINDS_FOR_PEOPLE
from codebatch.query.sources.records import BatchRecords

HARDEST_SHOWN = 3
FINDINGS_SHOWN = 3
_COGNITIVE = "cognitive"
_LOOKED_UP_MAX = 50
"""Of more files all are read, once."""


class Hard(msgspec.Struct, frozen=True):
    """A function of a file, and its cognitive complexity."""

    cognitive: int
    symbol: str
    line: int


class OverviewFinding(msgspec.Struct, frozen=True):
    """A diagnostic, as JSON has it, and the line where it begins, None where that is not known."""

    diagnostic: JsonRecord
    source: SourceLine | None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of a file. `numbers` maps metrics to values.

    - `rank`: its position by complexity among the files of its language.
    - `dependents_in_all`: the number of files that depend on it directly or indirectly.
    - `kinds`: the number of its records of each type.

    `rank` and `dependents_in_all` are None if the batch does not cover the whole project.
    """

    path: bytes
    about: JsonRecord | None
    numbers: dict[str, int]
    rank: int | None
    dependents_in_all: int | None
    dependents_partial: bool
    hardest: tuple[Hard, ...]
    severities: dict[str, int]
    findings: tuple[OverviewFinding, ...]
    kinds: dict[str, int]


def overview(question: BatchQuery, path: str) -> Answer[Overview]:
    """A file on one screen. Raises InvalidInput or StoreCorrupt."""
    answer = inspect(question, path, RecordFilter(kinds=KINDS_FOR_PEOPLE))
    file = answer.found
    of_kind: dict[str, list[JsonRecord]] = {}
    for record in file.records:
        of_kind.setdefault(str(record["kind"]), []).append(record)
    metrics, diagnostics = of_kind.get("metric", ()), of_kind.get("diagnostic", ())
    numbers = {str(each["metric"]): _number(each["value"]) for each in metrics if "symbol" not in each}
    about = next(iter(of_kind.get("file", ())), None)
    severities = Counter(str(each["severity"]) for each in diagnostics)
    found = Overview(
        path=file.path,
        about=about,
        numbers=numbers,
        rank=_rank(question, about, numbers) if _knows_all(question, {"parse", "analyze"}) else None,
        dependents_in_all=_dependents(question.records, file.path) if _knows_all(question, {"dependencies"}) else None,
        dependents_partial=may_be_used_without_import(str((about or {}).get("lang", "")), file.path),
        hardest=_hardest(metrics),
        severities={each: severities[each] for each in SEVERITIES if severities[each]},
        findings=_with_source(question, file, diagnostics),
        kinds={kind: len(records) for kind, records in of_kind.items()},
    )
    return Answer(question=question, found=found, whole=answer.whole)


def _knows_all(question: BatchQuery, tasks: Collection[str]) -> bool:
    """Whether the batch has all that some tasks say of the whole project."""
    records = question.records
    if question.batch.about.paths or not {*tasks} <= {*records.task_names}:
        return False
    if records.source.is_done:
        return True
    needed = frozenset[str]().union(*map(records.plan.needed_for, tasks))
    return completeness(records, needed).is_complete


def _rank(question: BatchQuery, about: JsonRecord | None, numbers: dict[str, int]) -> int | None:
    """The place of a file among those of its language, None where nothing of it is complex."""
    if about is None or not numbers.get(_COGNITIVE):
        return None
    records, kept = question.records, question.find_numbers()
    if kept is None:
        above = files_above(records, _COGNITIVE, numbers[_COGNITIVE])
    else:
        of_files = kept.of(_COGNITIVE) or {}
        above = [path for path, value in of_files.items() if value > numbers[_COGNITIVE]]
    if len(above) > _LOOKED_UP_MAX and kept is not None:
        of_kept = kept.languages
        return 1 + sum(of_kept.get(path) == about["lang"] for path in above)
    if len(above) > _LOOKED_UP_MAX:
        return 1 + sum(records.languages.get(path_key({**path_row(path)})) == about["lang"] for path in above)
    of = records.find_items(above).values()
    told = (each for item in of for each in records.item_records("parse", item) or () if each["kind"] == "file")
    return 1 + sum(each["lang"] == about["lang"] for each in told)


def _dependents(records: BatchRecords, path: bytes) -> int | None:
    """How many files lead to one, be it by others; None where its path is no UTF-8, which no import names."""
    try:
        return count_dependents(records, path.decode())
    except UnicodeDecodeError:
        return None


def _hardest(metrics: Collection[JsonRecord]) -> tuple[Hard, ...]:
    functions = [
        Hard(_number(each["value"]), str(each["symbol"]), _number(each.get("line", 1)))
        for each in metrics
        if each["metric"] == _COGNITIVE and "symbol" in each
    ]
    functions.sort(key=lambda each: (-each.cognitive, each.line))
    return tuple(functions[:HARDEST_SHOWN])


def _with_source(
    question: BatchQuery, file: FileRecords, diagnostics: Sequence[JsonRecord]
) -> tuple[OverviewFinding, ...]:
    """The gravest, by place, each with its line."""
    chosen = sorted(diagnostics, key=lambda each: SEVERITIES.index(str(each["severity"])))[:FINDINGS_SHOWN]
    found = []
    for each in chosen:
        line = _number(each["line"])
        source: tuple[SourceLine, ...] = ()
        try:
            _, source = read_lines(question, file.path, file.item, line, line)
        except ObjectMissing as error:
            question.note(f"source of {display_path(file.path)} not shown: {error.message}")
        found.append(OverviewFinding(each, source[0] if source else None))
    return tuple(found)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
