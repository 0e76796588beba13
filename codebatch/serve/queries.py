"""The answers of the routes. The functions read files, so they run in threads. All raise CodebatchError."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from codebatch.errors import InvalidInput, StoreNotFound, UnknownId
from codebatch.model.work.event import cursor_text
from codebatch.operations import ignore_note
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.batch_status import StatusAnswer
from codebatch.operations.queries.batches import BatchRow, batch_row, list_batches
from codebatch.operations.queries.failure_evidence import group_equal_failures
from codebatch.operations.queries.records import find_failures
from codebatch.scheduling.lifecycle import BatchState
from codebatch.serve.bodies import (
    AnalysisBody,
    BatchesBody,
    EdgeRow,
    EventsBody,
    FailureGroup,
    FailuresBody,
    GraphBody,
    TaskBody,
    TasksBody,
    WorkBatchBody,
)
from codebatch.serve.watcher import BatchWatcher, DerivedStatus, Frame
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, check_kind, read_batch_names
from codebatch.store.batches.store_directory import StoreDir
from codebatch.work.control.attempts import list_attempts
from codebatch.work.control.batches import WorkBatch
from codebatch.work.control.event_feed import EventFeed
from codebatch.work.control.follow import check_cursor, parse_batch_cursor
from codebatch.work.control.logs import PIECE_BYTES, LogPart, read_log_part
from codebatch.work.control.questions import open_questions
from codebatch.work.control.status import WorkStatus, WorkTaskRow

LISTED_MAX = 50
TASKS_MAX = 500
EVENTS_MAX = 1000
FAILURE_GROUPS_MAX = 100
EVIDENCE_LINES_MAX = 20
_NUMBER_DIGITS_MAX = 15


def list_rows(store: StoreDir, parameters: Mapping[str, str]) -> BatchesBody:
    """Return batches, the latest first. A damaged batch is a row with the state DAMAGED.

    Raises StoreNotFound if the store was removed.
    """
    if store.files.stat(store.root / layout.STORE_FILE) is None:
        raise StoreNotFound(f"the store {store.root} was removed", hint="stop this server")
    limit = _number(parameters, "limit", LISTED_MAX, 1, LISTED_MAX)
    state, before = parameters.get("state"), parameters.get("before")
    names = read_batch_names(store)
    rows: list[BatchRow] = []
    for listed in list_batches(store, pipeline=parameters.get("pipeline"), latest_first=True, before=before):
        is_wanted = state in (None, listed.state) or (state == "active" and listed.is_active)
        if is_wanted and len(rows) == limit:
            return BatchesBody(batches=tuple(rows), next=rows[-1].batch_id)
        if is_wanted:
            rows.append(batch_row(listed, names))
    return BatchesBody(batches=tuple(rows), next=None)


def batch_body(status: DerivedStatus, batch: BatchDir) -> WorkBatchBody | AnalysisBody:
    """Return the status of a batch, for a task list without its tasks."""
    cursor, resume = cursor_text(batch.id, status.cursor), f"codebatch resume --batch {batch.id}"
    if isinstance(status.document, StatusAnswer):
        return AnalysisBody(cursor=cursor, status=status.document, resume=resume)
    return WorkBatchBody(cursor=cursor, status=replace(status.document, tasks=()), resume=resume)


def select_tasks(status: DerivedStatus, batch: BatchDir, parameters: Mapping[str, str]) -> TasksBody:
    """Return tasks in the order of the task list.

    `state` selects tasks in one of some states, separated by commas. `filter` selects tasks whose ID, title or
    explanation contains a text, whatever its case.
    """
    document = _work_status(status, batch)
    offset = _number(parameters, "offset", 0, 0, None)
    limit = _number(parameters, "limit", TASKS_MAX, 1, TASKS_MAX)
    states = {name.upper() for name in parameters.get("state", "").split(",") if name}
    text = parameters.get("filter", "").casefold()
    selected = [
        row
        for row in document.tasks
        if (not states or row.state in states)
        and (not text or any(text in part.casefold() for part in (row.id, row.title, row.explanation)))
    ]
    return TasksBody(tasks=tuple(selected[offset : offset + limit]), total=len(selected))


def find_task(status: DerivedStatus, batch: BatchDir, parameters: Mapping[str, str]) -> TaskBody:
    """Return a task with its attempts and its question. Raises UnknownId."""
    row = _find_row(status, batch, _required(parameters, "id"))
    work_batch = _work_batch(status)
    question = next((question for question in open_questions(work_batch) if question.task == row.id), None)
    return TaskBody(task=row, attempts=tuple(list_attempts(work_batch, [row.id])), question=question)


def read_failures(store: StoreDir, batch: BatchDir) -> FailuresBody:
    """Return the failures of an analysis, which may be running. Equal failures are one group."""
    check_kind(batch, "analysis")
    question = BatchQuery(store, batch, is_named=True, note=ignore_note)
    failures = find_failures(question, question.records.task_names)
    groups = [
        FailureGroup(
            task=str(failure["task"]),
            reason=str(failure["reason"]),
            path=str(failure["path"]),
            evidence="\n".join(str(failure.get("evidence") or "").strip().splitlines()[-EVIDENCE_LINES_MAX:]),
            count=count,
        )
        for failure, count in group_equal_failures(failures)
    ]
    return FailuresBody(groups=tuple(groups[:FAILURE_GROUPS_MAX]), total=len(failures))


def find_base(store: StoreDir, batch: BatchDir) -> str | None:
    """Return the ID of the latest complete analysis of the same files that is older than `batch`, or None."""
    check_kind(batch, "analysis")
    for listed in list_batches(store, pipeline=batch.about.pipeline, latest_first=True, before=batch.id):
        if (
            listed.batch is not None
            and (listed.batch.about.sources, listed.batch.about.paths) == (batch.about.sources, batch.about.paths)
            and listed.state == BatchState.COMPLETED.value
        ):
            return listed.id
    return None


def graph_body(status: DerivedStatus, batch: BatchDir) -> GraphBody:
    """Return the dependencies of the tasks of a task list."""
    _work_status(status, batch)
    edges = _work_batch(status).standing.work.edges
    return GraphBody(edges=tuple(EdgeRow(task=edge.task, on=edge.on, kind=edge.kind) for edge in edges))


def read_log(status: DerivedStatus, batch: BatchDir, parameters: Mapping[str, str]) -> LogPart:
    """Return a part of the log of an attempt, by default of the last attempt of a task."""
    row = _find_row(status, batch, _required(parameters, "task"))
    round_ = None if "round" not in parameters else _number(parameters, "round", 1, 1, None)
    offset = _number(parameters, "offset", 0, None, None)
    limit = _number(parameters, "limit", PIECE_BYTES, 1, PIECE_BYTES)
    log_name = parameters.get("log", "")
    return read_log_part(_work_batch(status), row.id, round_, offset, limit, log_name=log_name)


def read_events(store: StoreDir, watcher: BatchWatcher, parameters: Mapping[str, str]) -> EventsBody | Frame:
    """Return the first events after a cursor, from disk if the watcher no longer keeps them."""
    since = parse_batch_cursor(parameters.get("since"), watcher.batch)
    limit = _number(parameters, "limit", EVENTS_MAX, 1, EVENTS_MAX)
    watcher.wait_until_caught_up()
    if watcher.error is not None:
        raise watcher.error
    check_cursor(since, store, watcher.batch, watcher.newest)
    if (frame := watcher.frame_after(since, limit)) is not None:
        return frame
    feed = EventFeed(store, watcher.batch, since)
    events = feed.read(limit)
    return EventsBody(events=tuple(events), cursor=feed.cursor)


def _find_row(status: DerivedStatus, batch: BatchDir, id_: str) -> WorkTaskRow:
    """Return the row of a task. Raises UnknownId."""
    for row in _work_status(status, batch).tasks:
        if row.id == id_:
            return row
    raise UnknownId(f"batch {batch.id} has no task {id_[:100]!r}", hint="list its tasks with: codebatch status")


def _work_status(status: DerivedStatus, batch: BatchDir) -> WorkStatus:
    """Return the status of a batch of a task list. Raises WrongBatchKind for an analysis."""
    check_kind(batch, "work")
    assert isinstance(status.document, WorkStatus)
    return status.document


def _work_batch(status: DerivedStatus) -> WorkBatch:
    assert status.work_batch is not None
    return status.work_batch


def _required(parameters: Mapping[str, str], name: str) -> str:
    if not parameters.get(name):
        raise InvalidInput(f"the parameter `{name}` is missing")
    return parameters[name]


def _number(parameters: Mapping[str, str], name: str, default: int, least: int | None, greatest: int | None) -> int:
    """Return the value of a parameter that is a whole number. Raises InvalidInput."""
    text = parameters.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _NUMBER_DIGITS_MAX):
        raise InvalidInput(f"`{name}` must be a whole number, not {text[:40]!r}")
    number = int(text)
    if (least is not None and number < least) or (greatest is not None and number > greatest):
        limits = f"from {least}" if greatest is None else f"from {least} to {greatest}"
        raise InvalidInput(f"`{name}` must be {limits}, not {number}")
    return number
