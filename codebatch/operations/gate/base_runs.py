"""Batches that are run to be compared with: an older tree under the very tasks of another batch, the head.

Both batches then differ by their trees alone, so that an upgrade of a tool is no difference. Results come from older
batches, the head among them, so that little is executed. The batch is kept and found again next time. Its id sorts
before the head's, so that `latest` stays what it was.
"""

from __future__ import annotations

import os
from pathlib import Path

from codebatch.coordinator.analysis.planning import check_tools, make_plan
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import BatchIncomplete, CodebatchError, Stopped, StoreCorrupt, ToolMismatch, UnknownId
from codebatch.git.ancestry import Repository
from codebatch.git.commit_tree import tree_of
from codebatch.git.repository import GitError
from codebatch.model.analysis.imports import are_alike, for_tree_of
from codebatch.model.entry import display_path
from codebatch.model.plan import plan_digest
from codebatch.operations.comparison.revisions import NamedCommit, find_batch_of
from codebatch.operations.history.checkouts import repository_of
from codebatch.operations.project.project_snapshot import rules_for, take
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.query.status.batch_status import read_current_state
from codebatch.snapshotting.staleness import rules_of
from codebatch.store.batches.batches import NO_CHECKOUT, BatchDir, Checkout, create_batch, iter_batches, snapshot_of
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.bases import find_bases
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot
from codebatch.system.clock import wall_ns


def run_snapshot_as(
    store: StoreDir,
    head: BatchDir,
    snapshot: Snapshot,
    execution: ExecutionSettings,
    listener: Listener,
    checkout: Checkout = NO_CHECKOUT,
    known: BatchDir | None = None,
) -> BatchDir:
    """Return the finished batch of a snapshot under the tasks of `head`. Make or continue the batch if necessary.

    Imports of `head` are findings in another tree: imports are taken from `known`, a batch of the snapshot.
    Raises ToolMismatch if this installation would run the tasks otherwise, Stopped at a signal, and StoreError.
    """
    plan = head.plan()
    catalogue = execution.configuration.catalogue.with_imports(head.about.imports)
    check_tools(catalogue, plan)
    tasks = for_tree_of(known.plan().tasks if known is not None else (), plan.tasks)
    wanted = plan_digest(snapshot.digest, tasks, plan.paths), head.about.place
    with store.writing() as lock:
        batch = _find(store, wanted)
        if batch is None:
            made = make_plan(catalogue, snapshot, plan.pipeline, tasks, plan.shard_rule, plan.paths)
            with store.making_batch():
                batch = _find(store, wanted) or create_batch(
                    store,
                    made,
                    sources=head.about.sources,
                    bases=find_bases(store, head.about.sources, plan.pipeline),
                    checkout=checkout,
                    at_ns=wall_ns(),
                    before=head.id,
                    for_comparison=True,
                )
        if not read_current_state(batch).is_over:
            executed = execution.execute(store, lock, batch, RunScope(), listener, snapshot)
            if executed.signal_status:
                hint = "to continue, run the same command again: finished results are reused"
                raise Stopped("stopped before the base was analysed", hint=hint, exit_status=executed.signal_status)
    return batch


def under_tasks_of(
    store: StoreDir, head: BatchDir, batch: BatchDir, execution: ExecutionSettings, listener: Listener
) -> BatchDir:
    """Return the batch of another batch's tree under the tasks of `head`, which is itself if its tasks are these.

    Raises ToolMismatch if this installation would run them otherwise, Stopped at a signal, and StoreError.
    """
    if are_alike(batch.plan().tasks, head.plan().tasks) or batch.about.snapshot_id == head.about.snapshot_id:
        return batch
    checkout = Checkout(batch.about.commit, batch.about.is_clean)
    try:
        listener.note(
            f"batch {batch.id} was made with different tasks; re-analysing its files with the tasks of {head.id}"
        )
        return run_snapshot_as(store, head, snapshot_of(store, batch), execution, listener, checkout, batch)
    except ToolMismatch as error:
        told = (
            f"batch {batch.id} was made with different tasks, and its files cannot be re-analysed with the tasks of "
            f"{head.id}: {error.message}"
        )
        raise ToolMismatch(told, hint=error.hint) from error


def run_commit_as(
    store: StoreDir, head: BatchDir, commit: str, execution: ExecutionSettings, listener: Listener, *, label: str
) -> BatchDir:
    """Return the finished batch of a commit's tree under the tasks of `head`, restricted to the paths of `head`.

    The tree comes from a batch of that commit, otherwise from git's objects. `label` names the commit in a note. Raises
    GitError if git cannot provide the tree, OSError, and what `run_snapshot_as` raises.
    """
    listener.note(f"no batch of {label}; analysing this commit with the tasks of {head.id}")
    known = max(
        batches_of_commit(store, head, commit),
        key=lambda each: len(head.about.imports.keys() & each.about.imports.keys()),
        default=None,
    )
    snapshot = freeze_commit(store, head, commit, execution, listener) if known is None else snapshot_of(store, known)
    return run_snapshot_as(store, head, snapshot, execution, listener, Checkout(commit, True), known)


def batch_of_commit(
    store: StoreDir, head: BatchDir, commit: NamedCommit, execution: ExecutionSettings, listener: Listener
) -> BatchDir:
    """Return a finished batch of a commit that a side names, run if there is none that can stand beside `head`.

    It is under the tasks of `head` if possible. If the commit cannot be run, it is any batch of it. Raises UnknownId if
    there is none, BatchIncomplete if the tasks of `head` cannot be run here, Stopped at a signal, and StoreError.
    """
    ended = [each for each in batches_of_commit(store, head, commit.id) if has_ended(each)]
    if ended:
        return max(ended, key=lambda each: are_alike(each.plan().tasks, head.plan().tasks))
    try:
        return run_commit_as(store, head, commit.id, execution, listener, label=commit.label)
    except Stopped:
        raise
    except (GitError, CodebatchError, OSError) as error:
        told = f"no batch of {commit.label}, and this commit cannot be analysed: {error}"
        found = find_batch_of(store, commit)
        if found is not None:
            listener.note(
                f"{commit.label} cannot be analysed: {error}; "
                f"comparing with {found.id}, an existing batch of this commit"
            )
            return found
        if isinstance(error, ToolMismatch):
            raise BatchIncomplete(told, hint="analyse the files again first: codebatch run .") from error
        if isinstance(error, CodebatchError):
            raise
        hint = f"check out and analyse this commit: git checkout {commit.id[:12]} && codebatch run ."
        raise UnknownId(told, hint=hint) from error


def batches_of_commit(store: StoreDir, head: BatchDir, commit: str) -> list[BatchDir]:
    """Return batches of just a commit's tree that can stand beside `head`, latest first, finished or not.

    Their place, patterns and submodules are those of `head`.
    """
    patterns = ("", _stat_cache_like(store, head))
    return [
        each
        for each in iter_batches(store)
        if each.about.is_clean
        and each.about.commit == commit
        and each.about.place == head.about.place
        and each.about.stat_cache in patterns
        and have_same_submodules(store, each, head)
    ]


def have_same_submodules(store: StoreDir, one: BatchDir, other: BatchDir) -> bool:
    """Tell whether the same submodules were checked out. Files below any other submodule would seem to be new."""
    try:
        first, second = (
            {entry.path for entry in snapshot_of(store, each).entries if entry.kind == "submodule"}
            for each in (one, other)
        )
    except (StoreCorrupt, UnknownId):
        return False
    return first == second


def freeze_commit(
    store: StoreDir, head: BatchDir, commit: str, execution: ExecutionSettings, listener: Listener
) -> Snapshot:
    """Store the tree of a commit as a snapshot: of the directory of `head`, files chosen by the patterns of `head`.

    Raises GitError if git cannot provide the tree, OSError, and what `freezing.take` raises.
    """
    found = repository_of(head.about.sources)
    if found is None:
        raise GitError(f"the files of batch {head.id} are not from a single directory in a git work tree")
    repository = Repository(*found)
    if repository.find(commit) is None:
        raise GitError(f"the commit is not in the git repository of {display_path(repository.directory)}")
    rules = rules_of(store.files, store.root, _stat_cache_like(store, head))
    with tree_of(repository, commit) as directory:
        taken = take(
            store, [Path(os.fsdecode(directory))], rules or rules_for(execution.configuration, (), ()), listener.phase
        )
    return load_snapshot(store.files, store.root, taken.snapshot_id)


def _stat_cache_like(store: StoreDir, head: BatchDir) -> str:
    """Return the name of the stat cache that has the patterns of `head`, empty if there is none.

    A batch that was itself run for a comparison has none. Its patterns are those of the latest batch of its place.
    """
    caches = (each.about.stat_cache for each in iter_batches(store) if each.about.place == head.about.place)
    return head.about.stat_cache or next(filter(None, caches), "")


def has_ended(batch: BatchDir) -> bool:
    """Tell whether a batch can be read and has nothing left to do."""
    try:
        batch.plan()
        return read_current_state(batch).is_over
    except (StoreCorrupt, UnknownId):
        return False


def _find(store: StoreDir, wanted: tuple[str, tuple[tuple[bytes, ...], tuple[bytes, ...]]]) -> BatchDir | None:
    return next((each for each in iter_batches(store) if (each.about.plan_digest, each.about.place) == wanted), None)
