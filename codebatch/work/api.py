"""The Python API for task lists: `codebatch.work`. Each function does what a command of `codebatch work` does.

The argument `project` is the directory in which the command would run, by default the current directory. It determines
the default store, the default batch and the default task list, and relative paths of task lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codebatch.model.work.event import AnyEvent
from codebatch.model.work.limits import NO_CAPS, Caps
from codebatch.model.work.request import TaskSettings
from codebatch.model.work.work_batch import FailureAction, HaltMode, Strategy
from codebatch.operations.changes.changed_files import ChangedFile, make_changed_files
from codebatch.operations.changes.work_changes import read_work_changes
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.stores import locate_store, open_store
from codebatch.operations.runs.events import BatchActivity
from codebatch.query.filters.arguments import path_argument
from codebatch.query.filters.paths import PathPatterns
from codebatch.work.control.attempts import AttemptInfo, list_attempts
from codebatch.work.control.batch_selection import select_batch, select_live_batch
from codebatch.work.control.batches import (
    WorkBatch,
    iter_work_batches,
    load_work_batch,
    refuse_unnamed_batch,
)
from codebatch.work.control.cancel import cancel_batch
from codebatch.work.control.event_feed import EventFeed
from codebatch.work.control.follow import iter_followed_events, make_follower, read_cursor
from codebatch.work.control.listener import WorkListener
from codebatch.work.control.logs import PIECE_BYTES, LogPart, read_log_part
from codebatch.work.control.questions import OpenQuestion, answer_question, open_questions
from codebatch.work.control.requests import (
    LimitChanges,
    change_batch,
    pause_batch,
    retry_tasks,
    skip_tasks,
    unpause_batch,
)
from codebatch.work.control.run import WorkRunResult, resume_work, run_files
from codebatch.work.definition.settings import WorkOptions


def start(
    *files: str | Path,
    tasks: Sequence[str] = (),
    only: bool = False,
    store: str | Path | None = None,
    project: str | Path | None = None,
    max_parallel: int | None = None,
    strategy: Strategy | None = None,
    on_failure: FailureAction | None = None,
    failures_max: int | None = None,
    retry: int | None = None,
    timeout: float | None = None,
    halt: HaltMode | None = None,
    wait_answers: bool = False,
    env: Sequence[str] = (),
    tags: Sequence[str] = (),
    command: str | None = None,
    infer: bool = True,
    unfinished: bool = False,
    parallel_batches: bool = False,
    trust: bool = False,
    listener: WorkListener | None = None,
) -> WorkRunResult:
    """Run the tasks of task lists in a new batch, and return when the run ends.

    `files` are task lists, by default that of the project. The arguments are the options of `codebatch work run`:

    - `tasks`: run these tasks and the tasks that they need, by default all tasks.
    - `only`: run the selected tasks without the tasks that they need. The needed tasks count as done.
    - `tags`: select tasks with one of these tags.
    - `unfinished`: select only tasks that are not done. If there are none, NothingToDo is raised.
    - `timeout`: the time limit of the whole batch in seconds.
    - `halt`: with `"now"`, the first failure terminates running tasks.
    - `env`: environment variables. The value in `NAME=VALUE` is stored. For `NAME` alone, the value is read from the
      environment and not stored.
    - `command`: the command of tasks that define none.
    - `infer`: if False, the strategy `auto` does not infer dependencies.
    - `parallel_batches`: run even if another batch runs in the same directory.
    - `trust`: run even if the store was not created on this machine.

    If this process is killed, running tasks continue, and `resume` continues the batch. `WorkRunResult.shortfall`
    describes tasks that are not done. Raises CodebatchError or OSError.
    """
    options = WorkOptions(
        tasks=tuple(tasks),
        only=only,
        max_parallel=max_parallel,
        strategy=strategy,
        on_failure=on_failure,
        failures_max=failures_max,
        retry=retry,
        timeout=timeout,
        halt=halt,
        wait_answers=wait_answers,
        env=env,
        tags=tuple(tags),
        command=command,
        infer=infer,
        unfinished=unfinished,
    )
    place = locate_store(store, project)
    return run_files(
        tuple(map(path_argument, files)),
        options,
        place,
        keep=load_configuration(place.directory).keep,
        is_parallel=parallel_batches,
        is_trusted=trust,
        listener=listener or WorkListener(),
    )


def get(batch: str | None = None, *, store: str | Path | None = None, project: str | Path | None = None) -> WorkBatch:
    """Return a batch of a task list and its state.

    `batch` is an ID, a unique ID prefix, `@NAME` or `latest~N`, by default the latest batch. Raises WrongBatchKind if
    the batch is an analysis. Raises InvalidId, UnknownId, AmbiguousId or StoreError.
    """
    opened = open_store(store, project)
    return load_work_batch(opened, select_batch(opened, batch))


def iter_batches(*, store: str | Path | None = None, project: str | Path | None = None) -> Iterator[WorkBatch]:
    """Yield all readable batches of task lists, the latest first."""
    return iter_work_batches(open_store(store, project))


def iter_events(
    batch: str | None = None,
    *,
    since: str | None = None,
    follow: bool = False,
    store: str | Path | None = None,
    project: str | Path | None = None,
) -> Iterator[AnyEvent]:
    """Yield the events of a batch, by default the latest batch. The batch can be a task list or an analysis.

    - `since`: yield only events after the event with this cursor.
    - `follow`: also yield new events, until the batch ends or no process runs the batch.

    Raises InvalidInput if `since` is not a cursor of this batch, and the errors of `get`.
    """
    opened = open_store(store, project)
    batch_dir = select_batch(opened, batch, kind="any")
    followed = make_follower(opened, batch_dir, read_cursor(since, opened, batch_dir))
    for event in iter_followed_events(followed) if follow else followed.read():
        if event is not None and not isinstance(event, BatchActivity):
            yield event


def open_events(
    batch: str | None = None,
    *,
    since: str | None = None,
    store: str | Path | None = None,
    project: str | Path | None = None,
) -> EventFeed:
    """Return a reader of the events and the state of a batch, by default the latest batch.

    The batch can be a task list or an analysis. Unlike `iter_events`, the reader can be asked again and again for new
    events. It then reads only what was added. `since` is the cursor of the last event that is already known.

    Raises the errors of `iter_events`.
    """
    opened = open_store(store, project)
    batch_dir = select_batch(opened, batch, kind="any")
    return EventFeed(opened, batch_dir, read_cursor(since, opened, batch_dir))


def resume(
    batch: str | None = None,
    *,
    store: str | Path | None = None,
    project: str | Path | None = None,
    force: bool = False,
    only: Sequence[str] = (),
    blocked: bool = False,
    wait_answers: bool = False,
    reload: bool = False,
    trust: bool = False,
    listener: WorkListener | None = None,
) -> WorkRunResult:
    """Resume a batch, and run tasks again that failed or were cancelled.

    By default, the latest batch is resumed. If `store` is given, `batch` is required.

    - `force`: also rerun completed tasks.
    - `only`: retry only these tasks.
    - `blocked`: also rerun tasks that wait for an answer. They run again without an answer.
    - `wait_answers`: keep running while a question is open.
    - `reload`: use the current definitions of tasks that are not done. Otherwise, the batch keeps its definitions.
      `WorkRunResult.changes` describes how the task list has changed.
    - `trust`: resume even if the store was not created on this machine.

    Raises the errors of `get` and `start`.
    """
    opened = open_store(store, project)
    batch_dir = select_batch(opened, batch, is_change=True)
    if batch is None and store is not None:
        refuse_unnamed_batch(batch_dir)
    return resume_work(
        opened,
        batch_dir,
        is_forced=force,
        only=only,
        blocked=blocked,
        wait_answers=wait_answers,
        reloads=reload,
        is_trusted=trust,
        listener=listener or WorkListener(),
    )


def cancel(
    batch: str | None = None,
    *,
    store: str | Path | None = None,
    project: str | Path | None = None,
    grace_seconds: float | None = None,
    force: bool = False,
    wait: bool = True,
    trust: bool = False,
    listener: WorkListener | None = None,
) -> WorkBatch:
    """Cancel a batch that runs in any process, by default the only running batch.

    - `grace_seconds`: the grace period of every task, in place of the grace periods that the tasks define.
    - `force`: first kill the processes that run the batch on this machine.
    - `wait`: return only after the batch has ended.

    Raises the errors of `get`.
    """
    opened = open_store(store, project)
    return cancel_batch(
        opened,
        select_live_batch(opened, batch),
        grace_seconds=grace_seconds,
        is_forced=force,
        waits=wait,
        is_trusted=trust,
        listener=listener or WorkListener(),
    )


def answer(
    task: str,
    text: str,
    *,
    question: str | None = None,
    batch: str | None = None,
    store: str | Path | None = None,
    project: str | Path | None = None,
) -> WorkBatch:
    """Answer the question of a task.

    By default, the only running batch is used or, if no batch is running, the latest batch. If `question` is given, the
    question is answered only if its digest starts with this text.

    If the batch is running, the task continues at once. Otherwise, the task continues with `resume`.

    Raises InvalidInput if the task does not ask this question, the answer is not allowed, or another answer was
    accepted first. Raises the errors of `get`.
    """
    opened = open_store(store, project)
    selected = select_live_batch(opened, batch, else_latest=True)
    return answer_question(opened, selected, task, text, question=question)[0]


def retry(
    *tasks: str,
    dependents: bool = False,
    batch: str | None = None,
    store: str | Path | None = None,
    project: str | Path | None = None,
) -> WorkBatch:
    """Let tasks run again, whatever their outcome.

    If the batch is running, the tasks run again at once. Otherwise, they run again with `resume`. With `dependents`,
    tasks that depend on them run again too. Raises InvalidInput if a task is running, and the errors of `get`.
    """
    opened = open_store(store, project)
    return retry_tasks(opened, select_batch(opened, batch, is_change=True), tasks, dependents=dependents)


def skip(
    *tasks: str,
    as_done: bool = False,
    batch: str | None = None,
    store: str | Path | None = None,
    project: str | Path | None = None,
) -> WorkBatch:
    """Skip tasks of a batch, by default of the only running batch. Running tasks are terminated.

    Tasks that need a skipped task are skipped too. With `as_done`, the given tasks count as done instead, and tasks
    that need them can run. Raises InvalidInput if a task is already done, and the errors of `get`.
    """
    opened = open_store(store, project)
    return skip_tasks(opened, select_live_batch(opened, batch), tasks, as_done=as_done)[0]


def pause(batch: str | None = None, *, store: str | Path | None = None, project: str | Path | None = None) -> WorkBatch:
    """Start no more tasks of a batch until `unpause` or `resume`. By default, the only running batch is paused."""
    opened = open_store(store, project)
    return pause_batch(opened, select_live_batch(opened, batch))


def unpause(
    batch: str | None = None, *, store: str | Path | None = None, project: str | Path | None = None
) -> WorkBatch:
    """Start tasks of a batch again after `pause`."""
    opened = open_store(store, project)
    return unpause_batch(opened, select_live_batch(opened, batch))


def change(
    batch: str | None = None,
    *,
    max_parallel: int | None = None,
    pools: Mapping[str, int] | None = None,
    cost_max: float | None = None,
    attempts_max: int | None = None,
    deadline: str = "",
    tasks: Sequence[str] = (),
    timeout_seconds: float | None = None,
    retries: int | None = None,
    priority: int | None = None,
    store: str | Path | None = None,
    project: str | Path | None = None,
) -> WorkBatch:
    """Change the limits of a batch. By default, the only running batch is changed.

    `max_parallel` is the number of tasks that run at once, and `pools` has the sizes of pools. With `tasks`, the caps
    `cost_max` and `attempts_max` are those of each task, otherwise those of the list. `timeout_seconds`, `retries` and
    `priority` are those of each task. They apply to later attempts, and `retries` also to the failure of a running one.
    Running tasks continue. Raises InvalidInput for an unknown pool or task and for a value out of range, and the errors
    of `get`.
    """
    opened = open_store(store, project)
    caps = Caps(cost_max=cost_max, attempts_max=attempts_max)
    changes = LimitChanges(
        max_parallel=max_parallel,
        pools=dict(pools or {}),
        caps={} if tasks or caps == NO_CAPS else {"": caps},
        deadline=deadline,
        tasks=tuple(tasks),
        task_caps=caps if tasks else NO_CAPS,
        settings=TaskSettings(timeout_seconds=timeout_seconds, retries=retries, priority=priority),
    )
    return change_batch(opened, select_live_batch(opened, batch), changes)[0]


def questions(
    batch: str | None = None, *, store: str | Path | None = None, project: str | Path | None = None
) -> list[OpenQuestion]:
    """Return the open questions of a batch, in the order of its tasks."""
    return open_questions(get(batch, store=store, project=project))


def attempts(
    *tasks: str, batch: str | None = None, store: str | Path | None = None, project: str | Path | None = None
) -> list[AttemptInfo]:
    """Return the attempts of some tasks of a batch, by default of all tasks."""
    return list_attempts(get(batch, store=store, project=project), tasks)


def changes(
    *tasks: str,
    path: PathPatterns = "",
    batch: str | None = None,
    store: str | Path | None = None,
    project: str | Path | None = None,
) -> list[ChangedFile]:
    """Return the changes that isolated tasks of a batch made, by default all tasks. Nothing is written.

    Needed tasks come first, otherwise the order is that of the task list; the changes of a task are sorted by path. For
    a task that is DONE, they are those of its last successful attempt, otherwise those of its last attempt. `path`
    restricts the changes by path. Raises InvalidInput for an unknown task, and the errors of `get`.
    """
    work_batch = get(batch, store=store, project=project)
    found = read_work_changes(work_batch.store, work_batch.batch, tasks, path, work_batch.standing)
    return [
        changed
        for task in found.tasks
        for changed in make_changed_files(work_batch.store, task.changes, task.state.value)
    ]


def read_log(
    task: str,
    *,
    round: int | None = None,
    offset: int = 0,
    log: str = "",
    limit: int = PIECE_BYTES,
    batch: str | None = None,
    store: str | Path | None = None,
    project: str | Path | None = None,
) -> LogPart:
    """Return a part of the log of a task: at most `limit` bytes from `offset`.

    - `round`: the attempt, by default the last one.
    - `offset`: if it is negative, it counts from the end of the log. If it is positive, `log` or `round` is needed.
    - `log`: the `log` of an earlier part.
    - `limit`: at most 1 MiB.

    To read more, pass the `next_offset` of the result as the next `offset`, and its `log`. While the task runs, its log
    grows. After a retry, the task has another log.

    Raises InvalidInput for an unknown task, round, log or limit, or an offset after the end of the log. Raises
    NothingToDo if the task has not started or the log was removed, and the errors of `get`.
    """
    return read_log_part(get(batch, store=store, project=project), task, round, offset, limit, log_name=log)
