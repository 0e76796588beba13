"""The files with which the trees of isolated commands start, recorded when a batch is made."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from codebatch.errors import InvalidInput
from codebatch.git.ancestry import Repository
from codebatch.git.checkout import count_uncommitted_changes
from codebatch.git.repository import GitError, find_git
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.model.work.trees import TreeSettings
from codebatch.model.work.work_batch import Work
from codebatch.operations import NoteCallback
from codebatch.operations.project.project_snapshot import take_snapshot_of_paths
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.walk import work_tree_around
from codebatch.store.batches.store_directory import StoreDir
from codebatch.work.control.tree_files import check_base_files, read_commit_files, read_snapshot_files
from codebatch.work.definition.selection import abbreviated_ids
from codebatch.work.definition.work_list import WorkList

_COPY_HINT = 'to isolate tasks without git, set isolation = "copy"'


def record_tree_base(store: StoreDir, listed: WorkList, work: Work, note: NoteCallback) -> Work:
    """Return the settings of a batch with the commit and the snapshot with which its trees start.

    - isolation `worktree`: the commit at HEAD. A note has the number of uncommitted changes.
    - isolation `copy`: a new snapshot of the root. On return it is durable. The caller holds the lock of the store.

    A note names the needed tasks whose changes are missing from the trees, because another batch has them. Other notes
    are those of `check_base_files`.

    Without isolated commands, nothing is read. Raises InvalidInput if the root has no commit, or if it is below the top
    of its repository and there are both kinds of isolation, because the paths of their changes would differ. Raises the
    errors of `take_snapshot` and `check_base_files`.
    """
    if work.trees is UNSET:
        return work
    trees = work.trees
    notes: list[str] = []
    isolations = {command.isolation for command in listed.commands}
    if "worktree" in isolations:
        trees = _with_commit(trees, work.root, note)
        notes += check_base_files(read_commit_files(trees, work.root), trees, work.root)
        if "copy" in isolations and trees.repository != work.root:
            raise InvalidInput(
                f"the root {display_path(work.root)} is not the top of a repository, so its tasks cannot have both "
                'isolation = "worktree" and isolation = "copy"',
                hint=f"use one kind of isolation, or set root to {display_path(trees.repository)}",
            )
    if "copy" in isolations:
        result = take_snapshot_of_paths(store, [Path(os.fsdecode(work.root))], SourceRules())
        trees = replace(trees, snapshot=result.snapshot_id)
        notes += check_base_files(read_snapshot_files(store, trees, work.root), trees, work.root)
    for text in dict.fromkeys(notes):
        note(text)
    isolated = {command.id for command in listed.commands if command.isolation is not UNSET}
    missing = sorted({edge.on for edge in work.satisfied_needs if edge.task in isolated})
    if missing:
        note(f"the trees do not have the changes of needed tasks that are not in the batch: {abbreviated_ids(missing)}")
    return replace(work, trees=trees)


def _with_commit(trees: TreeSettings, root: bytes, note: NoteCallback) -> TreeSettings:
    top, git = work_tree_around(root), find_git()
    if top is None:
        raise InvalidInput(
            f'isolation = "worktree" needs a git repository, but {display_path(root)} is not in one', hint=_COPY_HINT
        )
    if git is None:
        raise InvalidInput('isolation = "worktree" needs git, which is not installed', hint=_COPY_HINT)
    commit = Repository(git, top).find("HEAD")
    if commit is None:
        raise InvalidInput(
            f'isolation = "worktree" needs a commit, but {display_path(top)} has none that can be read',
            hint=f"make a commit first; {_COPY_HINT}",
        )
    try:
        changes = count_uncommitted_changes(git, top)
    except GitError as error:
        note(f"uncommitted changes in {display_path(top)} are not in the trees; they were not counted: {error}")
    else:
        if changes:
            are = "is" if changes == 1 else "are"
            note(f"{count_text(changes, 'uncommitted change')} in {display_path(top)} {are} not in the trees")
    return replace(trees, repository=top, base=commit)
