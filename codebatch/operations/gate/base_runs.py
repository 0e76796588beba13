"""Batches that are created as the base of a comparison.

An older tree is analysed with the tasks of a newer batch, the head. Both batches then have the same tasks and differ
only by their trees. So a tool upgrade causes no differences. Results are reused from older batches and from the head,
so little is executed.

The new batch is kept, and later comparisons find it. Its ID sorts before the ID of the head, so `latest` does not
change.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from codebatch.coordinator.analysis.planning import check_tools, make_plan
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import BatchIncomplete, CodebatchError, Stopped, StoreCorrupt, ToolMismatch, UnknownId
from codebatch.git.ancestry import Repository
from codebatch.git.commit_tree import check_out_commit
from codebatch.git.repository import GitError
from codebatch.model.analysis.imports import adapt_imports, have_equal_tasks
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path
from codebatch.model.plan import PlannedTask, plan_digest
from codebatch.operations.comparison.revisions import NamedCommit, find_commit_batch, has_clean_scope
from codebatch.operations.history.checkouts import find_source_repository
from codebatch.operations.project.project_snapshot import rules_for, take_snapshot_of_paths
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.query.status.batch_status import read_current_state
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.staleness import read_source_rules
from codebatch.store.batches.batch_directory import (
    NO_CHECKOUT,
    BatchDir,
    BatchFile,
    Checkout,
    create_batch,
    iter_batches,
    load_batch_snapshot,
)
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.bases import find_bases
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot
from codebatch.system.clock import wall_ns


class _BatchKey(NamedTuple):
    """The values that a batch with equal results has: the plan digest, and the scope and programs of `head`.

    If its source is another directory, it must also have `commit`.
    """

    plan_digest: Digest
    head: BatchFile
    commit: str

    def matches(self, about: BatchFile) -> bool:
        """Return whether a batch has these values."""
        if (about.plan_digest, about.programs) != (self.plan_digest, self.head.programs):
            return False
        is_same_commit = bool(self.commit) and about.commit == self.commit
        return about.sources_and_paths == self.head.sources_and_paths or (
            is_same_commit and has_clean_scope(about, self.head)
        )


def run_snapshot_as(
    store: StoreDir,
    head: BatchDir,
    snapshot: Snapshot,
    execution: ExecutionSettings,
    listener: Listener,
    checkout: Checkout = NO_CHECKOUT,
    known: BatchDir | None = None,
    tasks: Sequence[PlannedTask] | None = None,
) -> BatchDir:
    """Return the finished batch of a snapshot with the tasks of `head`. Create or continue the batch if necessary.

    The imported findings of `head` belong to another tree. So if `known`, an older batch of the same snapshot, is
    given, imported findings are taken from `known`. If `tasks` of this installation are given, they replace the tasks
    of `head`. Raises ToolMismatch if this installation would execute the tasks differently. Raises Stopped at a signal,
    and StoreError.
    """
    plan = head.plan()
    catalogue = execution.configuration.catalogue.with_imports(head.about.imports)
    programs = head.about.programs
    if tasks is None:
        check_tools(catalogue, plan, programs)
        tasks = adapt_imports(known.plan().tasks if known is not None else (), plan.tasks)
    else:
        programs = catalogue.program_builds(task.name for task in tasks)
    scope = msgspec.structs.replace(head.about, programs=programs)
    key = _BatchKey(plan_digest(snapshot.digest, tasks, plan.paths), scope, checkout.commit)
    with store.writing() as lock:
        batch = _find_batch(store, key)
        if batch is None:
            plan_of_snapshot = make_plan(catalogue, snapshot, plan.pipeline, tasks, plan.shard_rule, plan.paths)
            with store.making_batch():
                batch = _find_batch(store, key) or create_batch(
                    store,
                    plan_of_snapshot,
                    sources=head.about.sources,
                    bases=find_bases(store, head.about.sources, plan.pipeline, tasks),
                    checkout=checkout,
                    at_ns=wall_ns(),
                    before=head.id,
                    programs=programs,
                    for_comparison=True,
                )
        if not read_current_state(batch).is_settled_and_merged:
            executed = execution.execute(store, lock, batch, RunScope(), listener, snapshot)
            if executed.signal_status:
                hint = "to continue, run the same command again: finished results are reused"
                raise Stopped("stopped before the base was analysed", hint=hint, exit_status=executed.signal_status)
    return batch


def rerun_with_head_tasks(
    store: StoreDir, head: BatchDir, batch: BatchDir, execution: ExecutionSettings, listener: Listener
) -> BatchDir:
    """Return a batch with the tree of `batch`, and with the tasks and the path restriction of `head`.

    If `batch` already has these tasks and covers these paths, or if both batches have the same snapshot and it covers
    these paths, return `batch`. Raises ToolMismatch if this installation would execute the tasks differently. Raises
    Stopped at a signal, and StoreError.
    """
    lacks_paths = batch.about.sources == head.about.sources and batch.about.paths not in ((), head.about.paths)
    has_tasks = _have_equal_tasks(batch, head)
    if not lacks_paths and (has_tasks or batch.about.snapshot_id == head.about.snapshot_id):
        return batch
    checkout = Checkout(batch.about.commit, batch.about.is_clean)
    scope = f"is restricted to {', '.join(map(display_path, batch.about.paths))}"
    reason = f"batch {batch.id} {scope if lacks_paths else 'was made with different tasks'}"
    try:
        listener.note(f"{reason}; re-analysing its files with the tasks of {head.id}")
        return run_snapshot_as(store, head, load_batch_snapshot(store, batch), execution, listener, checkout, batch)
    except ToolMismatch as error:
        message = f"{reason}, and its files cannot be re-analysed with the tasks of {head.id}: {error.message}"
        raise ToolMismatch(message, hint=error.hint) from error


def run_commit_as(
    store: StoreDir, head: BatchDir, commit: str, execution: ExecutionSettings, listener: Listener, *, label: str
) -> BatchDir:
    """Analyse the tree of a commit with the tasks of `head`, and return the finished batch.

    The batch is restricted to the paths of `head`. The tree comes from a batch of that commit, otherwise from the
    objects of git. `label` names the commit in a note. Raises GitError if git cannot provide the tree, OSError, and the
    errors of `run_snapshot_as`.
    """
    listener.note(f"no batch of {label}; analysing this commit with the tasks of {head.id}")
    known = max(
        list_commit_batches(store, head, commit),
        key=lambda each: len(head.about.imports.keys() & each.about.imports.keys()),
        default=None,
    )
    if known is None:
        rules = head_rules(store, head) or rules_for(execution.configuration, (), ())
        snapshot = freeze_commit(store, commit, head, rules, listener)
    else:
        snapshot = load_batch_snapshot(store, known)
    return run_snapshot_as(store, head, snapshot, execution, listener, Checkout(commit, True), known)


def obtain_commit_batch(
    store: StoreDir, head: BatchDir, commit: NamedCommit, execution: ExecutionSettings, listener: Listener
) -> BatchDir:
    """Return a finished batch of a named commit. If no batch comparable to `head` exists, the commit is analysed.

    A batch with the tasks of `head` is preferred. If the commit cannot be analysed, any batch of the commit is
    returned, with a note. If the commit has no batch, BatchIncomplete is raised if the tasks of `head` cannot be
    executed here, otherwise UnknownId. Raises Stopped at a signal, and StoreError.
    """
    ended = [batch for batch in list_commit_batches(store, head, commit.id) if has_ended(batch)]
    if ended:
        return max(ended, key=lambda each: (_have_equal_tasks(each, head), each.about.sources == head.about.sources))
    try:
        return run_commit_as(store, head, commit.id, execution, listener, label=commit.label)
    except Stopped:
        raise
    except (GitError, CodebatchError, OSError) as error:
        message = f"no batch of {commit.label}, and this commit cannot be analysed: {error}"
        existing = find_commit_batch(store, commit, head)
        if existing is not None:
            listener.note(
                f"{commit.label} cannot be analysed: {error}; "
                f"comparing with {existing.id}, an existing batch of this commit"
            )
            return existing
        if isinstance(error, ToolMismatch):
            raise BatchIncomplete(message, hint="analyse the files again first: codebatch run .") from error
        if isinstance(error, CodebatchError):
            raise
        hint = f"check out and analyse this commit: git checkout {commit.id[:12]} && codebatch run ."
        raise UnknownId(message, hint=hint) from error


def list_commit_batches(store: StoreDir, head: BatchDir, commit: str) -> list[BatchDir]:
    """Return the comparable batches of a commit, latest first.

    A batch is comparable if its scope, file patterns and submodules are equal to those of `head`. The tree of the batch
    must be the commit without uncommitted changes; it may be another work tree. The batch may be unfinished.
    """
    return [
        batch
        for batch in iter_batches(store)
        if batch.about.commit == commit
        and has_clean_scope(batch.about, head.about)
        and have_same_patterns(store, batch, head)
        and have_same_submodules(store, batch, head)
        and not (batch.about.for_comparison and _lacks_files(store, batch, head))
    ]


def _lacks_files(store: StoreDir, batch: BatchDir, head: BatchDir) -> bool:
    """Return whether a batch lacks files that its commit and `head` have, because it was made with other patterns.

    All findings in these files would be new.
    """
    repository_and_directory = find_source_repository(head.about.sources)
    own, other = ({entry.path for entry in load_batch_snapshot(store, each).entries} for each in (batch, head))
    if repository_and_directory is None or other <= own:
        return False
    try:
        listed = Repository(*repository_and_directory).query("ls-tree", "-r", "-z", "--name-only", batch.about.commit)
    except GitError:
        return False
    return not (other - own).isdisjoint(listed.split(b"\0"))


def have_same_patterns(store: StoreDir, batch: BatchDir, head: BatchDir) -> bool:
    """Return whether two batches have the same file patterns. Those of a batch made for a comparison count as equal."""
    own, other = batch.about.stat_cache, _similar_stat_cache(store, head)
    if own in ("", other) or batch.about.sources == head.about.sources:
        return own in ("", other)
    rules = read_source_rules(store.files, store.root, own)
    return rules is not None and rules == read_source_rules(store.files, store.root, other)


def have_same_submodules(store: StoreDir, left: BatchDir, right: BatchDir) -> bool:
    """Return whether the same submodules were checked out when two batches were made.

    Otherwise, all files of a submodule that only one batch has would be reported as new or deleted.
    """
    try:
        first, second = (
            {entry.path for entry in load_batch_snapshot(store, batch).entries if entry.kind == "submodule"}
            for batch in (left, right)
        )
    except (StoreCorrupt, UnknownId):
        return False
    return first == second


def head_rules(store: StoreDir, head: BatchDir) -> SourceRules | None:
    """Return the rules that selected the files of `head`, or None if they are unknown."""
    return read_source_rules(store.files, store.root, _similar_stat_cache(store, head))


def freeze_commit(store: StoreDir, commit: str, head: BatchDir, rules: SourceRules, listener: Listener) -> Snapshot:
    """Store the tree of a commit as a snapshot. Only files that `rules` select are included.

    The snapshot covers the directory of `head`. Raises GitError if git cannot provide the tree, OSError, and the errors
    of `take_snapshot_of_paths`.
    """
    repository_and_directory = find_source_repository(head.about.sources)
    if repository_and_directory is None:
        raise GitError(f"the files of batch {head.id} are not from a single directory in a git work tree")
    repository = Repository(*repository_and_directory)
    if repository.find(commit) is None:
        raise GitError(f"the commit is not in the git repository of {display_path(repository.directory)}")
    with check_out_commit(repository, commit) as directory:
        result = take_snapshot_of_paths(
            store,
            [Path(os.fsdecode(directory))],
            rules,
            listener.phase,
            is_temporary=True,
        )
    return load_snapshot(store.files, store.root, result.snapshot_id)


def _similar_stat_cache(store: StoreDir, head: BatchDir) -> str:
    """Return the name of a stat cache that was written with the file patterns of `head`, or an empty string.

    A stat cache has the size and times of each file, so unchanged files need not be read. A batch that was created for
    a comparison has none. For such a batch, the stat cache of the latest batch with equal sources and paths is used.
    """
    caches = (
        batch.about.stat_cache
        for batch in iter_batches(store)
        if batch.about.sources_and_paths == head.about.sources_and_paths
    )
    return head.about.stat_cache or next(filter(None, caches), "")


def has_ended(batch: BatchDir) -> bool:
    """Return whether a batch is readable, all its work has ended, and its outputs are merged."""
    try:
        batch.plan()
        return read_current_state(batch).is_settled_and_merged
    except (StoreCorrupt, UnknownId):
        return False


def _have_equal_tasks(batch: BatchDir, head: BatchDir) -> bool:
    """Return whether two batches have the same tasks, and programs with the same content."""
    programs, head_programs = batch.about.programs, head.about.programs
    return programs == head_programs and have_equal_tasks(batch.plan().tasks, head.plan().tasks)


def _find_batch(store: StoreDir, key: _BatchKey) -> BatchDir | None:
    return next((batch for batch in iter_batches(store) if key.matches(batch.about)), None)
