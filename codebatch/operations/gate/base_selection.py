"""Choice of the base of a comparison if the user named no base (SPEC.md "Quality gate").

The choice comes with its reason, which is shown to the user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from codebatch.errors import CodebatchError, Stopped, StoreError, UnknownId
from codebatch.git.ancestry import Repository, is_commit
from codebatch.git.repository import GitError
from codebatch.model.analysis.imports import is_import
from codebatch.model.plan import Plan
from codebatch.operations.gate.base_runs import has_ended, have_same_submodules, run_commit_as
from codebatch.operations.history.branch_point import BranchPoint, find_branch_point
from codebatch.operations.history.checkouts import find_source_repository
from codebatch.operations.history.newest_commit import is_in_repository
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.store.batches.batch_directory import BatchDir, iter_batches, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir

_FIRST_RUN_REASON = "first run: the store has no other batch of this source"


class ComparisonBase(NamedTuple):
    """A batch to compare with, and the reason for its choice.

    `change_begins` is the commit at which the change under review begins. It is set only if the batch is of an older
    commit. Differences between the two commits are not part of the change.
    """

    batch: BatchDir
    why: str
    change_begins: str | None = None


class NoBase(NamedTuple):
    """The reason why there is no base.

    `is_first` is set if the store has no other tree of this source, so there is nothing to compare with.
    """

    why: str
    is_first: bool = False


def choose_base(
    store: StoreDir, head: BatchDir, execution: ExecutionSettings, listener: Listener, environment: Mapping[str, str]
) -> ComparisonBase | NoBase:
    """Return the base of a comparison with `head`: a batch with the same sources, paths and file patterns as `head`.

    The first batch of a source usually has no base. In a pull request on GitHub, a base is searched for nevertheless:
    if CI lost its cache, every change would pass otherwise. Raises StoreError, and Stopped at a signal while the base
    is analysed.
    """
    known = [batch for batch in iter_batches(store, listener.note) if _has_another_tree(batch, head)]
    comparable_batches = [batch for batch in known if batch.about.stat_cache in ("", head.about.stat_cache)]
    repository_and_directory = find_source_repository(head.about.sources)
    repository = None if repository_and_directory is None else Repository(*repository_and_directory)
    is_first = not known and (repository is None or not _was_run_elsewhere(store, head, repository))
    if is_first and (repository is None or not environment.get("GITHUB_BASE_REF")):
        return NoBase(_FIRST_RUN_REASON, is_first=True)
    if repository is None:
        return _find_previous_batch(head, comparable_batches)
    try:
        beginning = find_branch_point(head, repository, environment)
    except GitError as error:
        base: ComparisonBase | NoBase = NoBase(str(error))
    else:
        base = _find_base_at_commit(store, head, comparable_batches, repository, beginning, execution, listener)
    return NoBase(f"{_FIRST_RUN_REASON}; {base.why}", is_first=True) if is_first and isinstance(base, NoBase) else base


def _was_run_elsewhere(store: StoreDir, head: BatchDir, repository: Repository) -> bool:
    """Return whether the store has a batch of this repository that was made in another directory.

    CI can restore a cached store in another directory. A batch belongs to the repository if the repository has the
    batch's commit. A shallow clone has few commits. There, a batch also belongs to it if `head` has more than half of
    the batch's paths.
    """
    other_batches = [
        batch
        for batch in iter_batches(store)
        if is_commit(batch.about.commit)
        and batch.about.paths == head.about.paths
        and batch.about.snapshot_id != head.about.snapshot_id
    ]
    if any(repository.find(batch.about.commit) is not None for batch in other_batches):
        return True
    if not other_batches or not repository.is_shallow:
        return False
    latest = {batch.about.sources: batch for batch in reversed(other_batches)}
    paths = _batch_paths(store, head)
    return any(
        2 * len(paths & other_paths) > len(other_paths)
        for other_paths in (_batch_paths(store, batch) for batch in latest.values())
    )


def _batch_paths(store: StoreDir, batch: BatchDir) -> set[bytes]:
    try:
        return {entry.path for entry in load_batch_snapshot(store, batch).entries}
    except (StoreError, UnknownId):
        return set()


def _find_base_at_commit(
    store: StoreDir,
    head: BatchDir,
    other_batches: list[BatchDir],
    repository: Repository,
    beginning: BranchPoint,
    execution: ExecutionSettings,
    listener: Listener,
) -> ComparisonBase | NoBase:
    candidates = _iter_nearest_batches(head, other_batches, repository, beginning.commit)
    nearest = next((batch for batch in candidates if have_same_submodules(store, batch, head)), None)
    description = f"commit {beginning.commit[:12]}, {beginning.description}"
    if nearest is not None and nearest.about.commit == beginning.commit:
        return ComparisonBase(nearest, f"batch of {description}")
    try:
        analysed = run_commit_as(store, head, beginning.commit, execution, listener, label=description)
        return ComparisonBase(analysed, f"batch of {description}, analysed for this check")
    except Stopped:
        raise
    except (GitError, CodebatchError, OSError) as error:
        why = f"{description}, cannot be analysed: {error}"
    if nearest is None:
        fetch = "; fetch more history: git fetch --deepen=1, or in actions/checkout set `fetch-depth: 2`"
        return NoBase(why + (fetch if repository.is_shallow else ""))
    return ComparisonBase(
        nearest, f"batch of commit {nearest.about.commit[:12]}, the nearest available; {why}", beginning.commit
    )


def _iter_nearest_batches(
    head: BatchDir, candidates: list[BatchDir], repository: Repository, commit: str
) -> Iterator[BatchDir]:
    """Yield the ended batches of a commit, then those of its ancestors, nearest ancestor first.

    Only batches with the same tasks as `head` are yielded.
    """
    by_commit: dict[str, list[BatchDir]] = defaultdict(list)
    for batch in candidates:
        if batch.about.is_clean and batch.about.commit:
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


def _find_previous_batch(head: BatchDir, candidates: list[BatchDir]) -> ComparisonBase | NoBase:
    """Return the previous finished batch with the sources, paths and pipeline of `head`.

    Outside of git, it is the base.
    """
    comparable = (
        batch
        for batch in candidates
        if batch.about.pipeline == head.about.pipeline and batch.id < head.id and not batch.about.for_comparison
    )
    previous = next(filter(has_ended, comparable), None)
    if previous is None:
        return NoBase("no finished older batch has the same source, patterns and pipeline")
    is_in_git = any(map(is_in_repository, head.about.sources))
    why = "git is not available" if is_in_git else "the directory is not in a git repository"
    return ComparisonBase(previous, f"the previous batch, because {why}")


def _has_another_tree(batch: BatchDir, head: BatchDir) -> bool:
    return (
        batch.about.sources_and_paths == head.about.sources_and_paths
        and batch.about.snapshot_id != head.about.snapshot_id
    )


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
