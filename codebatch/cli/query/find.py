"""The command `find`: code that matches a pattern or a tree-sitter query."""

from __future__ import annotations

import shlex
from functools import partial
from typing import cast

from codebatch.cli.framework.answer_printing import emit_formatted, emit_rows, open_queried_batch
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
from codebatch.errors import InvalidInput, InvalidQuery
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.code_search import FILE_SECONDS_MAX
from codebatch.query.fields import JsonRecord, record_path
from codebatch.system.host import usable_cores

_COLUMNS = ("path", "line", "column", "source")
_MATCHES_SHOWN_MAX = 300
"""Maximum number of characters in a line of source in text output."""


@command()
@paths_argument
@option("--pattern", "pattern", metavar="CODE", help="Code in which $X matches any node, and $$$ any number of nodes")
@option(
    "--query",
    "query",
    metavar="QUERY",
    help="tree-sitter query",
    details="The node captured as @match is reported. Without @match, the last captured node is reported.",
)
@option("-l", "--language", "language", metavar="NAME", required=True, help="Search files in this language")
@query_batch_option
@path_option
@common_option("limit")
@option("--count", "is_count", is_flag=True, help="Print only the number of matches")
@option("--files", "is_files", is_flag=True, help="Print only the files with matches")
@form_option
@common_option("jobs")
@common_option("file-seconds", default=FILE_SECONDS_MAX)
@with_common_options
def find(
    context: CommandContext,
    paths: tuple[str, ...],
    query: str | None,
    pattern: str | None,
    language: str,
    batch_reference: str | None,
    path: str,
    limit: int | None,
    is_count: bool,
    is_files: bool,
    form: OutputForm | None,
    jobs: int | None,
    file_seconds: float,
) -> int:
    """Find code that matches a pattern or a tree-sitter query.

    Searches the files of a batch. Each PATH restricts the search to a file or to the files below a directory.

    \b
    codebatch find -l python --pattern 'print($X)'
    codebatch find -l python --pattern 'if $X == None: $$$'
    codebatch find -l c --query '(goto_statement) @match'

    A pattern is one expression, statement or definition. Metavariables such as $X are in capitals. If a metavariable
    occurs twice, both occurrences must match the same text. For anything else, write a query; `codebatch ast FILE`
    shows the nodes.
    """
    form, context = resolve_form(context, form)
    if is_count and (limit or is_files):
        raise InvalidInput(f"--{'limit' if limit else 'files'} cannot be used with --count")
    if query is None and pattern is None and paths:
        hint = f"give the pattern as an option: codebatch find -l {language} --pattern {shlex.quote(paths[0])}"
        raise InvalidInput("one of --pattern and --query is required", hint=hint)
    batch = open_queried_batch(context, batch_reference)
    paths_restriction = path_restriction(batch, paths, path)
    try:
        answer = batch.find(
            language=language,
            query=query,
            pattern=pattern,
            path=paths_restriction,
            limit=limit,
            by_file=is_files or is_count,
            jobs=jobs or usable_cores(),
            file_seconds=file_seconds,
            progress=partial(context.phase, "reading"),
        )
    except InvalidQuery as error:
        if not context.as_json:
            _show_query_error(context, error)
        raise
    rows = answer.result
    columns: tuple[str, ...] = _COLUMNS
    if_none = "" if rows else _no_matches_note(answer.completeness.planned, language, paths_restriction)
    document: object = rows
    if is_files:
        columns = ("path", "places")
    elif is_count:
        rows, columns = [{"count": sum(cast("int", row["places"]) for row in rows)}], ("count",)
        document = rows[0]
    if form in (None, "json", "plain"):
        lines = (_match_line(row) for row in rows)
        return emit_rows(context, answer, document, lines, if_none="" if is_count else if_none)
    from codebatch.cli.framework.formats import write_rows

    return emit_formatted(context, answer, partial(write_rows, form, rows, columns), if_none=if_none)


def _no_matches_note(files: int, language: str, path: str | tuple[str, ...]) -> str:
    where = path_clause(path)
    if not files:
        return f"no {language} files in the batch{where}"
    return f"no matches in {count_text(files, 'file')} of {language}{where}"


def _match_line(row: JsonRecord) -> str:
    if "count" in row:
        return str(row["count"])
    if "places" in row:
        return record_path(row)
    source = str(row["source"])
    excerpt = (
        source
        if len(source) <= _MATCHES_SHOWN_MAX
        else f"{source[:_MATCHES_SHOWN_MAX]} … ({count_text(len(source), 'character')})"
    )
    return f"{record_path(row)}:{row['line']}:{row['column']}: {excerpt.strip()}"


def _show_query_error(context: CommandContext, error: InvalidQuery) -> None:
    """Print the line of a query that has an error, with a caret below the error."""
    row, column = error.place
    line = error.text.split("\n")[row].replace("\t", " ")
    start = max(column - _MATCHES_SHOWN_MAX // 4, 0)
    context.report(f"  {line[start : start + _MATCHES_SHOWN_MAX // 2]}")
    context.report(f"  {' ' * (column - start)}^")
