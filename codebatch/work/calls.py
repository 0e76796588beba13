"""Batches of commands for programs: `codebatch.work`. What people do with `codebatch work`, done by a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from codebatch.application.configuration import load_configuration
from codebatch.application.following import Seen
from codebatch.application.stores import StorePlace, open_store
from codebatch.model.batch_event import AnyEvent
from codebatch.model.work import OnFailure, Strategy
from codebatch.query.arguments import path_of
from codebatch.store.batches import resolve_batch
from codebatch.work.cancelling import cancel_batch
from codebatch.work.following import cursor_of, followed_of, iter_followed
from codebatch.work.listening import WorkListener
from codebatch.work.requesting import answer_question
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
    env: Sequence[str] = (),
    tags: Sequence[str] = (),
    command: str | None = None,
    infer: bool = True,
    parallel_batches: bool = False,
    trust: bool = False,
    listener: WorkListener | None = None,
) -> WorkRan:
    """Run the commands that files define, by default those of the project around the current directory; to their end.

    Of them `tasks`, with all that these need, or these `only`. What is given goes before what a file says; `env` are
    NAME=VALUE, which is stored, or NAME for whoever conducts. `command` is run by tasks that say nothing else; without
    `infer`, `auto` adds no edges. Where this process dies, what runs ends by itself, and `resume` goes on. Raises
    CodebatchError or OSError; what could not be done is told by `WorkRan.shortfall`.
    """
    options = WorkOptions(
        tasks=tuple(tasks),
        only=only,
        max_parallel=max_parallel,
        strategy=strategy,
        on_failure=on_failure,
        failures_max=failures_max,
        env=env,
        tags=tuple(tags),
        command=command,
        infer=infer,
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

    Raises WrongKind for an analysis, InvalidId, UnknownId, AmbiguousId or StoreError.
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
    trust: bool = False,
    listener: WorkListener | None = None,
) -> WorkRan:
    """Go on with a batch, and do again what failed or was cancelled; with `force` what is done, too.

    Without a name it is the latest, of a store that was not named. Raises as `get` and `start` do.
    """
    opened = open_store(store)
    found = resolve_batch(opened, batch, kind="work")
    if batch is None and store is not None:
        refuse_unnamed(found)
    return resume_work(opened, found, is_forced=force, is_trusted=trust, listener=listener or WorkListener())


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


def answer(task: str, text: str, *, batch: str | None = None, store: str | Path | None = None) -> WorkBatch:
    """Answer what a task waits for; it goes on at once where somebody conducts the batch, else with `resume`.

    Without a name the only batch that is at work. Raises InvalidInput where it asks nothing, and as `get` does.
    """
    opened = open_store(store)
    return answer_question(opened, resolve_live(opened, batch), task, text)
