"""The command `changes`: the changes that the tasks of a batch propose, as a table, a patch or statistics."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial

from codebatch.cli.changes.batch_changes import changed_tasks_argument, open_changed_batch
from codebatch.cli.framework.answer_printing import emit_formatted, emit_rows
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
from codebatch.model.change import ProposedChange
from codebatch.model.entry import PathMembers, display_path, path_fields
from codebatch.model.text.quantities import count_text
from codebatch.operations.changes.file_writes import refuse_conflicts
from codebatch.operations.changes.listing import find_changes, iter_patches
from codebatch.operations.queries.batch_query import BatchQuery

_COLUMNS = ("path", "task", "added", "removed")
_BAR_COLUMNS = 40


class ChangeRow(PathMembers, frozen=True, kw_only=True):
    """A change that a task proposes.

    - `before`, `after`: the digests of the old and the new content. With null, the file does not exist then.
    - `executable`: whether the file is executable after the change.
    - `added`, `removed`: the numbers of lines that the change adds and removes.
    """

    task: str
    before: str | None
    after: str | None
    executable: bool
    added: int
    removed: int


@command()
@changed_tasks_argument
@batch_option
@path_option
@option("--patch", "is_patch", is_flag=True, help="Print a unified diff that `git apply` accepts")
@option("--stat", "is_stat", is_flag=True, help="Print the number of changed lines of each file")
@explain_option
@with_common_options
def changes(
    context: CommandContext,
    tasks: tuple[str, ...],
    batch_reference: str | None,
    path: str,
    is_patch: bool,
    is_stat: bool,
) -> int:
    """Show the changes that tasks of a batch propose.

    No file is changed. `codebatch apply` writes the changes. TASK restricts them to some tasks.

    A patch has at most one change for each file. If several tasks change a file, name one of them.
    """
    if is_patch + is_stat + context.as_json * is_patch > 1:
        raise InvalidInput(f"--patch cannot be used with {'--stat' if is_stat else '--json'}")
    question = open_changed_batch(context, batch_reference)
    answer = find_changes(question, tasks, path)
    proposed = answer.result
    if is_patch:
        refuse_conflicts(proposed)
        write = partial(_write_patch, context, question, proposed)
        return emit_formatted(context, answer, write, if_none="" if proposed else "no changes")
    lines = _stat_lines(proposed) if is_stat else _table_lines(proposed)
    return emit_rows(context, answer, list(map(_change_row, proposed)), lines, if_none="" if proposed else "no changes")


def _change_row(proposed: ProposedChange) -> ChangeRow:
    change = proposed.change
    text, encoded = path_fields(change.path)
    return ChangeRow(
        path=text,
        path_b64=encoded,
        task=proposed.task,
        before=change.before,
        after=change.after,
        executable=change.executable,
        added=proposed.added,
        removed=proposed.removed,
    )


def _write_patch(context: CommandContext, question: BatchQuery, proposed: Sequence[ProposedChange]) -> None:
    patches = iter_patches(question.records, proposed)
    if sys.stdout.isatty():
        texts = (patch.decode("utf-8", "backslashreplace") for patch in patches)
        context.print(None, (line for text in texts for line in text.removesuffix("\n").split("\n")))
        return
    for patch in patches:
        sys.stdout.buffer.write(patch)
    sys.stdout.flush()


def _table_lines(proposed: Sequence[ProposedChange]) -> list[str]:
    rows = [(display_path(each.change.path), each.task, each.added, each.removed) for each in proposed]
    return table_lines(rows, _COLUMNS, paths=("path",)) if rows else []


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
