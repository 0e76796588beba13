"""Choice of the base of a comparison, if none is named (SPEC.md "Quality gate"), with the reason that is reported."""

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
from codebatch.operations.history.branch_point import Beginning, beginning_of
from codebatch.operations.history.checkouts import repository_of
from codebatch.operations.history.newest_commit import is_in_repository
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.store.batches.batches import BatchDir, iter_batches, snapshot_of
from codebatch.store.batches.store import StoreDir

_IS_FIRST = "first run: the store has no other batch of this source"


class ComparisonBase(NamedTuple):
    """A batch to compare with, and why it is that one.

    `change_begins` is where the change begins, where that is after the commit of the batch: what lies between is not of
    the change.
    """

    batch: BatchDir
    why: str
    change_begins: str | None = None


class NoBase(NamedTuple):
    """The reason why there is no base. `is_first`: the store has no batch of another tree of this source."""

    why: str
    is_first: bool = False


def choose_base(
    store: StoreDir, head: BatchDir, execution: ExecutionSettings, listener: Listener, environment: Mapping[str, str]
) -> ComparisonBase | NoBase:
    """Return the batch that `head` is compared with: of the same source and paths, files chosen by the same patterns.

    The first batch of a source is compared with nothing, except in a pull request of GitHub: there a lost cache must
    not pass every change. Raises StoreError, and Stopped at a signal while the base is run.
    """
    known = [each for each in iter_batches(store, listener.note) if _is_of_another_tree(each, head)]
    others = [each for each in known if each.about.stat_cache in ("", head.about.stat_cache)]
    found = repository_of(head.about.sources)
    repository = None if found is None else Repository(*found)
    is_first = not known and (repository is None or not _has_been_elsewhere(store, head, repository))
    if is_first and (repository is None or not environment.get("GITHUB_BASE_REF")):
        return NoBase(_IS_FIRST, is_first=True)
    if repository is None:
        return _before(head, others)
    try:
        begins = beginning_of(head, repository, environment)
    except GitError as error:
        base: ComparisonBase | NoBase = NoBase(str(error))
    else:
        base = _of_commit(store, head, others, repository, begins, execution, listener)
    return NoBase(f"{_IS_FIRST}; {base.why}", is_first=True) if is_first and isinstance(base, NoBase) else base


def _has_been_elsewhere(store: StoreDir, head: BatchDir, repository: Repository) -> bool:
    """Whether the store has a batch of this repository's in another place: a cache of CI is restored anywhere.

    It is by its commit. A shallow clone has few of them: there it is by the paths of its files too.
    """
    others = [
        each
        for each in iter_batches(store)
        if is_commit(each.about.commit)
        and each.about.paths == head.about.paths
        and each.about.snapshot_id != head.about.snapshot_id
    ]
    if any(repository.find(each.about.commit) is not None for each in others):
        return True
    if not others or not repository.is_shallow:
        return False
    latest = {each.about.sources: each for each in reversed(others)}
    paths = _paths_of(store, head)
    return any(2 * len(paths & theirs) > len(theirs) for theirs in (_paths_of(store, each) for each in latest.values()))


def _paths_of(store: StoreDir, batch: BatchDir) -> set[bytes]:
    try:
        return {entry.path for entry in snapshot_of(store, batch).entries}
    except (StoreError, UnknownId):
        return set()


def _of_commit(
    store: StoreDir,
    head: BatchDir,
    others: list[BatchDir],
    repository: Repository,
    begins: Beginning,
    execution: ExecutionSettings,
    listener: Listener,
) -> ComparisonBase | NoBase:
    near = _nearest(head, others, repository, begins.commit)
    nearest = next((each for each in near if have_same_submodules(store, each, head)), None)
    told = f"commit {begins.commit[:12]}, {begins.told}"
    if nearest is not None and nearest.about.commit == begins.commit:
        return ComparisonBase(nearest, f"batch of {told}")
    try:
        made = run_commit_as(store, head, begins.commit, execution, listener, label=told)
        return ComparisonBase(made, f"batch of {told}, analysed for this check")
    except Stopped:
        raise
    except (GitError, CodebatchError, OSError) as error:
        why = f"{told}, cannot be analysed: {error}"
    if nearest is None:
        fetch = "; fetch more history: git fetch --deepen=1, or in actions/checkout set `fetch-depth: 2`"
        return NoBase(why + (fetch if repository.is_shallow else ""))
    return ComparisonBase(
        nearest, f"batch of commit {nearest.about.commit[:12]}, the nearest available; {why}", begins.commit
    )


def _nearest(head: BatchDir, others: list[BatchDir], repository: Repository, commit: str) -> Iterator[BatchDir]:
    """The batches that stand for a commit or one before it, under the same tasks, the nearest first."""
    of_commits: dict[str, list[BatchDir]] = defaultdict(list)
    for each in others:
        if each.about.is_clean and each.about.commit:
            of_commits[each.about.commit].append(each)
    plan = head.plan()
    yield from filter(lambda each: _is_like(each, plan), of_commits.pop(commit, []))
    if of_commits:
        try:
            before = repository.ancestors(commit)
        except GitError:  # It is not in this clone, be it shallow.
            return
        for ancestor in before:
            yield from filter(lambda each: _is_like(each, plan), of_commits.get(ancestor, []))


def _before(head: BatchDir, others: list[BatchDir]) -> ComparisonBase | NoBase:
    """Outside of git: the one before, of the same source, paths and pipeline."""
    alike = (
        each
        for each in others
        if each.about.pipeline == head.about.pipeline and each.id < head.id and not each.about.for_comparison
    )
    found = next(filter(has_ended, alike), None)
    if found is None:
        return NoBase("no finished older batch has the same source, patterns and pipeline")
    is_in_git = any(map(is_in_repository, head.about.sources))
    why = "git is not available" if is_in_git else "the directory is not in a git repository"
    return ComparisonBase(found, f"the previous batch, because {why}")


def _is_of_another_tree(batch: BatchDir, head: BatchDir) -> bool:
    return batch.about.place == head.about.place and batch.about.snapshot_id != head.about.snapshot_id


def _is_like(batch: BatchDir, plan: Plan) -> bool:
    """Whether a batch has ended, under just these tasks."""
    try:
        return _alike(batch.plan()) == _alike(plan) and has_ended(batch)
    except (StoreError, UnknownId):
        return False


def _alike(plan: Plan) -> set[str]:
    """The tasks of a plan by their keys; imports by their names, for each is of one tree."""
    return {task.name if is_import(task) else task.key for task in plan.tasks}
