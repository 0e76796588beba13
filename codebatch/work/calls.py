"""Batches of commands for programs: `codebatch.work`. What people do with `codebatch work`, done by a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codebatch.application.configuration import load_configuration
from codebatch.application.following import Seen
from codebatch.application.stores import StorePlace, open_store
from codebatch.model.batch_event import AnyEvent
from codebatch.model.work import Halt, OnFailure, Strategy
from codebatch.query.arguments import path_of
from codebatch.store.batch_resolution import resolve_batch
from codebatch.work.attempts_made import AttemptMade, attempts_of
from codebatch.work.cancelling import cancel_batch
from codebatch.work.following import cursor_of, followed_of, iter_followed
from codebatch.work.listening import WorkListener
from codebatch.work.open_questions import OpenQuestion, answer_question, open_questions
from codebatch.work.requesting import change_batch, pause_batch, retry_tasks, skip_tasks, unpause_batch
from codebatch.work.running import WorkRan, resume_work, run_files
from codebatch.work.settings import WorkOptions
from codebatch.work.standing import WorkBatch, iter_work, look_at, refuse_unnamed, resolve_live


def start(
    *files: str | Path,
    tasks: Sequence[str] = (),
    only: bool = False,
    store: str | Path | None = None,
    max_parallel: int | None = None,
    strategy: Strategy | None = None,
    on_failure: OnFailure | None = None,
    failures_max: int | None = None,
    retry: int | None = None,
    timeout: float | None = None,
    halt: Halt | None = None,
    wait_answers: bool = False,
    env: Sequence[str] = (),
    tags: Sequence[str] = (),
    command: str | None = None,
    infer: bool = True,
    unfinished: bool = False,
    parallel_batches: bool = False,
    trust: bool = False,
    listener: WorkListener | None = None,
) -> WorkRan:
    """Run the commands that files define, by default those of the project around the current directory; to their end.

    Of them `tasks`, with all that these need, or these `only`; if `unfinished`, of all those that are not done yet, and
    NothingToDo is raised if there are none. The whole batch has `timeout` seconds; with `halt="now"` the first failure
    ends what runs. What is given goes before what a file says; `env` are NAME=VALUE, which is stored, or NAME for
    whoever conducts. `command` is run by tasks that say nothing else; without `infer`, `auto` adds no edges. Where this
    process dies, what runs ends by itself, and `resume` goes on. Raises CodebatchError or OSError; what could not be
    done is told by `WorkRan.shortfall`.
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
    return run_files(
        tuple(map(path_of, files)),
        options,
        StorePlace(None if store is None else path_of(store)),
        keep=load_configuration(Path.cwd()).settings.store.keep,
        is_beside=parallel_batches,
        is_trusted=trust,
        listener=listener or WorkListener(),
    )


def get(batch: str | None = None, *, store: str | Path | None = None) -> WorkBatch:
    """Where a batch of commands stands: by its id, a unique prefix or `latest~N`; by default the latest.

    Raises WrongBatchKind for an analysis, InvalidId, UnknownId, AmbiguousId or StoreError.
    """
    opened = open_store(store)
    return look_at(opened, resolve_batch(opened, batch, kind="work"))


def iter_batches(*, store: str | Path | None = None) -> Iterator[WorkBatch]:
    """Every batch of commands that can be read, latest first."""
    return iter_work(open_store(store))


def iter_events(
    batch: str | None = None, *, since: str | None = None, follow: bool = False, store: str | Path | None = None
) -> Iterator[AnyEvent]:
    """What happened in a batch of either kind, by default the latest; behind the event with the cursor `since`.

    With `follow` it goes on with what happens, until the batch is over or nobody is at work on it. Raises InvalidInput
    for what is no cursor, else as `get` does.
    """
    opened = open_store(store)
    place = cursor_of(since)
    followed = followed_of(opened, resolve_batch(opened, batch, kind="any"), place)
    for one in iter_followed(followed) if follow else followed.read():
        if one is not None and not isinstance(one, Seen):
            yield one


def resume(
    batch: str | None = None,
    *,
    store: str | Path | None = None,
    force: bool = False,
    only: Sequence[str] = (),
    blocked: bool = False,
    wait_answers: bool = False,
    reload: bool = False,
    trust: bool = False,
    listener: WorkListener | None = None,
) -> WorkRan:
    """Go on with a batch, and do again what failed or was cancelled; with `force` what is done, too.

    Of that `only` these tasks, where some are named. With `blocked` what waits for an answer is done again without one;
    with `wait_answers` we go on while a question is open. If the files of its list have changed, `WorkRan.changes` says
    how, and the batch keeps the definitions that it has; with `reload` tasks that are not done have those of the files.
    Without a name it is the latest, of a store that was not named. Raises as `get` and `start` do.
    """
    opened = open_store(store)
    found = resolve_batch(opened, batch, kind="work")
    if batch is None and store is not None:
        refuse_unnamed(found)
    return resume_work(
        opened,
        found,
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
    grace_seconds: float | None = None,
    force: bool = False,
    wait: bool = True,
    trust: bool = False,
    listener: WorkListener | None = None,
) -> WorkBatch:
    """End a batch, whoever runs it; without a name the only one that is at work.

    With `force` whoever is at work on it on this machine is killed first. Raises as `get` does.
    """
    opened = open_store(store)
    return cancel_batch(
        opened,
        resolve_live(opened, batch),
        grace_seconds=grace_seconds,
        is_forced=force,
        waits=wait,
        is_trusted=trust,
        listener=listener or WorkListener(),
    )


def answer(
    task: str, text: str, *, question: str | None = None, batch: str | None = None, store: str | Path | None = None
) -> WorkBatch:
    """Answer what a task waits for; it goes on at once where somebody conducts the batch, else with `resume`.

    `question` is how the digest begins of the one that is meant. Without a name the only batch that is at work, else
    the latest. Raises InvalidInput where it asks nothing that this answers, or was answered just before, and as `get`
    does.
    """
    opened = open_store(store)
    return answer_question(opened, resolve_live(opened, batch, else_latest=True), task, text, question=question)


def retry(
    *tasks: str, dependents: bool = False, batch: str | None = None, store: str | Path | None = None
) -> WorkBatch:
    """Have tasks begun again, whatever they ended as; at once where somebody conducts the batch, else by `resume`.

    With `dependents` what needs them is done again too. Raises InvalidInput for one that runs, and as `get` does.
    """
    opened = open_store(store)
    return retry_tasks(opened, resolve_batch(opened, batch, kind="work"), tasks, dependents=dependents)


def skip(*tasks: str, as_done: bool = False, batch: str | None = None, store: str | Path | None = None) -> WorkBatch:
    """Have tasks not run, and end what of them runs; for those that need them they failed, or are done.

    Without a name it is the only batch that is at work. Raises InvalidInput for one that is done, and as `get` does.
    """
    opened = open_store(store)
    return skip_tasks(opened, resolve_live(opened, batch), tasks, as_done=as_done)


def pause(batch: str | None = None, *, store: str | Path | None = None) -> WorkBatch:
    """Begin nothing new in a batch, until `unpause` or `resume`; by default in the only one that is at work."""
    opened = open_store(store)
    return pause_batch(opened, resolve_live(opened, batch))


def unpause(batch: str | None = None, *, store: str | Path | None = None) -> WorkBatch:
    """Go on after a pause."""
    opened = open_store(store)
    return unpause_batch(opened, resolve_live(opened, batch))


def change(
    batch: str | None = None,
    *,
    max_parallel: int | None = None,
    pools: Mapping[str, int] | None = None,
    store: str | Path | None = None,
) -> WorkBatch:
    """Have so many tasks run at once from now on, and pools so large; by default in the only batch at work."""
    opened = open_store(store)
    return change_batch(opened, resolve_live(opened, batch), max_parallel=max_parallel, pools=pools)


def questions(batch: str | None = None, *, store: str | Path | None = None) -> list[OpenQuestion]:
    """What tasks of a batch wait for an answer to, in the order of its file."""
    return open_questions(get(batch, store=store))


def attempts(*tasks: str, batch: str | None = None, store: str | Path | None = None) -> list[AttemptMade]:
    """The attempts of some tasks of a batch, by default of all."""
    return attempts_of(get(batch, store=store), tasks)
