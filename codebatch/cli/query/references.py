"""The command `references`: the references to a name in the files of a batch."""

from __future__ import annotations

from functools import partial

import click

from codebatch.cli.framework.answer_printing import emit_rows, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, path_option, query_batch_option, with_common_options
from codebatch.cli.framework.path_arguments import path_clause, path_restriction, paths_argument
from codebatch.operations.queries.references import REFERENCE_ROLES
from codebatch.query.filters.filters import JsonRecord, record_path


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
@with_common_options
def references(
    context: CommandContext,
    name: str,
    paths: tuple[str, ...],
    batch_reference: str | None,
    roles: tuple[str, ...],
    path: str,
) -> int:
    """Find all references to a name.

    Each PATH restricts the search to a file or to the files below a directory.

    References are found by name, so references to other symbols of the same name are listed too. Matches in comments
    and strings are not references.
    """
    batch = open_queried_batch(context, batch_reference)
    paths_restriction = path_restriction(batch, paths, path)
    answer = batch.references(
        name, role=roles or None, path=paths_restriction, progress=partial(context.phase, "reading")
    )
    as_what = f" as {' or '.join(roles)}" if roles else ""
    if_none = f"no references to {name}{as_what} in the batch{path_clause(paths_restriction)}"
    return emit_rows(context, answer, answer.result, map(_reference_line, answer.result), if_none=if_none)


def _reference_line(row: JsonRecord) -> str:
    scope = f" in {row['scope']}" if row["scope"] else ""
    return f"{record_path(row)}:{row['line']}:{row['column']}: {row['role']}{scope}"
