"""The command `apply`: write the changes that a batch proposes to the files of its source, or undo them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.cli.answers.work_status import report_older_batch
from codebatch.cli.changes.batch_changes import changed_tasks_argument, open_changed_batch
from codebatch.cli.changes.branch import make_branch_options, print_branch
from codebatch.cli.changes.shown_changes import no_changes_text, report_lost
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, SourcePath, batch_option, path_option, with_common_options
from codebatch.errors import BatchIncomplete
from codebatch.model.entry import PathMembers, display_path, path_fields
from codebatch.model.text.quantities import count_text
from codebatch.operations.changes.application import AppliedChanges, ApplyOptions, apply_changes
from codebatch.operations.changes.checks import FileOutcome, FileState
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.status.unrecorded_work import UnrecordedRow
from codebatch.work.control.history import OlderBatch

_WRITTEN_SHOWN_MAX = 20


class ApplyRow(PathMembers, frozen=True, kw_only=True):
    """The outcome of a change.

    - `state`: `written`; `applied` if the file already had the new content; `left_out` if the file could be written,
      but was not; or `refused`.
    - `reason`: why the file was left out or refused. Otherwise it is missing.
    """

    task: str
    state: FileState
    reason: str | UnsetType = UNSET


class ApplyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch apply`.

    - `root`: the directory of the files.
    - `reverse`: whether the changes were undone.
    - `written`, `applied`, `left_out`, `refused`: the numbers of files in these states.
    - `files`: one row for each file, sorted by path.
    - `unrecorded`: work of tasks that their changes do not record. It is only in the trees of these tasks.
    - `older_batch`: an older batch of the task list with tasks that are not done, or null. Missing for an analysis.
    """

    batch_id: str
    root: str
    dry_run: bool
    reverse: bool
    written: int
    applied: int
    left_out: int
    refused: int
    files: tuple[ApplyRow, ...]
    unrecorded: tuple[UnrecordedRow, ...]
    older_batch: OlderBatch | UnsetType | None = UNSET


@command()
@changed_tasks_argument
@batch_option
@path_option
@option("--dry-run", "is_dry", is_flag=True, help="Check all files, and write nothing")
@option("--partial", "is_partial", is_flag=True, help="Write the other files if some cannot be written")
@option("--reverse", "is_reversed", is_flag=True, help="Undo the changes: write the old content of each file")
@option(
    "--branch",
    "branch",
    metavar="NAME",
    help="Make commits on a new branch instead of writing files",
    details="The work tree and the index stay as they are. The branch begins at the commit of the batch.",
)
@option(
    "--commit-per",
    "commit_per",
    metavar="[task|owner|directory|files:N]",
    default_text="task",
    help="Make a commit for each task, owner, directory, or N files of a task",
)
@option("--message", "message", metavar="TEXT", default_text="task and number of files", help="Message of the commits")
@option(
    "--root",
    "root",
    metavar="DIR",
    type=SourcePath(),
    default_text="source of the batch, if it is the current project",
    help="Directory of the files",
)
@option(
    "--trust",
    "is_trusted",
    is_flag=True,
    help="Apply changes even if the store was not created on this machine",
    details="Review such changes first, with `codebatch changes --patch`.",
)
@option("--refused", "includes_refused", is_flag=True, help="Apply also the changes that a gate refuses")
@option("--no-commands", is_flag=True, help="Do not run the commands `verify` of tasks")
@option("--accept-broken-base", is_flag=True, help="Apply changes if `verify` also fails, or cannot run, without them")
@with_common_options
def apply(
    context: CommandContext,
    tasks: tuple[str, ...],
    batch_reference: str | None,
    path: str,
    is_dry: bool,
    is_partial: bool,
    is_reversed: bool,
    branch: str | None,
    commit_per: str | None,
    message: str | None,
    root: Path | None,
    is_trusted: bool,
    includes_refused: bool,
    no_commands: bool,
    accept_broken_base: bool,
) -> int:
    """Write the changes that a batch proposes to the files of the project.

    TASK restricts the changes to some tasks. An analysis must be complete. For a task list, the changes of all tasks
    that are DONE are written. The batch is pinned, so that --reverse can undo the changes.

    First, all files are checked. A file is refused if its content is not the one that the change was made for, or if it
    cannot be replaced safely. If a file is refused, nothing is written, unless --partial is given. Each file is
    replaced completely or not at all. If `apply` is stopped, the same command completes it.

    Changes that a gate refuses are left out, unless --refused is given. If a task has a command `verify`, it is run
    first, in a copy of the analysed files with the changes.

    Exit status 1 if gates refuse all changes. Exit status 3 if a file was refused, if --reverse leaves out a change, or
    if work of a task is not recorded in its changes.
    """
    branch_options = make_branch_options(branch, commit_per, message, is_reversed=is_reversed)
    question = open_changed_batch(context, batch_reference, is_change=True)
    options = ApplyOptions(
        tasks=tasks,
        path=path,
        root=root,
        is_reversed=is_reversed,
        is_dry=is_dry,
        is_partial=is_partial,
        is_trusted=is_trusted,
        includes_refused=includes_refused,
        runs_commands=not no_commands,
        accepts_broken_base=accept_broken_base,
    )
    if branch_options is not None:
        return print_branch(context, question, options, branch_options)

    def report_root(place: bytes) -> None:
        context.note(f"{'checking files in' if is_dry else 'writing to'} {display_path(place)}")

    applied = apply_changes(question, options, report_root)
    answer = _make_answer(context, question, applied, options)
    gated = sum(outcome.is_gated for outcome in applied.outcomes)
    context.print(
        answer, _apply_lines(applied, answer, gated), if_none="" if applied.outcomes else no_changes_text(question)
    )
    if gated:
        context.note(f"to {'undo' if is_reversed else 'apply'} the changes that gates refuse, add --refused")
    if answer.refused and answer.left_out > gated and not is_dry:
        context.note("to write the other files, add --partial")
    if answer.written:
        context.note(f"next: {_next_command(applied.root)}")
        if not is_reversed:
            context.note(f"to undo this: {_undo_command(question.batch.id, options)}")
    is_lost = not is_reversed and report_lost(context, question, answer.unrecorded, tasks)
    if is_lost or answer.refused or (is_reversed and gated):
        return BatchIncomplete.exit_status
    return 1 if gated and gated == len(applied.outcomes) else 0


def _undo_command(batch_id: str, options: ApplyOptions) -> str:
    """Return the command that undoes exactly the changes that the options chose."""
    flags = {
        "--partial": options.is_partial,
        "--trust": options.is_trusted,
        "--refused": options.includes_refused,
    }
    paths = [options.path] if isinstance(options.path, str) else options.path
    words = ["codebatch", "apply", "--reverse", "--batch", batch_id]
    words += [flag for flag, is_set in flags.items() if is_set]
    words += [f"--path={path}" for path in paths if path]
    words += [f"--root={options.root}"] if options.root is not None else []
    words += ["--"] if any(task.startswith("-") for task in options.tasks) else []
    return shlex.join([*words, *options.tasks])


def _make_answer(
    context: CommandContext, question: BatchQuery, applied: AppliedChanges, options: ApplyOptions
) -> ApplyAnswer:
    counts = Counter(outcome.state for outcome in applied.outcomes)
    return ApplyAnswer(
        batch_id=question.batch.id,
        root=display_path(applied.root),
        dry_run=options.is_dry,
        reverse=options.is_reversed,
        written=counts["written"],
        applied=counts["applied"],
        left_out=counts["left_out"],
        refused=counts["refused"],
        files=tuple(map(_apply_row, applied.outcomes)),
        unrecorded=() if options.is_reversed else applied.lost,
        older_batch=report_older_batch(context, question.store, question.batch),
    )


def _apply_row(outcome: FileOutcome) -> ApplyRow:
    text, encoded = path_fields(outcome.write.path)
    return ApplyRow(
        path=text,
        path_b64=encoded,
        task=outcome.write.task,
        state=outcome.state,
        reason=outcome.reason or UNSET,
    )


def _apply_lines(applied: AppliedChanges, answer: ApplyAnswer, gated: int) -> Iterator[str]:
    if not applied.outcomes:
        return
    is_plan = answer.dry_run and not answer.refused
    state, label = ("left_out", "to write") if is_plan else ("written", "written ")
    shown = [outcome for outcome in applied.outcomes if outcome.state == state and not outcome.is_gated]
    for outcome in shown[:_WRITTEN_SHOWN_MAX]:
        yield f"{label} {display_path(outcome.write.path)}"
    if len(shown) > _WRITTEN_SHOWN_MAX:
        yield f"{label} {len(shown) - _WRITTEN_SHOWN_MAX:,} more"
    for outcome in applied.outcomes:
        if outcome.state == "refused" or outcome.is_gated:
            label = "left out" if outcome.is_gated else "refused "
            yield f"{label} {display_path(outcome.write.path)}: {outcome.reason}"
    left_out = next((each.reason for each in applied.outcomes if each.state == "left_out" and not each.is_gated), "")
    texts = [f"{count_text(len(shown), 'file')} {'can be written' if is_plan else 'written'}"]
    if answer.applied:
        texts.append(f"{answer.applied:,} already {'undone' if answer.reverse else 'applied'}")
    if gated:
        texts.append(f"{gated:,} left out by gates")
    if answer.left_out > gated and not is_plan:
        texts.append(f"{answer.left_out - gated:,} left out ({left_out})")
    if answer.refused:
        texts.append(f"{answer.refused:,} refused")
    yield ", ".join(texts)


def _next_command(root: bytes) -> str:
    """Return the command that shows the changes of a git work tree, or otherwise the command that analyses it."""
    place = Path(display_path(root))
    is_here = place == Path.cwd()
    if any((directory / ".git").exists() for directory in (place, *place.parents)):
        return "git diff" if is_here else f"git -C {shlex.quote(str(place))} diff"
    return f"codebatch run {'.' if is_here else shlex.quote(str(place))}"
