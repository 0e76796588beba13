"""The option `--branch` of the command `apply`: changes as commits on a new branch."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.cli.answers.work_status import report_older_batch
from codebatch.cli.changes.shown_changes import no_changes_text, report_lost
from codebatch.cli.framework.context import CommandContext
from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.entry import PathMembers, display_path, path_fields
from codebatch.model.text.quantities import count_text
from codebatch.operations.changes.application import ApplyOptions, ChosenChanges, gated_reason
from codebatch.operations.changes.branch import BranchCommit, NewBranch
from codebatch.operations.changes.branch_application import BranchOptions, apply_to_branch, parse_commit_split
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.status.unrecorded_work import UnrecordedRow
from codebatch.work.control.history import OlderBatch
from codebatch.work.definition.selection import abbreviated_ids


class RefusedChangeRow(PathMembers, frozen=True, kw_only=True):
    """A change that does not fit on the commit of the batch, and the reason."""

    task: str
    reason: str


class BranchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch apply --branch`.

    - `root`: a directory of the repository.
    - `branch`: the name of the new branch. `created`: whether it exists now, and not only in a plan.
    - `parent`: the commit on which the branch is based.
    - `commits`: its commits, oldest first. `files` is the number of changed files.
    - `applied`: the number of changes that the parent has already.
    - `refused`: the changes that do not fit on the parent, sorted by path.
    - `left_out`: the tasks without a commit, because a change was refused.
    - `gated`: the changes that gates refuse, and that are therefore left out.
    - `unrecorded`: work of tasks that their changes do not record. It is only in the trees of these tasks.
    - `older_batch`: an older batch of the task list with tasks that are not done, or null. Missing for an analysis.
    """

    batch_id: str
    root: str
    dry_run: bool
    branch: str
    created: bool
    parent: str
    commits: tuple[BranchCommit, ...]
    applied: int
    refused: tuple[RefusedChangeRow, ...]
    left_out: tuple[str, ...]
    gated: tuple[RefusedChangeRow, ...]
    unrecorded: tuple[UnrecordedRow, ...]
    older_batch: OlderBatch | UnsetType | None = UNSET


def make_branch_options(
    name: str | None, commit_per: str | None, message: str | None, *, is_reversed: bool
) -> BranchOptions | None:
    """Return the options of a branch, or None without a branch. Raises InvalidInput if options exclude each other."""
    if name is None:
        for value, option_name in ((commit_per, "--commit-per"), (message, "--message")):
            if value is not None:
                raise InvalidInput(f"{option_name} can only be used with --branch")
        return None
    if is_reversed:
        raise InvalidInput(
            "--reverse cannot be used with --branch", hint="delete a branch with git branch -D, or revert its commits"
        )
    if message is not None and not _is_text(message):
        raise InvalidInput("--message is empty, or is not valid UTF-8")
    return BranchOptions(name=name, split=parse_commit_split(commit_per or "task"), message=message or "")


def _is_text(message: str) -> bool:
    try:
        message.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return bool(message.strip())


def print_branch(context: CommandContext, question: BatchQuery, options: ApplyOptions, branch: BranchOptions) -> int:
    """Make a branch of the changes of a batch, print the answer, and return the exit status."""

    def report_root(place: bytes) -> None:
        context.note(f"repository: {display_path(place)}")

    chosen, made = apply_to_branch(question, options, branch, report_root)
    answer = BranchAnswer(
        batch_id=question.batch.id,
        root=display_path(chosen.root),
        dry_run=options.is_dry,
        branch=made.name,
        created=made.is_created,
        parent=made.parent,
        commits=made.commits,
        applied=made.applied,
        refused=tuple(_refused_row(path, task, reason) for path, task, reason in made.refused),
        left_out=made.left_out,
        unrecorded=tuple(chosen.changes.lost),
        older_batch=report_older_batch(context, question.store, question.batch),
        gated=tuple(_refused_row(each.change.path, each.task, gated_reason(each)) for each in chosen.gated),
    )
    context.print(
        answer,
        _branch_lines(chosen, made, is_dry=options.is_dry),
        if_none=no_changes_text(question),
        name="apply-branch",
    )
    if chosen.gated:
        context.note(f"{count_text(len(chosen.gated), 'change')} left out by gates: to include them, add --refused")
    if made.left_out and made.is_created:
        names = abbreviated_ids(made.left_out)
        context.note(f"left out because of refused files: {names}; to commit their other files, add --partial")
    elif made.refused and made.commits and not made.is_created and not options.is_dry:
        context.note("to commit the other files, add --partial")
    if made.is_created:
        for command in _next_commands(chosen.root, made):
            context.note(f"next: {command}")
    is_lost = report_lost(context, question, answer.unrecorded, options.tasks)
    if is_lost or made.refused:
        return BatchIncomplete.exit_status
    return 1 if chosen.gated and not (made.commits or made.applied) else 0


def _refused_row(path: bytes, task: str, reason: str) -> RefusedChangeRow:
    text, encoded = path_fields(path)
    return RefusedChangeRow(path=text, path_b64=encoded, task=task, reason=reason)


def _branch_lines(chosen: ChosenChanges, made: NewBranch, *, is_dry: bool) -> Iterator[str]:
    shown = made.commits if made.is_possible else ()
    for commit in shown:
        yield f"{'commit' if commit.id is None else commit.id[:12]}  {commit.subject}"
    for each in chosen.gated:
        yield f"left out {display_path(each.change.path)}: {gated_reason(each)}"
    for path, _, reason in made.refused:
        yield f"refused  {display_path(path)}: {reason}"
    texts = []
    if shown:
        files = sum(commit.files for commit in shown)
        verb = "can be made" if is_dry else "made"
        texts.append(f"{count_text(len(shown), 'commit')} with {count_text(files, 'file')} {verb}")
    if made.applied:
        texts.append(f"{count_text(made.applied, 'file')} already changed in commit {made.parent[:12]}")
    if made.refused:
        texts += [] if shown else ["no commits"]
        texts.append(f"{len(made.refused):,} refused")
    if texts:
        yield ", ".join(texts)


def _next_commands(root: bytes, made: NewBranch) -> Iterator[str]:
    """Yield the commands that show the branch, and push it if there is a remote repository."""
    place = Path(display_path(root))
    git = "git" if place == Path.cwd() else f"git -C {shlex.quote(str(place))}"
    yield f"{git} diff {shlex.quote(f'{made.parent_name}...{made.name}')}"
    if made.remote is not None:
        yield f"{git} push {shlex.quote(made.remote)} {shlex.quote(made.name)}"
