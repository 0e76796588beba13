"""The command `references`: the references to a name in the files of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import click

from codebatch.cli.answers.file_groups import LIMIT_DEFAULT_TEXT, PlaceCells, RowStyle, emit_file_groups
from codebatch.cli.framework.answer_printing import open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import (
    CommandContext,
    OutputForm,
    path_option,
    query_batch_option,
    with_common_options,
)
from codebatch.cli.framework.format_option import form_option, resolve_form
from codebatch.cli.framework.path_arguments import path_clause, path_restriction, paths_argument
from codebatch.cli.query.symbol_options import certainty_mark, definition_option, exact_option
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.references import REFERENCE_ROLES
from codebatch.operations.queries.source_line import read_line_texts
from codebatch.query.filters.filters import JsonRecord, record_path

_COLUMNS = ("path", "line", "column", "role", "scope")


@command()
@click.argument("name")
@paths_argument
@query_batch_option
@option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    type=click.Choice(REFERENCE_ROLES),
    help=f"Only this role: {', '.join(REFERENCE_ROLES[:-1])} or {REFERENCE_ROLES[-1]}",
)
@path_option
@definition_option
@exact_option
@common_option("limit", help="Maximum number of files", default_text=LIMIT_DEFAULT_TEXT)
@form_option
@with_common_options
def references(
    context: CommandContext,
    name: str,
    paths: tuple[str, ...],
    batch_reference: str | None,
    roles: tuple[str, ...],
    path: str,
    definition: str,
    is_exact: bool,
    limit: int | None,
    form: OutputForm | None,
) -> int:
    """Find all references to a name.

    Each PATH restricts the search to a file or to the files below a directory.

    References are found by name, so references to other symbols of the same name are listed too. With --definition or
    --exact, references to other symbols are left out, and NAME can be qualified. Matches in comments and strings are
    not references.

    On a terminal, references are grouped by file, with their source lines. Otherwise, each is one line.

    If nothing is found, files that were not parsed completely and ignored files are searched for the text of NAME. If
    they contain it, they are listed (exit status 3).
    """
    form, context = resolve_form(context, form)
    batch = open_queried_batch(context, batch_reference)
    paths_restriction = path_restriction(batch, paths, path)
    progress = partial(context.phase, "reading")
    answer: Answer[Any]
    if definition or is_exact:
        answer = batch.uses(
            name,
            definition=definition,
            is_exact=is_exact,
            role=roles or None,
            path=paths_restriction,
            progress=progress,
        )
        rows = [{"name": name, **use.row} for use in answer.result.uses]
    else:
        answer = batch.references(name, role=roles or None, path=paths_restriction, progress=progress)
        rows = answer.result
    as_what = f" as {' or '.join(roles)}" if roles else ""
    subject = f"references to {name}{as_what}{path_clause(paths_restriction)}"
    style = RowStyle("use", _COLUMNS, _reference_line, partial(_reference_cells, answer.question), _role_option)
    return emit_file_groups(context, answer, rows, subject, style, form, limit)


def _reference_cells(question: BatchQuery, rows: Sequence[JsonRecord]) -> Iterator[PlaceCells]:
    """Yield the place, role and source line of references in one file. Without a source, yield the scope instead."""
    lines = [line for row in rows if isinstance(line := row["line"], int)]
    texts = read_line_texts(question, rows[0], lines)
    for row, line in zip(rows, lines, strict=True):
        text = texts.get(line) or str(row["scope"])
        yield f"{line}:{row['column']}", str(row["role"]), f"{text}{_mark(row)}"


def _role_option(row: JsonRecord) -> tuple[str, str]:
    return str(row["role"]), f"--role {row['role']}"


def _reference_line(row: JsonRecord) -> str:
    scope = f" in {row['scope']}" if row["scope"] else ""
    return f"{record_path(row)}:{row['line']}:{row['column']}: {row['role']}{scope}{_mark(row)}"


def _mark(row: JsonRecord) -> str:
    return certainty_mark(row) if "resolution" in row else ""
