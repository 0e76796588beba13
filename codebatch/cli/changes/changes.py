"""The command `changes`: the changes that the tasks of a batch propose, as a table, a patch or statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

import click
import msgspec
from msgspec import UNSET, UnsetType

from codebatch.cli.changes.batch_changes import changed_tasks_argument, open_changed_batch
from codebatch.cli.changes.shown_changes import ShownChanges, find_shown_changes, print_patch, print_rows
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import (
    CommandContext,
    batch_option,
    path_option,
    table_lines,
    with_common_options,
)
from codebatch.cli.framework.read_report import explain_option
from codebatch.errors import InvalidInput
from codebatch.model.change import ChangeRefusal, ProposedChange
from codebatch.model.entry import PathMembers, display_path, path_fields
from codebatch.model.owners import CodeOwners
from codebatch.model.text.quantities import count_text
from codebatch.operations.changes.groups import NO_OWNER, GroupedBy, group_changes, read_code_owners
from codebatch.operations.changes.listing import sample_stored_changes
from codebatch.scheduling.lifecycle import CommandState

_BAR_COLUMNS = 40


class ChangeRow(PathMembers, frozen=True, kw_only=True):
    """A change that a task proposes.

    - `before`, `after`: the digests of the old and the new content. With null, the file does not exist then.
    - `kind`: `file`, or `link` for a symbolic link, whose content is its target.
    - `executable`: whether the file is executable after the change.
    - `added`, `removed`: the numbers of lines that the change adds and removes.
    - `refused`: the gate that refuses the change, and the evidence. Otherwise it is missing.
    - `state`: the state of the task of a task list. Missing for an analysis.
    """

    task: str
    kind: Literal["file", "link"]
    before: str | None
    after: str | None
    executable: bool
    added: int
    removed: int
    refused: ChangeRefusal | UnsetType = UNSET
    state: str | UnsetType = UNSET


class ChangeGroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one task, owner or top-level directory, with `--by`.

    - `group`: the task, the owners, or the directory, which is `.` for files at the top. Null: the files have no owner.
    - `files`: the number of changes. `added`, `removed`: the numbers of lines.
    """

    group: str | None
    files: int
    added: int
    removed: int


@command()
@changed_tasks_argument
@batch_option
@path_option
@option("--patch", "is_patch", is_flag=True, help="Print a unified diff that `git apply` accepts")
@option("--stat", "is_stat", is_flag=True, help="Print the number of changed lines of each file")
@option("--refused", "is_refused", is_flag=True, help="Show only the changes that a gate refuses")
@option(
    "--sample",
    "sample",
    metavar="N",
    type=click.IntRange(min=1),
    help="Show N changes, of different directories and kinds of edits",
)
@option("--by", "by", type=click.Choice(get_args(GroupedBy)), help="Count the changes of each task, owner or directory")
@explain_option
@with_common_options
def changes(
    context: CommandContext,
    tasks: tuple[str, ...],
    batch_reference: str | None,
    path: str,
    is_patch: bool,
    is_stat: bool,
    is_refused: bool,
    sample: int | None,
    by: GroupedBy | None,
) -> int:
    """Show the changes that tasks of a batch propose.

    For a task list, these are the changes that isolated tasks made. No file is changed. `codebatch apply` writes the
    changes. TASK restricts them to some tasks.

    A patch has at most one change for each file. If several tasks change a file, name one of them.

    Without --batch, the latest analysis or task list with isolated tasks is used. Changes of tasks that failed are
    shown too, but they are neither in the patch nor applied.

    Gates check each change. The patch and the statistics have refused changes only with --refused, and
    `apply` leaves them out.
    """
    _refuse_combinations(is_patch=is_patch, is_stat=is_stat, is_json=context.as_json, sample=sample, by=by)
    question = open_changed_batch(context, batch_reference)
    shown = find_shown_changes(context, question, tasks, path)
    proposed = shown.proposed
    if is_refused or is_patch or is_stat:
        proposed = [each for each in proposed if (each.refusal is not None) == is_refused]
        if not is_refused and (left_out := len(shown.proposed) - len(proposed)):
            context.note(f"{count_text(left_out, 'refused change')} left out: see them with --refused")
    if by is not None:
        return _print_groups(context, shown, proposed, by)
    if is_patch:
        proposed = shown.for_patch(proposed)
    if sample is not None:
        proposed = _sample(context, shown, proposed, sample)
    if is_patch:
        return print_patch(context, shown, proposed)
    lines = _stat_lines(proposed) if is_stat else _table_lines(proposed, shown.states if shown.has_unfinished else {})
    rows = [_change_row(each, shown.states.get(each.task)) for each in proposed]
    return print_rows(context, shown, rows, lines)


def _refuse_combinations(
    *, is_patch: bool, is_stat: bool, is_json: bool, sample: int | None, by: GroupedBy | None
) -> None:
    if is_patch and (is_stat or is_json):
        raise InvalidInput(f"--patch cannot be used with {'--stat' if is_stat else '--json'}")
    for is_given, name in ((is_patch, "--patch"), (is_stat, "--stat"), (sample is not None, "--sample")):
        if by is not None and is_given:
            raise InvalidInput(f"--by cannot be used with {name}")


def _sample(
    context: CommandContext, shown: ShownChanges, proposed: list[ProposedChange], count: int
) -> list[ProposedChange]:
    sample = sample_stored_changes(shown.question.store.objects(), proposed, count)
    if len(sample) < len(proposed):
        context.note(f"{len(sample):,} of {count_text(len(proposed), 'change')}")
    return sample


def _print_groups(
    context: CommandContext, shown: ShownChanges, proposed: Sequence[ProposedChange], by: GroupedBy
) -> int:
    owners = read_code_owners(shown.question, context.note) if by == "owner" else CodeOwners()
    rows = [
        ChangeGroupRow(
            group=group.label,
            files=len(group.changes),
            added=sum(each.added for each in group.changes),
            removed=sum(each.removed for each in group.changes),
        )
        for group in group_changes(proposed, by, owners)
    ]
    cells = [(NO_OWNER if row.group is None else row.group, row.files, row.added, row.removed) for row in rows]
    lines = table_lines(cells, (by, "files", "added", "removed")) if rows else []
    return print_rows(context, shown, rows, lines, name="changes-by")


def _change_row(proposed: ProposedChange, state: CommandState | None) -> ChangeRow:
    change = proposed.change
    text, encoded = path_fields(change.path)
    return ChangeRow(
        path=text,
        path_b64=encoded,
        task=proposed.task,
        kind=change.kind,
        before=change.before,
        after=change.after,
        executable=change.executable,
        added=proposed.added,
        removed=proposed.removed,
        refused=proposed.refusal or UNSET,
        state=UNSET if state is None else state.value,
    )


def _table_lines(proposed: Sequence[ProposedChange], states: Mapping[str, CommandState]) -> list[str]:
    """Return the lines of a table. States and refusals have a column if there are any."""
    has_refusals = any(each.refusal is not None for each in proposed)
    columns = ("path", "task", *["state"] * bool(states), "added", "removed", *["refused"] * has_refusals)
    rows = [
        (
            display_path(each.change.path),
            each.task,
            *([states[each.task].value] if states else []),
            each.added,
            each.removed,
            *([_refusal_text(each)] if has_refusals else []),
        )
        for each in proposed
    ]
    return table_lines(rows, columns, paths=("path",)) if rows else []


def _refusal_text(proposed: ProposedChange) -> str:
    return "" if proposed.refusal is None else f"{proposed.refusal.gate}: {proposed.refusal.evidence}"


def _stat_lines(proposed: Sequence[ProposedChange]) -> Iterator[str]:
    """Yield a line with a bar for each changed file, and a line of totals."""
    if not proposed:
        return
    names = [display_path(each.change.path) for each in proposed]
    width = max(map(len, names))
    longest = max(each.added + each.removed for each in proposed)
    digits = len(f"{longest:,}")
    scale = min(1.0, _BAR_COLUMNS / max(longest, 1))
    for name, each in zip(names, proposed, strict=True):
        bar = "+" * _bar_length(each.added, scale) + "-" * _bar_length(each.removed, scale)
        yield f"{name:<{width}} | {each.added + each.removed:>{digits},} {bar}".rstrip()
    files = count_text(len(set(names)), "file")
    added, removed = sum(each.added for each in proposed), sum(each.removed for each in proposed)
    yield f"{files} changed, {count_text(added, 'line')} added, {count_text(removed, 'line')} removed"


def _bar_length(lines: int, scale: float) -> int:
    return max(round(lines * scale), 1) if lines else 0
