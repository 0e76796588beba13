"""Rows about places in files: on a terminal grouped by file and limited to some files, otherwise one line each."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from codebatch.cli.answers.empty_answers import emit_search
from codebatch.cli.framework.answer_printing import emit_formatted
from codebatch.cli.framework.context import CommandContext, OutputForm
from codebatch.cli.output.terminal import printable_line
from codebatch.cli.output.widths import fit_line, terminal_width
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import Answer
from codebatch.query.fields import JsonRecord, record_path

FILES_SHOWN = 50
"""Number of files that are shown on a terminal by default."""
LIMIT_DEFAULT_TEXT = f"{FILES_SHOWN} files on a terminal, otherwise all"
_DIRECTORIES_NAMED = 5
_OTHER_FORMS = ("table", "jsonl", "csv", "md")

PlaceCells = tuple[str, str, str]
"""The place of a row in its file, its role or another short text, and a longer text."""


class RowStyle(NamedTuple):
    """The text of rows of one kind.

    - `noun`: the word for a row in counts.
    - `columns`: the columns of formats such as CSV.
    - `line`: a function that returns a row as one line, with its path.
    - `cells`: a function that returns the cells of all rows of one file.
    - `group`: a function that returns a group of a row, such as its role, and the option that selects the group.
    """

    noun: str
    columns: Sequence[str]
    line: Callable[[JsonRecord], str]
    cells: Callable[[Sequence[JsonRecord]], Iterable[PlaceCells]]
    group: Callable[[JsonRecord], tuple[str, str]] | None = None


def emit_file_groups(
    context: CommandContext,
    answer: Answer[object],
    rows: Sequence[JsonRecord],
    subject: str,
    style: RowStyle,
    form: OutputForm | None,
    limit: int | None,
) -> int:
    """Print the rows of a search in a format. Return the exit status. `limit` is the maximum number of files.

    `subject` is as in `emit_search`.
    """
    groups = _group_by_file(rows)
    is_grouped = form is None and sys.stdout.isatty()
    shown = groups[: FILES_SHOWN if limit is None and is_grouped else limit]
    shown_rows = [row for group in shown for row in group]
    if form in _OTHER_FORMS and rows:
        from codebatch.cli.framework.formats import write_rows

        status = emit_formatted(context, answer, partial(write_rows, form, shown_rows, style.columns))
    else:
        lines = _grouped_lines(rows, shown, style) if is_grouped and rows else map(style.line, shown_rows)
        status = emit_search(context, answer, shown_rows, lines, subject)
    if not context.as_json:
        omitted = [row for group in groups[len(shown) :] for row in group]
        if not is_grouped and (omitted or len(groups) > FILES_SHOWN):
            context.note(_total_text(rows, style.noun))
        for note in omission_notes(omitted, _total_text(omitted, style.noun), style.group, len(groups)):
            context.note(note)
    return status


def omission_notes(
    omitted: Sequence[JsonRecord],
    total: str,
    group: Callable[[JsonRecord], tuple[str, str]] | None,
    files: int,
) -> Iterator[str]:
    """Yield notes about rows that are not shown: their number by group and by directory, and how to show fewer or all.

    `total` is the number of the rows as text. `files` is the number of all files.
    """
    if not omitted:
        return
    yield f"not shown: {total}; show all with --limit {files}"
    if group is not None:
        groups = sorted(Counter(map(group, omitted)).items())
        yield f"  {', '.join(f'{name} {count:,} ({option})' for (name, option), count in groups)}"
    parts = (record_path(row).partition("/") for row in omitted)
    tops = Counter(directory for directory, _, file in parts if file)
    named = tops.most_common(_DIRECTORIES_NAMED)
    if named:
        more = ", …" if len(tops) > len(named) else ""
        yield f"  {', '.join(f'{name} {count:,} (--path /{name})' for name, count in named)}{more}"


def _group_by_file(rows: Iterable[JsonRecord]) -> list[list[JsonRecord]]:
    """Return the rows of each file, in the order of their first rows."""
    groups: dict[str, list[JsonRecord]] = {}
    for row in rows:
        groups.setdefault(record_path(row), []).append(row)
    return list(groups.values())


def _total_text(rows: Sequence[JsonRecord], noun: str) -> str:
    return f"{count_text(len(rows), noun)} in {count_text(len(_group_by_file(rows)), 'file')}"


def _grouped_lines(rows: Sequence[JsonRecord], shown: Sequence[Sequence[JsonRecord]], style: RowStyle) -> Iterator[str]:
    """Yield the number of all rows, then each shown file with its rows."""
    width = terminal_width()
    yield _total_text(rows, style.noun)
    for group in shown:
        yield record_path(group[0])
        cells = list(style.cells(group))
        place_width, role_width = (max(len(cell[at]) for cell in cells) for at in (0, 1))
        for place, role, text in cells:
            before = f"  {place:>{place_width}}  {role:<{role_width}}"
            yield fit_line(f"{before}  {printable_line(text)}".rstrip(), width)
