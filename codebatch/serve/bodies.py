"""The bodies of requests and responses of the live page (SPEC.md "Live page")."""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.errors import CodebatchError
from codebatch.model.work.event import AnyEvent
from codebatch.model.work.work_batch import EdgeKind
from codebatch.operations.queries.batch_status import StatusAnswer
from codebatch.operations.queries.batches import BatchRow
from codebatch.report.contents import ChangedFinding
from codebatch.work.control.attempts import AttemptInfo
from codebatch.work.control.event_feed import AnalysisProgress
from codebatch.work.control.questions import OpenQuestion
from codebatch.work.control.status import WorkStatus, WorkTaskRow
from codebatch.work.definition.tables import NonnegativeSeconds, PositiveInteger


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the bodies of responses."""


class SessionBody(Body, frozen=True, kw_only=True):
    """The rights of a client of this server.

    `store` is the directory of the store, as text for display. `reasons` has the text of each reason of an attempt.
    """

    allow_control: bool
    version: str
    store: str
    reasons: dict[str, str]


class BatchesBody(Body, frozen=True, kw_only=True):
    """Batches, the latest first. `next` is the value of `before` for the next page, or null after the last page."""

    batches: tuple[BatchRow, ...]
    next: str | None


class WorkBatchBody(Body, frozen=True, kw_only=True):
    """The status of a batch of a task list, without its tasks.

    - `cursor`: the position in the event stream before the status was read. The effect of a later event may be part of
      the status already.
    - `resume`: the command that resumes the batch.
    """

    kind: Literal["work"] = "work"
    cursor: str
    status: WorkStatus
    resume: str


class AnalysisBody(Body, frozen=True, kw_only=True):
    """The status of an analysis. `cursor` and `resume` are as for a batch of a task list."""

    kind: Literal["analysis"] = "analysis"
    cursor: str
    status: StatusAnswer
    resume: str


class TasksBody(Body, frozen=True, kw_only=True):
    """Some of the tasks that match, in the order of the task list. `total` is the number of tasks that match."""

    tasks: tuple[WorkTaskRow, ...]
    total: int


class TaskBody(Body, frozen=True, kw_only=True):
    """A task with its attempts, the earliest first, and its open question."""

    task: WorkTaskRow
    attempts: tuple[AttemptInfo, ...]
    question: OpenQuestion | None


class EventsBody(Body, frozen=True, kw_only=True):
    """Events in order. `cursor` is the position after the last of them."""

    events: tuple[AnyEvent, ...]
    cursor: str


class EdgeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A dependency. `task` starts when `on` is done (`needs`) or has ended (`after`)."""

    task: str
    on: str
    kind: EdgeKind


class GraphBody(Body, frozen=True, kw_only=True):
    """The dependencies of a task list."""

    edges: tuple[EdgeRow, ...]


class ProgressFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A message to a WebSocket client: the current progress of an analysis."""

    progress: AnalysisProgress


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Files that a task could not process for the same reason.

    `path` is the first of these files, and `evidence` describes its failure, such as the last lines of a traceback.
    """

    task: str
    reason: str
    path: str
    evidence: str
    count: int


class FailuresBody(Body, frozen=True, kw_only=True):
    """The failures of an analysis in groups. `total` is the number of failures of all groups."""

    groups: tuple[FailureGroup, ...]
    total: int


class RegressionsBody(Body, frozen=True, kw_only=True):
    """Findings that are new or more severe than in the previous analysis of the project, as `codebatch regressions`.

    - `base`: the ID of the previous analysis, or null if there is none. Then there are no rows.
    - `count`: the number of all regressions, of which the rows are the first.
    - `complete`: whether both analyses are complete.
    """

    base: str | None
    count: int
    complete: bool
    regressions: tuple[ChangedFinding, ...]


class ReportBody(Body, frozen=True, kw_only=True):
    """The path of a report. It can be opened once, within 60 seconds."""

    path: str


class LiveErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """An error. `code` is listed in SPEC.md "Exit statuses". `hint` says what to do, or is null."""

    code: str
    message: str
    hint: str | None
    exit: int


class LiveError(Body, frozen=True, kw_only=True):
    """The body of the response to a refused or failed request."""

    error: LiveErrorBody


class ControlBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do", tag="control"):
    """Base of the bodies of requests. The members are the arguments of the functions of `codebatch.work`."""


class CancelBody(ControlBody, frozen=True, kw_only=True, tag="cancel"):
    """Cancel the batch. Running tasks get `grace_seconds`, by default their own grace periods."""

    grace_seconds: NonnegativeSeconds | None = None


class PauseBody(ControlBody, frozen=True, kw_only=True, tag="pause"):
    """Start no more tasks."""


class UnpauseBody(ControlBody, frozen=True, kw_only=True, tag="unpause"):
    """Start tasks again after a pause."""


class AnswerBody(ControlBody, frozen=True, kw_only=True, tag="answer"):
    """Answer the question of a task. `question` is the digest of the question, or a prefix of it."""

    task: str
    text: str
    question: str | None = None


class RetryBody(ControlBody, frozen=True, kw_only=True, tag="retry"):
    """Run tasks again, with `dependents` also the tasks that need them."""

    tasks: tuple[str, ...]
    dependents: bool = False


class SkipBody(ControlBody, frozen=True, kw_only=True, tag="skip"):
    """Skip tasks. With `as_done`, they count as done."""

    tasks: tuple[str, ...]
    as_done: bool = False


class SetBody(ControlBody, frozen=True, kw_only=True, tag="set"):
    """Change how many tasks run at once, and the sizes of pools."""

    max_parallel: PositiveInteger | None = None
    pools: dict[str, PositiveInteger] | None = None


AnyControl = CancelBody | PauseBody | UnpauseBody | AnswerBody | RetryBody | SkipBody | SetBody

BODY_TYPES: dict[str, object] = {
    "live-session": SessionBody,
    "live-batches": BatchesBody,
    "live-batch": WorkBatchBody,
    "live-analysis": AnalysisBody,
    "live-tasks": TasksBody,
    "live-task": TaskBody,
    "live-events": EventsBody,
    "live-progress": ProgressFrame,
    "live-graph": GraphBody,
    "live-failures": FailuresBody,
    "live-regressions": RegressionsBody,
    "live-report": ReportBody,
    "live-request": AnyControl,
    "live-error": LiveError,
}
"""The type of each body, by the name of its schema."""


def error_body(error: CodebatchError) -> LiveError:
    """Return the body that describes an error."""
    return LiveError(
        error=LiveErrorBody(code=error.code, message=error.message, hint=error.hint, exit=error.exit_status)
    )
