"""Queries of a batch for its counts, its records, its errors, and all records of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.analysis.language_groups import unknown_languages
from codebatch.model.entry import Entry, path_row
from codebatch.model.record import RECORD_KINDS, SEVERITIES, FileClass, ParseState
from codebatch.model.record_counts import add_counts
from codebatch.model.shard import work_item_path
from codebatch.model.text.quantities import human_bytes
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.operations.queries.batch_query import Answer, BatchQuery, find_item
from codebatch.query.answers.counting import count_records
from codebatch.query.completeness import (
    Completeness,
    check_kinds,
    emitting_tasks,
    misses_required_files,
    path_completeness,
    tasks_completeness,
)
from codebatch.query.fields import (
    METRIC_PREFIX,
    NO_LANGUAGES,
    JsonRecord,
    RankingField,
    field_value,
    record_fields,
    record_path,
)
from codebatch.query.filters.arguments import refuse_invalid_texts, refuse_numbers_below_one, refuse_unknown
from codebatch.query.filters.filters import RecordFilter, path_bytes
from codebatch.query.filters.paths import PathPatterns
from codebatch.query.filters.record_options import KINDS_FOR_PEOPLE
from codebatch.query.filters.shaping import DEFAULT_SHAPE, AnswerShape, Groups, refuse_unknown_fields
from codebatch.query.sources.file_selection import make_file_predicate
from codebatch.query.sources.records import BatchRecords, restrict_to_task

if TYPE_CHECKING:
    from codebatch.query.answers.summary import Summary
    from codebatch.store.batches.journal import JournalLine


class FileRecords(msgspec.Struct, frozen=True):
    """All records of one file, each with its task. `item` is the number of the file in the batch."""

    path: bytes
    item: int
    records: list[JsonRecord]
    tasks: tuple[str, ...]


class FileContent(NamedTuple):
    """The content of a file in a batch, and its context.

    The context is a value computed from the snapshot that a task's result may depend on (SPEC.md "Context").
    """

    path: bytes
    data: bytes
    context: dict[str, bytes]


def summarise(question: BatchQuery, task: str | None = None) -> Answer[Summary]:
    """Return the counts of a batch, for one task or for all tasks.

    Only the counts for all tasks include the lines of each language. Raises InvalidInput or StoreCorrupt.
    """
    from codebatch.query.answers.language_lines import count_language_lines
    from codebatch.query.answers.summary import summarise as summary_of

    records = question.records
    summary = summary_of(records, task)
    if task is None:
        summary = msgspec.structs.replace(summary, lines=count_language_lines(records))
    answer_completeness = tasks_completeness(records, records.choose_tasks(task), reports_failures=True)
    return Answer(question=question, result=summary, completeness=answer_completeness)


def search_records(
    question: BatchQuery,
    record_filter: RecordFilter,
    *,
    task: str | None = None,
    kinds: Collection[str] | None = None,
    shape: AnswerShape = DEFAULT_SHAPE,
) -> Answer[Iterator[JsonRecord]]:
    """Return the records that pass a filter, sorted by path, task and location, in the requested `shape`.

    Only the first record is read immediately. The others are read during iteration, which can raise StoreCorrupt.
    `kinds` are the requested record types, by default the types that the filter names. Raises InvalidInput or
    StoreCorrupt.
    """
    shape.check(record_filter.check().possible_kinds)
    records = restrict_to_task(question.records, task)
    kinds = _requested_kinds(record_filter, kinds)
    records_by_path = records.iter_by_path(records.choose_tasks(task), record_filter)
    first = next(records_by_path, None)
    if first is None:
        check_kinds(lambda: question.catalogue, records, kinds)
        _note_unknown_languages(question, record_filter)
        _refuse_unknown_rules(question, record_filter)
    matching_records = () if first is None else chain((first,), records_by_path)
    answer_completeness = _answer_completeness(question, record_filter, task, kinds, shape.needed_fields)
    arranged = shape.arrange_records(matching_records, records.languages_for(record_filter, shape.needed_fields))
    return Answer(question=question, result=arranged, completeness=answer_completeness)


def count_by(
    question: BatchQuery,
    record_filter: RecordFilter,
    field: str,
    *,
    task: str | None = None,
    kinds: Collection[str] | None = None,
) -> Answer[Groups]:
    """Return the number of records that pass a filter, for each value of a field.

    If the stored counts suffice, no records are read. `kinds` is as in `search_records`. Raises InvalidInput or
    StoreCorrupt.
    """
    refuse_unknown_fields((field,), record_filter.check().possible_kinds)
    records = restrict_to_task(question.records, task)
    names = records.choose_tasks(task)
    kinds = _requested_kinds(record_filter, kinds)
    counts = count_records(records, names, record_filter, field)
    if not counts.total:
        check_kinds(lambda: question.catalogue, records, kinds)
        _note_unknown_languages(question, record_filter)
        _refuse_unknown_rules(question, record_filter)
    return Answer(
        question=question,
        result=counts,
        completeness=_answer_completeness(question, record_filter, task, kinds, (field,)),
    )


def find_errors(question: BatchQuery, task: str | None = None) -> Answer[list[JsonRecord]]:
    """Return failures with their evidence, then diagnostics of severity `error` by location.

    Raises InvalidInput or StoreCorrupt.
    """
    records = restrict_to_task(question.records, task)
    names = records.choose_tasks(task)
    failures = find_failures(question, names)
    record_filter = RecordFilter(kinds=("diagnostic",), severities=("error",))
    errors = [{**record, "task_id": name} for name in names for record in records.iter_records(name, record_filter)]
    answer_completeness = tasks_completeness(records, names, reports_failures=True)
    return Answer(
        question=question, result=failures + sorted(errors, key=_record_place), completeness=answer_completeness
    )


def find_failures(question: BatchQuery, tasks: Sequence[str]) -> list[JsonRecord]:
    """Return the failures of some tasks with their evidence, such as a traceback. Raises StoreCorrupt."""
    from codebatch.store.batches.journal import read_journal  # Deferred: no other query needs it.

    records, record_filter = question.records, RecordFilter(kinds=("failure",))
    failures = [record for name in tasks for record in records.iter_records(name, record_filter)]
    journal = read_journal(question.store.files, question.batch.root, question.note) if failures else []
    evidence = _read_evidence(records, journal)
    return [{**record, **evidence.get((path_bytes(record), str(record["task"])), {})} for record in failures]


def find_worst(question: BatchQuery, limit: int) -> Answer[list[JsonRecord]]:
    """Return at most `limit` diagnostics, most severe first. Raises InvalidInput or StoreCorrupt."""
    from codebatch.query.answers.summary import worst_findings

    refuse_numbers_below_one(limit=limit)
    records = question.records
    findings = worst_findings(records, limit)
    return Answer(question=question, result=findings, completeness=tasks_completeness(records, records.task_names))


def rank_values(
    question: BatchQuery, by: str, *, limit: int | None = None, task: str | None = None
) -> Answer[list[tuple[str, int]]]:
    """Return the most frequent values of `by`, each with its count. At most `limit` values are returned.

    `by` is `kind`, `code`, `severity`, `lang`, or any other record field. For `path`, `file` and `dir`, diagnostics are
    counted.

    If `by` is METRIC and the name of a metric, return the greatest values of the metric. Each has a path, or for a
    function a path, line and name. Raises InvalidInput, also if the batch does not have the metric, or StoreCorrupt.
    """
    refuse_numbers_below_one(limit=limit)
    if by.startswith(METRIC_PREFIX):
        return _rank_metric(question, by.removeprefix(METRIC_PREFIX), limit=limit, task=task)
    if by not in get_args(RankingField):
        refuse_unknown(
            "ranking",
            (by,),
            dict.fromkeys((*get_args(RankingField), f"{METRIC_PREFIX}NAME", *record_fields(RECORD_KINDS))),
        )
        having = tuple(kind for kind in KINDS_FOR_PEOPLE if by in record_fields((kind,))) or KINDS_FOR_PEOPLE
        answer = count_by(question, RecordFilter(kinds=having), by, task=task, kinds=())
        return Answer(question=question, result=list(answer.result.counts[:limit]), completeness=answer.completeness)
    records = restrict_to_task(question.records, task)
    names = records.choose_tasks(task)
    if by in ("path", "file", "dir"):
        record_filter = RecordFilter(kinds=("diagnostic",))
        field = "dir" if by == "dir" else "path"
        diagnostics = (r for name in names for r in records.iter_records(name, record_filter))
        counted = Counter(str(field_value(r, field, NO_LANGUAGES)) for r in diagnostics)
    else:
        counts = add_counts(records.counts(name) for name in names)
        counted = Counter(
            {"kind": counts.kinds, "code": counts.codes, "severity": counts.severities, "lang": counts.languages}[by]
        )
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
    answer_completeness = tasks_completeness(records, names, reports_failures=by == "kind")
    return Answer(question=question, result=ranked, completeness=answer_completeness)


def describe_codes(
    question: BatchQuery, codes: Collection[str], task: str | None = None
) -> Answer[dict[str, tuple[str, str]]]:
    """Return the severities of each given rule ID in the batch, most severe first, and the first message of the rule.

    Raises InvalidInput or StoreCorrupt.
    """
    refuse_invalid_texts(codes=codes)
    record_filter = RecordFilter(kinds=("diagnostic",), codes=tuple(codes))
    records = restrict_to_task(question.records, task)
    names = records.choose_tasks(task)
    pairs: set[tuple[str, str]] = set()
    messages: dict[str, str] = {}
    for record in records.iter_by_path(names, record_filter):
        code = str(record.get("code"))
        pairs.add((code, str(record.get("severity"))))
        messages.setdefault(code, str(record.get("message")))
    ordered = {code: ", ".join(severity for severity in SEVERITIES if (code, severity) in pairs) for code in codes}
    severity_and_message = {code: (ordered[code], messages.get(code, "")) for code in codes}
    return Answer(question=question, result=severity_and_message, completeness=tasks_completeness(records, names))


def _rank_metric(
    question: BatchQuery, metric: str, *, limit: int | None, task: str | None
) -> Answer[list[tuple[str, int]]]:
    record_filter = RecordFilter(kinds=("metric",), metrics=(metric,))
    answer = search_records(question, record_filter, task=task, shape=AnswerShape(sort="-value", limit=limit))
    values: list[tuple[str, int]] = []
    for record in answer.result:
        place, value = record_path(record), record.get("value")
        if not isinstance(value, int):
            raise StoreCorrupt(f"a metric of {place} has no value")
        if "symbol" in record:
            place += f":{record.get('line', 1)} {record['symbol']}"
        values.append((place, value))
    if not values:
        metrics = count_by(question, RecordFilter(kinds=("metric",)), "metric", task=task)
        if known := [name for name, _ in metrics.result.counts]:
            raise InvalidInput(f"the batch has no metric {metric!r}", hint=did_you_mean_text(metric, known))
    return Answer(question=question, result=values, completeness=answer.completeness)


def inspect_file(
    question: BatchQuery, path: str, record_filter: RecordFilter | None = None, *, kinds: tuple[str, ...] = ()
) -> Answer[FileRecords]:
    """Return the records of one file that pass a filter. `kinds` are the requested record types, by default all.

    Raises InvalidInput or StoreCorrupt.
    """
    records, catalogue = question.records, question.catalogue
    record_filter = (record_filter or RecordFilter(kinds=kinds)).check()
    name, item = find_item(records, path, question.note)
    check_kinds(lambda: catalogue, records, kinds)
    tasks = emitting_tasks(catalogue, records.task_names, kinds)
    by_task = {task: records.item_records(task, item) for task in tasks}
    place = path_row(name)
    languages = records.languages_for(record_filter)
    # A failure of a project task is recorded at the first item of the batch, but is not about this item.
    matches = [
        r
        for task in by_task.values()
        for r in task or ()
        if record_filter.matches(r, languages) and place.items() <= r.items()
    ]
    records.reading.matched += len(matches)
    lacks = misses_required_files(lambda: catalogue, records, tasks, kinds)
    answer_completeness = path_completeness(records, by_task, matches, lacks_files=lacks)
    inspected = FileRecords(path=name, item=item, records=matches, tasks=tasks)
    return Answer(question=question, result=inspected, completeness=answer_completeness)


def read_content(question: BatchQuery, path: str) -> FileContent:
    """Return the content of the file that a path names. Raises InvalidInput, ObjectMissing or StoreCorrupt."""
    records = question.records
    name, item = find_item(records, path, question.note)
    return FileContent(name, records.read_object(records.items[item]), records.plan.item_contexts(item))


def list_files(
    question: BatchQuery,
    limit: int | None = None,
    *,
    parse: Collection[str] = (),
    classes: Collection[str] = (),
    path: PathPatterns = "",
    languages: Collection[str] = (),
) -> Answer[list[tuple[Entry, JsonRecord | None]]]:
    """Return the files of a batch in path order, each with its `file` record, or None if it does not exist yet.

    `parse` and `classes` restrict the files to parse states and file classes, `path` and `languages` by path and
    language. Raises InvalidInput or StoreCorrupt.
    """
    refuse_numbers_below_one(limit=limit)
    refuse_invalid_texts(parse=parse, classes=classes)
    refuse_unknown("state", parse, get_args(ParseState))
    refuse_unknown("class", classes, get_args(FileClass))
    records = question.records
    is_wanted = make_file_predicate(records, path, languages)
    file_records: dict[bytes, JsonRecord] = {}
    needed = {"parse"} & set(records.task_names)
    if needed:
        record_filter = RecordFilter(kinds=("file",))
        file_records = {path_bytes(record): record for record in records.iter_records("parse", record_filter)}
    entries = ((entry, file_records.get(entry.path)) for entry in records.items)
    selected = (
        (entry, record)
        for entry, record in entries
        if is_wanted(entry.path) and _has_value(record, "parse", parse) and _has_value(record, "class", classes)
    )
    rows = list(islice(selected, limit))
    return Answer(
        question=question, result=rows, completeness=tasks_completeness(records, needed, reports_failures=True)
    )


def _has_value(record: JsonRecord | None, field: str, values: Collection[str]) -> bool:
    return not values or (record is not None and record.get(field) in values)


def _read_evidence(records: BatchRecords, lines: list[JournalLine]) -> dict[tuple[bytes, str], dict[str, str]]:
    """Return the evidence of failed tasks by path and task, from the journal. A later event replaces an earlier one."""
    from codebatch.store.batches.journal import Failed, Lost

    work = records.plan.work_by_id()
    evidence: dict[tuple[bytes, str], dict[str, str]] = {}
    deaths: dict[tuple[bytes, str | None], str] = {}
    for event in (line.event for line in lines):
        if not isinstance(event, Lost | Failed) or event.shard is None or event.start is None:
            continue
        shard_work = work.get(event.shard)
        if shard_work is None or not 0 <= event.start < shard_work.items:
            continue
        path = work_item_path(shard_work, event.start, records.items)
        if isinstance(event, Lost):
            size = human_bytes(event.memory_peak_bytes or 0)
            peak = f"peak memory: {size} (without child processes)" if event.memory_peak_bytes else None
            deaths[path, event.task] = deaths[path, None] = "\n".join(
                filter(None, [event.reason, peak, event.evidence])
            )
        else:
            death = "" if event.reason == "needs" else deaths.get((path, event.task)) or deaths.get((path, None), "")
            evidence[path, event.task] = {"evidence": event.evidence or death}
    return evidence


def _requested_kinds(record_filter: RecordFilter, kinds: Collection[str] | None) -> Collection[str]:
    """Return the record types in `kinds`, or those that the filter selects. Raises InvalidInput for an unknown type."""
    if kinds is None:
        return record_filter.named_kinds
    refuse_invalid_texts(kinds=kinds)
    refuse_unknown("kind", kinds, RECORD_KINDS)
    return kinds


def _answer_completeness(
    question: BatchQuery, record_filter: RecordFilter, task: str | None, kinds: Collection[str], fields: Collection[str]
) -> Completeness:
    """Return the completeness of an answer about some record types and fields.

    The answer needs all tasks that produce these types. If the filter or a field needs languages, the answer also needs
    the task `parse`.
    """
    records = restrict_to_task(question.records, task)
    names = records.choose_tasks(task)
    needed = names if records.source.is_done else emitting_tasks(question.catalogue, names, kinds)
    if record_filter.needs_languages(fields):
        needed = tuple(dict.fromkeys(("parse", *needed)))
    lacks = misses_required_files(lambda: question.catalogue, records, names, kinds)
    return tasks_completeness(
        records, needed, reports_failures=record_filter.covers_failures, path=record_filter.path, lacks_files=lacks
    )


def _refuse_unknown_rules(question: BatchQuery, record_filter: RecordFilter) -> None:
    if record_filter.codes or record_filter.tools:
        from codebatch.operations.queries.unmatched_filters import refuse_unknown_rules  # Deferred: it needs the rules.

        refuse_unknown_rules(question, record_filter)


def _note_unknown_languages(question: BatchQuery, record_filter: RecordFilter) -> None:
    if record_filter.languages:
        known = sorted(set(question.records.languages.values()))
        for language in unknown_languages(record_filter.languages, known):
            question.note(f"no {language} files in the batch; its languages: {', '.join(known)}")


def _record_place(record: JsonRecord) -> tuple[bytes, int, int, str]:
    line, column = record["line"], record["column"]
    assert isinstance(line, int)
    assert isinstance(column, int)
    return path_bytes(record), line, column, str(record["code"])
