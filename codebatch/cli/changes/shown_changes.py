"""The changes of an analysis or of a task list that the command `changes` shows, and the printing of its answers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from codebatch.cli.answers.work_result import report_unrecorded
from codebatch.cli.answers.work_status import report_older_batch
from codebatch.cli.framework.answer_printing import emit_formatted, emit_rows
from codebatch.cli.framework.context import CommandContext
from codebatch.errors import BatchIncomplete
from codebatch.model.change import ProposedChange
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import percentage_of
from codebatch.operations.changes.file_writes import refuse_conflicts
from codebatch.operations.changes.judgement import refuse_unsafe_patch
from codebatch.operations.changes.listing import find_changes, iter_patches
from codebatch.operations.changes.task_changes import BatchChanges
from codebatch.operations.changes.tree_gates import refuse_tree_changes
from codebatch.operations.changes.work_changes import read_work_changes
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.query.filters.paths import PathPatterns
from codebatch.query.status.unapplied_changes import read_unapplied_changes
from codebatch.query.status.unrecorded_work import UnrecordedRow, has_unknown_changes
from codebatch.query.status.work_status import WorkBatchStatus, read_work_status
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store.batches.batch_directory import is_work
from codebatch.work.control.batches import load_work_batch
from codebatch.work.definition.selection import abbreviated_ids

_NO_CHANGES = "no changes"
_IGNORED_NAMED_MAX = 5


class ShownChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that some tasks of a batch propose or made, sorted by path.

    - `tasks`: the named tasks. If it is empty, all tasks are shown.
    - `states`: the state of each task of a task list. Empty for an analysis.
    - `changes`: the changes of a task list that a patch can have.
    - `unrecorded`: what the change sets of a task list do not record.
    - `unchanged`: the tasks of a task list that are done and changed nothing.
    - `answer`: the answer of an analysis. `status`: the state of a task list. The other one is None.
    """

    question: BatchQuery
    tasks: Sequence[str]
    proposed: list[ProposedChange]
    states: Mapping[str, CommandState] = {}
    changes: BatchChanges | None = None
    unrecorded: list[UnrecordedRow] = []
    unchanged: list[str] = []
    answer: Answer[list[ProposedChange]] | None = None
    status: WorkBatchStatus | None = None

    @property
    def has_unfinished(self) -> bool:
        """Whether there are changes of tasks that are not DONE."""
        return any(state is not CommandState.DONE for state in self.states.values())

    def for_patch(self, proposed: list[ProposedChange]) -> list[ProposedChange]:
        """Return the changes that a patch has, if `proposed` are chosen. Raises InvalidInput for two of one file."""
        if self.changes is not None:
            return self.changes.only(set(proposed).__contains__).composed()
        refuse_conflicts(proposed)
        return proposed


def find_shown_changes(
    context: CommandContext, question: BatchQuery, tasks: Sequence[str], path: PathPatterns
) -> ShownChanges:
    """Return the changes of some tasks, by default of all tasks.

    The patch of a task list has only tasks that are DONE or named.

    Raises TaskNotRun, InvalidInput or StoreCorrupt.
    """
    if not is_work(question.batch):
        answer = find_changes(question, tasks, path)
        return ShownChanges(question=question, tasks=tasks, proposed=answer.result, answer=answer)
    status = read_work_status(question.store, question.batch)
    chosen = read_work_changes(question.store, question.batch, tasks, path, status)
    chosen = refuse_tree_changes(question.store, status.work.trees, chosen)
    context.report_other_project(question.store, question.batch)
    return ShownChanges(
        question=question,
        tasks=tasks,
        proposed=chosen.proposed(),
        states={task.task: task.state for task in chosen.tasks if task.changes},
        changes=chosen if tasks else chosen.only_done(),
        unrecorded=chosen.unrecorded,
        unchanged=[
            id_
            for id_ in read_unapplied_changes(question.store, question.batch, status).unchanged
            if not tasks or id_ in tasks
        ],
        status=status,
    )


def print_rows(
    context: CommandContext, shown: ShownChanges, rows: object, lines: Iterable[str], *, name: str | None = None
) -> int:
    """Print rows of an answer, or their lines, and return the exit status."""
    if shown.answer is not None:
        return emit_rows(context, shown.answer, rows, lines, if_none="" if rows else _NO_CHANGES, name=name)
    assert shown.status is not None
    batch, commands = shown.question.batch, shown.status.commands
    done = sum(command.state is CommandState.DONE for command in commands)
    document = {
        "batch_id": batch.id,
        "project": display_path(batch.about.project_root),
        "complete": shown.status.state is BatchState.COMPLETED and not any(row.is_lost for row in shown.unrecorded),
        "percent": percentage_of(done, len(commands)),
        "stale": None,
        "paths": (),
        "records": rows,
        "unrecorded": shown.unrecorded,
        "unchanged": shown.unchanged,
        "older_batch": report_older_batch(context, shown.question.store, batch),
    }
    if_none = "" if rows or shown.unrecorded else no_changes_text(shown.question)
    context.print(document, lines, if_none=if_none, name=name)
    if shown.unchanged:
        context.note(f"done, changed nothing: {abbreviated_ids(shown.unchanged)}")
    if shown.has_unfinished:
        context.note("changes of tasks that are not DONE are not applied")
    return _unrecorded_status(context, shown)


def print_patch(context: CommandContext, shown: ShownChanges, proposed: Sequence[ProposedChange]) -> int:
    """Print changes as a patch, and return the exit status. Raises InvalidInput if the patch would not be safe."""
    refuse_unsafe_patch(proposed)
    write = partial(_write_patch, context, shown.question, proposed)
    if shown.answer is not None:
        return emit_formatted(context, shown.answer, write, if_none="" if proposed else _NO_CHANGES)
    context.display.erase_for_output()
    write()
    report_older_batch(context, shown.question.store, shown.question.batch)
    if not proposed:
        context.note(no_changes_text(shown.question))
    return _unrecorded_status(context, shown)


def _unrecorded_status(context: CommandContext, shown: ShownChanges) -> int:
    """Report what the changes of a task list do not record, and return the exit status."""
    ignored = [row for row in shown.unrecorded if not row.is_lost]
    for row in ignored[:_IGNORED_NAMED_MAX]:
        context.note(f"ignored, so not recorded: {display_path(row.path_bytes)} ({row.task})")
    if len(ignored) > _IGNORED_NAMED_MAX:
        context.note(f"ignored, so not recorded: {len(ignored) - _IGNORED_NAMED_MAX:,} more")
    lost = [row for row in shown.unrecorded if row.is_lost]
    return BatchIncomplete.exit_status if report_lost(context, shown.question, lost, shown.tasks) else 0


def report_lost(
    context: CommandContext, question: BatchQuery, lost: Collection[UnrecordedRow], tasks: Collection[str]
) -> bool:
    """Report the work of tasks, by default of all, that their changes do not record. Return whether there is any."""
    if not is_work(question.batch):
        return False
    work_batch = load_work_batch(question.store, question.batch)
    unknown = filter(has_unknown_changes, work_batch.standing.commands)
    names = {row.task for row in lost} | {command.id for command in unknown if not tasks or command.id in tasks}
    return report_unrecorded(context, work_batch, names)


def no_changes_text(question: BatchQuery) -> str:
    """Return the text to print if a batch has no changes."""
    if not is_work(question.batch):
        return _NO_CHANGES
    state = read_work_status(question.store, question.batch).state
    return _NO_CHANGES if state is BatchState.COMPLETED else f"{_NO_CHANGES}, but the batch is {state.value}"


def _write_patch(context: CommandContext, question: BatchQuery, proposed: Sequence[ProposedChange]) -> None:
    patches = iter_patches(question.store.objects(), proposed)
    if sys.stdout.isatty():
        texts = (patch.decode("utf-8", "backslashreplace") for patch in patches)
        context.print(None, (line for text in texts for line in text.removesuffix("\n").split("\n")))
        return
    for patch in patches:
        sys.stdout.buffer.write(patch)
    sys.stdout.flush()
