"""Choice of the base of a comparison if the user named no base (SPEC.md "Quality gate").

The choice comes with its reason, which is shown to the user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from codebatch.errors import CodebatchError, Stopped, StoreError, UnknownId
from codebatch.git.ancestry import Repository
from codebatch.git.repository import GitError
from codebatch.model.analysis.imports import is_import
from codebatch.model.plan import Plan
from codebatch.operations.comparison.revisions import NamedCommit, has_clean_scope
from codebatch.operations.gate.base_runs import (
    has_ended,
    have_same_patterns,
    have_same_submodules,
    obtain_commit_batch,
)
from codebatch.operations.history.branch_point import NoBranchPoint, find_branch_point
from codebatch.operations.history.checkouts import find_source_repository
from codebatch.operations.history.ci_services import read_ci_change
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.snapshotting.walk import work_tree_around
from codebatch.store.batches.batch_directory import BatchDir, iter_batches
from codebatch.store.batches.store_directory import StoreDir


class ComparisonBase(NamedTuple):
    """A batch to compare with, and the reason for its choice.

    `change_begins` is the commit at which the change under review begins. It is set only if the batch is of an older
    commit. Differences between the two commits are not part of the change.
    """

    batch: BatchDir
    why: str
    change_begins: str | None = None


class NotCompared(NamedTuple):
    """The reason why a check compared nothing. Such a check has not passed.

    `is_allowable` is set if there is no base, if nothing names it, or if the batch has no files: `--allow-no-base`
    accepts this. Otherwise, a base is named but missing, or it is HEAD itself.
    """

    why: str
    is_allowable: bool = False


def choose_base(
    store: StoreDir, head: BatchDir, execution: ExecutionSettings, listener: Listener, environment: Mapping[str, str]
) -> ComparisonBase | NotCompared:
    """Return the base of a comparison with `head`: a batch with the same sources, paths and file patterns as `head`.

    In git, it is the batch of the commit at which the change begins. If there is none, the commit is analysed. Raises
    StoreError, and Stopped at a signal while the base is analysed.
    """
    snapshot_id = head.about.snapshot_id
    known = [batch for batch in iter_batches(store, listener.note) if batch.about.snapshot_id != snapshot_id]
    repository_and_directory = find_source_repository(head.about.sources)
    if repository_and_directory is None:
        return _find_previous_batch(head, known)
    repository = Repository(*repository_and_directory)
    clean = [batch for batch in known if has_clean_scope(batch.about, head.about)]
    analysed = {batch.about.commit for batch in clean if not batch.about.for_comparison}
    try:
        point = find_branch_point(head, repository, read_ci_change(environment), analysed)
    except GitError as error:
        return NotCompared(str(error), is_allowable=isinstance(error, NoBranchPoint))
    commit = NamedCommit(point.commit, point.commit, point.description)
    try:
        batch = obtain_commit_batch(store, head, commit, execution, listener)
    except Stopped:
        raise
    except CodebatchError as error:
        nearest = _find_nearest_batch(store, head, clean, repository, point.commit)
        if nearest is None:
            return NotCompared(error.message + (f"; fetch it: {point.advice}" if point.advice else ""))
        why = f"batch of commit {nearest.about.commit[:12]}, the nearest available; {error.message}"
        return ComparisonBase(nearest, why, point.commit)
    return ComparisonBase(batch, f"batch of {commit.label}")


def _find_nearest_batch(
    store: StoreDir, head: BatchDir, batches: list[BatchDir], repository: Repository, commit: str
) -> BatchDir | None:
    candidates = _iter_nearest_batches(head, batches, repository, commit)
    are_same = (have_same_patterns, have_same_submodules)
    return next((batch for batch in candidates if all(each(store, batch, head) for each in are_same)), None)


def _iter_nearest_batches(
    head: BatchDir, candidates: list[BatchDir], repository: Repository, commit: str
) -> Iterator[BatchDir]:
    """Yield the ended batches of a commit, then those of its ancestors, nearest ancestor first.

    Only batches with the same tasks as `head` are yielded.
    """
    by_commit: dict[str, list[BatchDir]] = defaultdict(list)
    for batch in candidates:
        if batch.about.commit:
            by_commit[batch.about.commit].append(batch)
    plan = head.plan()
    yield from filter(lambda batch: _has_same_tasks(batch, plan), by_commit.pop(commit, []))
    if by_commit:
        try:
            ancestors = repository.ancestors(commit)
        except GitError:  # The commit is not in this clone; the clone may be shallow.
            return
        for ancestor in ancestors:
            yield from filter(lambda batch: _has_same_tasks(batch, plan), by_commit.get(ancestor, []))


def _find_previous_batch(head: BatchDir, candidates: list[BatchDir]) -> ComparisonBase | NotCompared:
    """Return the previous finished batch with the sources, paths and pipeline of `head`.

    Outside of git, it is the base.
    """
    comparable = (
        batch
        for batch in candidates
        if batch.about.sources_and_paths == head.about.sources_and_paths
        and batch.about.stat_cache in ("", head.about.stat_cache)
        and batch.about.pipeline == head.about.pipeline
        and batch.id < head.id
        and not batch.about.for_comparison
    )
    previous = next(filter(has_ended, comparable), None)
    is_in_git = any(map(work_tree_around, head.about.sources))
    why = "git is not available" if is_in_git else "the directory is not in a git repository"
    if previous is None:
        message = f"{why}, and no finished older batch has the same source, patterns and pipeline"
        return NotCompared(message, is_allowable=True)
    return ComparisonBase(previous, f"the previous batch, because {why}")


def _has_same_tasks(batch: BatchDir, plan: Plan) -> bool:
    """Return whether a batch has ended and has the same tasks as a plan."""
    try:
        return _task_keys(batch.plan()) == _task_keys(plan) and has_ended(batch)
    except (StoreError, UnknownId):
        return False


def _task_keys(plan: Plan) -> set[str]:
    """Return the cache keys of the tasks of a plan. An import is represented by its name instead.

    The cache key of an import differs for each tree, so it would never match.
    """
    return {task.name if is_import(task) else task.key for task in plan.tasks}
