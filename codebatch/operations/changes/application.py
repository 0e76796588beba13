"""Applying the changes of a batch: the conditions of the store, the batch and the location, then the writes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing, StoreUntrusted, StoreUnwritable
from codebatch.model.change import ProposedChange
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path
from codebatch.model.project import ProjectRoot, is_below
from codebatch.operations.changes.applicable_changes import read_applicable_changes, record_application
from codebatch.operations.changes.apply import apply_writes
from codebatch.operations.changes.checks import FileOutcome
from codebatch.operations.changes.file_writes import plan_writes, refuse_conflicts
from codebatch.operations.changes.hidden_files import read_hidden_files
from codebatch.operations.changes.task_changes import BatchChanges, group_by_task
from codebatch.operations.changes.tree_gates import refuse_tree_changes
from codebatch.operations.changes.verification import verify_changes
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.filters.paths import PathPatterns
from codebatch.query.status.unrecorded_work import UnrecordedRow
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.store.batches.pins import pin_reference
from codebatch.store.batches.resolution import belongs_to_other_project
from codebatch.store.batches.store_directory import StoreDir, check_created_here
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.reserved_names import has_reserved_name, is_bare_repository
from codebatch.store.work.work_batches import read_work
from codebatch.system.files.tree_writer import RealTreeCalls


class ApplyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `apply`.

    - `tasks`, `path`: restrict the changes. By default all are applied.
    - `root`: the directory of the files. None: the source of the batch, if it is the current project.
    - `is_reversed`: undo the changes.
    - `is_dry`: only check.
    - `is_partial`: write the other files if some are refused.
    - `is_trusted`: apply also from a store that was not created here by this user.
    - `includes_refused`: apply also the changes that gates refuse.
    - `runs_commands`: run the commands `verify` of tasks, unless changes are undone or refused ones are included.
    - `accepts_broken_base`: apply changes of a task although its command `verify` fails also without them.
    """

    tasks: tuple[str, ...] = ()
    path: PathPatterns = ""
    root: Path | None = None
    is_reversed: bool = False
    is_dry: bool = False
    is_partial: bool = False
    is_trusted: bool = False
    includes_refused: bool = False
    runs_commands: bool = True
    accepts_broken_base: bool = False


class ChosenChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that a call of `apply` writes.

    - `root`: the directory of the files.
    - `changes`: the changes, without those that are left out.
    - `gated`: the changes that gates refuse, and that are therefore left out, sorted by path.
    """

    root: bytes
    changes: BatchChanges
    gated: tuple[ProposedChange, ...] = ()


class AppliedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The directory of the files, and the outcome of each change, sorted by path.

    `lost` has the paths with work that the change sets do not record.
    """

    root: bytes
    outcomes: tuple[FileOutcome, ...]
    lost: tuple[UnrecordedRow, ...] = ()


def apply_changes(question: BatchQuery, options: ApplyOptions, on_root: Callable[[bytes], None]) -> AppliedChanges:
    """Write the changes that the tasks of a batch propose or made to the files of its source.

    `on_root` is called with the directory of the files before any of them is written. Before that, the batch is pinned,
    so that the changes can be undone until it is unpinned.

    Raises InvalidInput if several tasks of a task list change a file, and the errors of `choose_changes`,
    `leave_out_refused` and `apply_writes`.
    """
    selected = choose_changes(question, options)
    chosen = leave_out_refused(question, selected, options)
    if options.is_reversed and chosen.gated:
        chosen = _include_undoable(question, selected, chosen)
    changes, root = chosen.changes, chosen.root
    writes = plan_writes(changes.composed(), is_reversed=options.is_reversed)
    if writes and not options.is_dry:
        _pin(question)
    on_root(root)
    outcomes = apply_writes(
        RealTreeCalls(),
        root,
        writes,
        StoredContents(question.store.objects()),
        read_hidden_files(root, "" if options.is_reversed else changes.commit, writes, question.note),
        is_dry=options.is_dry,
        is_partial=options.is_partial,
    )
    if not options.is_dry:
        record_application(question, changes, outcomes, root=root, is_reversed=options.is_reversed)
    undone = {outcome.write.path for outcome in outcomes if options.is_reversed and outcome.state != "refused"}
    gated = [each for each in chosen.gated if each.change.path not in undone]
    outcomes = [*outcomes, *_gated_outcomes(gated, is_reversed=options.is_reversed)]
    outcomes.sort(key=lambda outcome: (outcome.write.path, outcome.write.task))
    return AppliedChanges(root=root, outcomes=tuple(outcomes), lost=tuple(changes.lost))


def choose_changes(question: BatchQuery, options: ApplyOptions) -> ChosenChanges:
    """Return the changes of a batch that the options select, also refused ones, and the directory of the files.

    Raises StoreUntrusted if the store was not created here, InvalidInput if the location is not certain, and the errors
    of `read_applicable_changes`.
    """
    if not options.is_trusted:
        _check_trusted(question.store)
    changes = read_applicable_changes(question, options.tasks, options.path)
    return ChosenChanges(root=_choose_root(question, options.root, changes.root), changes=changes)


def leave_out_refused(question: BatchQuery, chosen: ChosenChanges, options: ApplyOptions) -> ChosenChanges:
    """Return chosen changes without those that gates refuse, unless the options include them.

    For an analysis, the commands `verify` of tasks are run. Raises InvalidInput if several of its tasks change a file,
    and the errors of `verify_changes` and `refuse_tree_changes`.
    """
    changes = chosen.changes
    if is_work(question.batch):
        if options.includes_refused:
            return chosen
        changes = refuse_tree_changes(question.store, read_work(question.batch).trees, changes)
        return msgspec.structs.replace(
            chosen,
            changes=changes.only(lambda each: each.refusal is None),
            gated=tuple(each for each in changes.proposed() if each.refusal is not None),
        )
    proposed = changes.proposed()
    refuse_conflicts([change for change in proposed if change.refusal is None or options.includes_refused])
    if options.includes_refused:
        return chosen
    if options.runs_commands and not options.is_reversed:
        proposed = verify_changes(question, proposed, accepts_broken_base=options.accepts_broken_base)
    passed = [change for change in proposed if change.refusal is None]
    tasks = group_by_task(passed, [task.task for task in changes.tasks])
    return msgspec.structs.replace(
        chosen,
        changes=msgspec.structs.replace(changes, tasks=tasks),
        gated=tuple(change for change in proposed if change.refusal is not None),
    )


def _include_undoable(question: BatchQuery, selected: ChosenChanges, chosen: ChosenChanges) -> ChosenChanges:
    """Return chosen changes and those refused ones that can be undone: old content passes all gates.

    A refused change stays left out if several tasks change its file, or if this file has neither content.
    """
    counts = Counter(each.change.path for each in selected.changes.proposed())
    writes = plan_writes([each for each in chosen.gated if counts[each.change.path] == 1], is_reversed=True)
    hidden = read_hidden_files(chosen.root, "", writes, question.note)
    contents = StoredContents(question.store.objects())
    checked = apply_writes(RealTreeCalls(), chosen.root, writes, contents, hidden, is_dry=True, is_partial=True)
    undoable = {outcome.write.path for outcome in checked if outcome.state != "refused"}
    gated = tuple(each for each in chosen.gated if each.change.path not in undoable)
    left_out = {(each.task, each.change.path) for each in gated}
    changes = selected.changes.only(lambda each: (each.task, each.change.path) not in left_out)
    return msgspec.structs.replace(chosen, changes=changes, gated=gated)


def _gated_outcomes(refused: Sequence[ProposedChange], *, is_reversed: bool) -> Iterator[FileOutcome]:
    """Yield the outcomes of changes that gates refuse."""
    for change, write in zip(refused, plan_writes(refused, is_reversed=is_reversed), strict=True):
        yield FileOutcome(write=write, state="left_out", reason=gated_reason(change), is_gated=True)


def gated_reason(change: ProposedChange) -> str:
    """Return the reason why a change that a gate refuses is left out."""
    assert change.refusal is not None
    return f"refused by {change.refusal.gate}: {change.refusal.evidence}"


class StoredContents:
    """The contents of files in the objects of a store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def size(self, digest: Digest) -> int:
        """Return the number of bytes of a content. Raises ObjectMissing."""
        location = self._objects.find_location(digest)
        if location is None:
            raise ObjectMissing(f"object {digest} is missing")
        return location.frame.size

    def read(self, digest: Digest) -> bytes:
        """Return a content. Raises ObjectMissing or StoreCorrupt."""
        return self._objects.read(digest)


def _check_trusted(store: StoreDir) -> None:
    try:
        check_created_here(store)
    except StoreUntrusted as error:
        raise StoreUntrusted(
            f"nothing is written: {error.message}",
            hint="review the changes with `codebatch changes --patch`, then apply them with --trust",
        ) from error


def _choose_root(question: BatchQuery, named: Path | None, default: bytes) -> bytes:
    """Return the directory of the files. Raises InvalidInput if it must be named with `--root`, or cannot be used."""
    store = question.store
    if named is None:
        _refuse_other_project(question)
    root = os.path.realpath(os.fsencode(named) if named is not None else default)
    if not os.path.isdir(root):
        hint = "name the directory of the files with --root DIR"
        raise InvalidInput(f"{display_path(root)} is not a directory", hint=hint)
    is_store = root == os.path.realpath(os.fsencode(store.root))

    def has_name(name: bytes) -> bool:
        return os.path.lexists(os.path.join(root, name))

    if is_store or has_reserved_name(root) or (is_bare_repository(has_name) and not has_name(b".git")):
        raise InvalidInput(f"{display_path(root)} belongs to git or codebatch, so nothing is written there")
    return root


def _refuse_other_project(question: BatchQuery) -> None:
    batch, store = question.batch, question.store
    project = store.project
    if len(batch.about.sources) != 1:
        sources = ", ".join(map(display_path, batch.about.sources)) or "no source"
        raise InvalidInput(
            f"the location of the files is not certain: batch {batch.id} has {sources}",
            hint="name the directory of the files with --root DIR",
        )
    if project is None or not _is_current_project(store, project, batch):
        place = display_path(batch.about.project_root)
        raise InvalidInput(
            f"batch {batch.id} belongs to project {place}, not to the current project",
            hint=f"change to {place}, or name the directory of the files with --root DIR",
        )


def _is_current_project(store: StoreDir, project: ProjectRoot, batch: BatchDir) -> bool:
    """Return whether the current directory is in the project of a batch, or in the directory of its store."""
    source = batch.about.project_root
    if project.kind == "removed":
        return False
    if is_below(project.start, source):
        return True
    store_place = os.fsencode(store.root.parent.resolve())
    return is_below(project.start, store_place) and not belongs_to_other_project(store, batch)


def _pin(question: BatchQuery) -> None:
    try:
        with question.store.writing():
            pin_reference(question.store, question.batch.id)
    except StoreUnwritable as error:
        question.note(f"batch {question.batch.id} cannot be pinned, so it may be removed: {error.message}")
