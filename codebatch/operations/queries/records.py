"""What can be asked of a batch: its counts, its records, what went wrong, everything of one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.entry import Entry, path_row
from codebatch.model.record import KINDS, SEVERITIES, FileClass, ParseState
from codebatch.model.record_counts import add_counts
from codebatch.model.shard import path_of
from codebatch.model.text.quantities import human_bytes
from codebatch.model.text.suggestions import did_you_mean
from codebatch.operations.queries.batch_query import Answer, BatchQuery, find_item
from codebatch.operations.queries.ranking import METRIC, Ranking
from codebatch.query.answers.counting import count_records
from codebatch.query.completeness import (
    Completeness,
    check_kinds,
    completeness,
    completeness_at,
    lacks_files,
    tasks_that_give,
)
from codebatch.query.fields import NO_LANGUAGES, JsonRecord, fields_of, record_path, value_of
from codebatch.query.filters.arguments import refuse_below_one, refuse_text, refuse_unknown
from codebatch.query.filters.filters import RecordFilter, path_bytes
from codebatch.query.filters.record_options import KINDS_FOR_PEOPLE
from codebatch.query.filters.shaping import AS_FOUND, Groups, Shape, refuse_unknown_fields
from codebatch.query.sources.records import BatchRecords

if TYPE_CHECKING:
    from codebatch.query.answers.summary import Summary
    from codebatch.store.batches.journal import JournalLine


class FileRecords(msgspec.Struct, frozen=True):
    """All records of one file, with their tasks, and the position of the file in the batch."""

    path: bytes
    item: int
    records: list[JsonRecord]
    tasks: tuple[str, ...]


class FileContent(NamedTuple):
    """The content of a file in a batch, and its context (SPEC.md "Context")."""

    path: bytes
    data: bytes
    context: dict[str, bytes]


def summarise(question: BatchQuery, task: str | None = None) -> Answer[Summary]:
    """Count what a batch found, of one task or of all, and then the lines of each language as well.

    Raises InvalidInput or StoreCorrupt.
    """
    from codebatch.query.answers.language_lines import count_language_lines
    from codebatch.query.answers.summary import summarise as summary_of

    records = question.records
    found = summary_of(records, task)
    if task is None:
        found = msgspec.structs.replace(found, lines=count_language_lines(records))
    whole = completeness(records, records.choose_tasks(task), tells_failures=True)
    return Answer(question=question, found=found, whole=whole)


def search(
    question: BatchQuery,
    asked: RecordFilter,
    *,
    task: str | None = None,
    kinds: Collection[str] | None = None,
    shape: Shape = AS_FOUND,
) -> Answer[Iterator[JsonRecord]]:
    """The records that a filter lets pass, by path, task and place, in a shape. Raises InvalidInput or StoreCorrupt.

    But for the first, records are read when they are wanted, or StoreCorrupt is raised. `kinds` are those that the
    question names, where they are not those that the filter lets pass.
    """
    shape.check(asked.check().possible_kinds)
    records = question.records
    kinds = _named_kinds(asked, kinds)
    every = records.iter_by_path(records.choose_tasks(task), asked)
    first = next(every, None)
    if first is None:
        check_kinds(lambda: question.catalogue, records, kinds)
        _tell_unknown_languages(question, asked)
    found = () if first is None else chain((first,), every)
    whole = _wholeness(question, asked, task, kinds, shape.needed)
    arranged = shape.arrange(found, records.languages_for(asked, shape.needed))
    return Answer(question=question, found=arranged, whole=whole)


def count_by(
    question: BatchQuery,
    asked: RecordFilter,
    field: str,
    *,
    task: str | None = None,
    kinds: Collection[str] | None = None,
) -> Answer[Groups]:
    """How many records that a filter lets pass have which value of a field. Raises InvalidInput or StoreCorrupt.

    From the counts that are kept with outputs, where they tell it. `kinds` as in `search`.
    """
    refuse_unknown_fields((field,), asked.check().possible_kinds)
    records = question.records
    names = records.choose_tasks(task)
    kinds = _named_kinds(asked, kinds)
    found = count_records(records, names, asked, field)
    if not found.total:
        check_kinds(lambda: question.catalogue, records, kinds)
        _tell_unknown_languages(question, asked)
    return Answer(question=question, found=found, whole=_wholeness(question, asked, task, kinds, (field,)))


def find_errors(question: BatchQuery, task: str | None = None) -> Answer[list[JsonRecord]]:
    """Failures with their evidence, then diagnostics that are errors, by place. Raises InvalidInput or StoreCorrupt."""
    from codebatch.store.batches.journal import read_journal  # 1 ms that other questions can do without

    records = question.records
    names = records.choose_tasks(task)
    failures = [r for name in names for r in records.iter_records(name, RecordFilter(kinds=("failure",)))]
    asked = RecordFilter(kinds=("diagnostic",), severities=("error",))
    found = [{**record, "task_id": name} for name in names for record in records.iter_records(name, asked)]
    journal = read_journal(question.store.files, question.batch.root, question.note) if failures else []
    evidence = _evidence(records, journal)
    told = [{**record, **evidence.get((path_bytes(record), str(record["task"])), {})} for record in failures]
    whole = completeness(records, names, tells_failures=True)
    return Answer(question=question, found=told + sorted(found, key=_place), whole=whole)


def find_worst(question: BatchQuery, limit: int) -> Answer[list[JsonRecord]]:
    """The first diagnostics of the gravest severities. Raises InvalidInput or StoreCorrupt."""
    from codebatch.query.answers.summary import worst_findings

    refuse_below_one(limit=limit)
    records = question.records
    found = worst_findings(records, limit)
    return Answer(question=question, found=found, whole=completeness(records, records.task_names))


def rank(
    question: BatchQuery, by: str, *, limit: int | None = None, task: str | None = None
) -> Answer[list[tuple[str, int]]]:
    """How often each kind, code, severity or language is there, and diagnostics by path or directory; most first.

    By METRIC and a name where that metric is greatest; each a path, or a path, line and function. By any other field of
    records how many have which value of it. At most `limit`. Raises InvalidInput, also where the metric is none of the
    batch, or StoreCorrupt.
    """
    refuse_below_one(limit=limit)
    if by.startswith(METRIC):
        return _rank_metric(question, by.removeprefix(METRIC), limit=limit, task=task)
    if by not in get_args(Ranking):
        refuse_unknown("ranking", (by,), dict.fromkeys((*get_args(Ranking), f"{METRIC}NAME", *fields_of(KINDS))))
        having = tuple(kind for kind in KINDS_FOR_PEOPLE if by in fields_of((kind,))) or KINDS_FOR_PEOPLE
        answer = count_by(question, RecordFilter(kinds=having), by, task=task, kinds=())
        return Answer(question=question, found=list(answer.found.counts[:limit]), whole=answer.whole)
    records = question.records
    names = records.choose_tasks(task)
    if by in ("path", "file", "dir"):
        asked = RecordFilter(kinds=("diagnostic",))
        field = "dir" if by == "dir" else "path"
        every = (r for name in names for r in records.iter_records(name, asked))
        counted = Counter(str(value_of(r, field, NO_LANGUAGES)) for r in every)
    else:
        counts = add_counts(records.counts(name) for name in names)
        counted = Counter(
            {"kind": counts.kinds, "code": counts.codes, "severity": counts.severities, "lang": counts.languages}[by]
        )
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
    whole = completeness(records, names, tells_failures=by == "kind")
    return Answer(question=question, found=ranked, whole=whole)


def describe_codes(
    question: BatchQuery, codes: Collection[str], task: str | None = None
) -> Answer[dict[str, tuple[str, str]]]:
    """Of some codes with what severities they stand in the batch, the gravest first, and the first message of each.

    Raises InvalidInput or StoreCorrupt.
    """
    refuse_text(codes=codes)
    asked = RecordFilter(kinds=("diagnostic",), codes=tuple(codes))
    records = question.records
    names = records.choose_tasks(task)
    pairs: set[tuple[str, str]] = set()
    messages: dict[str, str] = {}
    for record in records.iter_by_path(names, asked):
        code = str(record.get("code"))
        pairs.add((code, str(record.get("severity"))))
        messages.setdefault(code, str(record.get("message")))
    ordered = {code: ", ".join(each for each in SEVERITIES if (code, each) in pairs) for code in codes}
    found = {code: (ordered[code], messages.get(code, "")) for code in codes}
    return Answer(question=question, found=found, whole=completeness(records, names))


def _rank_metric(
    question: BatchQuery, metric: str, *, limit: int | None, task: str | None
) -> Answer[list[tuple[str, int]]]:
    asked = RecordFilter(kinds=("metric",), metrics=(metric,))
    answer = search(question, asked, task=task, shape=Shape(sort="-value", limit=limit))
    found: list[tuple[str, int]] = []
    for record in answer.found:
        place, value = record_path(record), record.get("value")
        if not isinstance(value, int):
            raise StoreCorrupt(f"a metric of {place} has no value")
        if "symbol" in record:
            place += f":{record.get('line', 1)} {record['symbol']}"
        found.append((place, value))
    if not found:
        every = count_by(question, RecordFilter(kinds=("metric",)), "metric", task=task)
        if known := [name for name, _ in every.found.counts]:
            raise InvalidInput(f"the batch has no metric {metric!r}", hint=did_you_mean(metric, known))
    return Answer(question=question, found=found, whole=answer.whole)


def inspect(
    question: BatchQuery, path: str, asked: RecordFilter | None = None, *, kinds: tuple[str, ...] = ()
) -> Answer[FileRecords]:
    """What a batch says of one file: of some kinds, all where none is named; of that, what a filter lets pass.

    Raises InvalidInput or StoreCorrupt.
    """
    records, catalogue = question.records, question.catalogue
    asked = (asked or RecordFilter(kinds=kinds)).check()
    name, item = find_item(records, path, question.note)
    check_kinds(lambda: catalogue, records, kinds)
    tasks = tasks_that_give(catalogue, records.task_names, kinds)
    by_task = {task: records.item_records(task, item) for task in tasks}
    place = path_row(name)
    languages = records.languages_for(asked)
    # The failure of a project task stands at the first item of all, and is none of that file's.
    found = [
        r for task in by_task.values() for r in task or () if asked.matches(r, languages) and place.items() <= r.items()
    ]
    records.reading.matched += len(found)
    lacks = lacks_files(lambda: catalogue, records, tasks, kinds)
    whole = completeness_at(records, by_task, found, lacks_files=lacks)
    inspected = FileRecords(path=name, item=item, records=found, tasks=tasks)
    return Answer(question=question, found=inspected, whole=whole)


def read_content(question: BatchQuery, path: str) -> FileContent:
    """What is in the file that a path names. Raises InvalidInput, ObjectMissing or StoreCorrupt."""
    records = question.records
    name, item = find_item(records, path, question.note)
    return FileContent(name, records.read_object(records.items[item]), records.plan.context_of(item))


def list_files(
    question: BatchQuery,
    limit: int | None = None,
    *,
    parse: Collection[str] = (),
    classes: Collection[str] = (),
) -> Answer[list[tuple[Entry, JsonRecord | None]]]:
    """The files of a batch, in path order, each with its `file` record, None where there is none yet.

    Of those that are parsed so, or of some classes, where these are named. Raises InvalidInput or StoreCorrupt.
    """
    refuse_below_one(limit=limit)
    refuse_text(parse=parse, classes=classes)
    refuse_unknown("state", parse, get_args(ParseState))
    refuse_unknown("class", classes, get_args(FileClass))
    records = question.records
    about: dict[bytes, JsonRecord] = {}
    needed = {"parse"} & set(records.task_names)
    if needed:
        asked = RecordFilter(kinds=("file",))
        about = {path_bytes(record): record for record in records.iter_records("parse", asked)}
    every = ((entry, about.get(entry.path)) for entry in records.items)
    wanted = ((entry, told) for entry, told in every if _is_so(told, "parse", parse) and _is_so(told, "class", classes))
    found = list(islice(wanted, limit))
    return Answer(question=question, found=found, whole=completeness(records, needed, tells_failures=True))


def _is_so(told: JsonRecord | None, field: str, wanted: Collection[str]) -> bool:
    return not wanted or (told is not None and told.get(field) in wanted)


def _evidence(records: BatchRecords, lines: list[JournalLine]) -> dict[tuple[bytes, str], dict[str, str]]:
    """What the journal knows of why a task failed at a file; the last word counts."""
    from codebatch.store.batches.journal import Failed, Lost

    work = records.plan.work()
    found: dict[tuple[bytes, str], dict[str, str]] = {}
    deaths: dict[tuple[bytes, str | None], str] = {}
    for event in (line.event for line in lines):
        if not isinstance(event, Lost | Failed) or event.shard is None or event.start is None:
            continue
        of = work.get(event.shard)
        if of is None or not 0 <= event.start < of.items:
            continue
        path = path_of(of, event.start, records.items)
        if isinstance(event, Lost):
            size = human_bytes(event.memory_peak_bytes or 0)
            peak = f"peak memory: {size} (without child processes)" if event.memory_peak_bytes else None
            deaths[path, event.task] = deaths[path, None] = "\n".join(
                filter(None, [event.reason, peak, event.evidence])
            )
        else:
            death = "" if event.reason == "needs" else deaths.get((path, event.task)) or deaths.get((path, None), "")
            found[path, event.task] = {"evidence": event.evidence or death}
    return found


def _named_kinds(asked: RecordFilter, kinds: Collection[str] | None) -> Collection[str]:
    """The kinds that a question names. Raises InvalidInput where there is no such."""
    if kinds is None:
        return asked.named_kinds
    refuse_text(kinds=kinds)
    refuse_unknown("kind", kinds, KINDS)
    return kinds


def _wholeness(
    question: BatchQuery, asked: RecordFilter, task: str | None, kinds: Collection[str], fields: Collection[str]
) -> Completeness:
    """How complete an answer is that rests on the tasks which give some kinds, and on the languages for some fields."""
    records = question.records
    names = records.choose_tasks(task)
    needed = names if records.source.is_done else tasks_that_give(question.catalogue, names, kinds)
    if asked.needs_languages(fields):
        needed = tuple(dict.fromkeys(("parse", *needed)))
    lacks = lacks_files(lambda: question.catalogue, records, names, kinds)
    return completeness(records, needed, tells_failures=asked.tells_failures, path=asked.path, lacks_files=lacks)


def _tell_unknown_languages(question: BatchQuery, asked: RecordFilter) -> None:
    if asked.languages:
        known = sorted(set(question.records.languages.values()))
        for language in set(asked.languages) - set(known):
            question.note(f"no {language} files in the batch; its languages: {', '.join(known)}")


def _place(record: JsonRecord) -> tuple[bytes, int, int, str]:
    line, column = record["line"], record["column"]
    assert isinstance(line, int)
    assert isinstance(column, int)
    return path_bytes(record), line, column, str(record["code"])
