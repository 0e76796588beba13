"""The command `hotspots`: the functions and files that are hardest to change."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import get_args

import click
import msgspec
from msgspec import UNSET

from codebatch.cli.framework.answer_printing import emit_document, emit_formatted, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import (
    CommandContext,
    OutputForm,
    path_option,
    query_batch_option,
    table_lines,
    with_common_options,
)
from codebatch.cli.framework.format_option import form_option, resolve_form
from codebatch.cli.framework.path_arguments import path_restriction, paths_argument
from codebatch.operations.hotspots.hotspots import (
    FUNCTION_METRIC_MIN,
    FUNCTION_RANKINGS,
    HOTSPOTS_MAX,
    HOTSPOTS_SHOWN,
    Hotspot,
    HotspotBy,
    Hotspots,
)
from codebatch.query.fields import record_path

_COLUMN_TITLES = {
    "cognitive": "complexity",
    "complexity": "cyclomatic",
    "code": "code",
    "duplicated_lines": "duplicated",
    "commits_per_year": "commits/yr",
    "dependents": "dependents",
}
"""The titles of columns in text output."""


@command()
@paths_argument
@query_batch_option
@option("--files", "of_files", is_flag=True, help="Rank files instead of functions, and show all their metrics")
@option(
    "--by",
    metavar="KEY",
    type=click.Choice(get_args(HotspotBy)),
    default="hotspot",
    show_default=True,
    help="Sort key: hotspot, cognitive, complexity, churn, dependents, duplication or code",
    details="complexity is the cyclomatic complexity, churn the number of commits per year. "
    "With churn, dependents, duplication or code, files are ranked.",
)
@option(
    "--min",
    "least",
    metavar="N",
    type=click.IntRange(min=1),
    default_text="10 for functions, 1 for files",
    help="Minimum value of the sort key",
    details="With --by hotspot, N is the minimum cognitive complexity.",
)
@common_option("limit", type=click.IntRange(min=1, max=HOTSPOTS_MAX), default=HOTSPOTS_SHOWN, show_default=True)
@path_option
@common_option("lang")
@option(
    "--all",
    "everything",
    is_flag=True,
    help="Include test files, vendored and generated code, and partially parsed files",
)
@form_option
@with_common_options
def hotspots(
    context: CommandContext,
    paths: tuple[str, ...],
    batch_reference: str | None,
    of_files: bool,
    by: HotspotBy,
    least: int | None,
    limit: int,
    path: str,
    lang: tuple[str, ...],
    everything: bool,
    form: OutputForm | None,
) -> int:
    """Rank functions by complexity, change frequency and dependents.

    Each PATH restricts the ranking to a file or to the files below a directory.

    The hotspot score is cognitive complexity x (1 + commits per year) x log2(2 + dependents). It is based on Tornhill's
    hotspots: complexity times change frequency. Dependents are the files that depend on the file of the function,
    directly or indirectly, as in `codebatch impact`. Cognitive complexity measures how hard a function is to read:
    nested control flow counts more.

    Commits per year are commits that changed a line of the function, as `git log -L` finds them. Merges do not count.
    The year ends with the newest commit.

    `?` marks an unknown number. Commits are unknown without a git history. Dependents are unknown in languages in which
    files can use each other without imports.
    """
    form, context = resolve_form(context, form)
    batch = open_queried_batch(context, batch_reference)
    paths_restriction = path_restriction(batch, paths, path)
    answer = batch.hotspots(
        by, files=of_files, least=least, limit=limit, path=paths_restriction, lang=lang or None, everything=everything
    )
    result = answer.result
    _report_notes(context, result)
    if form == "json":
        document = {"batch_id": answer.question.batch.id, "by": by, **msgspec.to_builtins(result)}
        return emit_document(context, answer, document, ())
    if_none = "" if result.rows else "no hotspots"
    if least is None and not of_files and by in FUNCTION_RANKINGS:
        functions = "other functions" if result.excluded else "functions"
        if_none = (
            if_none and f"no {functions} with a complexity of {FUNCTION_METRIC_MIN} or more; lower it with --min 1"
        )
    if form is None:
        lines = list(_hotspot_lines(result.rows))
        return emit_formatted(context, answer, partial(context.print, None, lines), if_none=if_none)
    from codebatch.cli.framework.formats import write_rows

    columns = [field for field in Hotspot.__struct_fields__ if any(_has_value(row, field) for row in result.rows)]
    rows = [msgspec.to_builtins(row) for row in result.rows]
    columns = ["path", *(row for row in columns if row not in ("path", "path_b64"))]
    return emit_formatted(context, answer, partial(write_rows, form, rows, columns), if_none=if_none)


def _has_value(hotspot: Hotspot, field: str) -> bool:
    return getattr(hotspot, field) is not UNSET


def _hotspot_lines(rows: tuple[Hotspot, ...]) -> Iterable[str]:
    if not rows:
        return
    numbers = [field for field in ("cognitive", "complexity", "code", "duplicated_lines") if _has_value(rows[0], field)]
    header = [*(_COLUMN_TITLES[field] for field in numbers), "commits/yr", "dependents"]
    header += ["function", "location"] if _has_value(rows[0], "symbol") else ["file"]

    def cells(hotspot: Hotspot) -> list[object]:
        values = [*(getattr(hotspot, field) for field in (*numbers, "commits_per_year")), _dependents_text(hotspot)]
        place = record_path(msgspec.to_builtins(hotspot))
        where = [str(hotspot.symbol), f"{place}:{hotspot.line}"] if _has_value(hotspot, "symbol") else [place]
        return [*("?" if value is None else value for value in values), *where]

    yield from table_lines(map(cells, rows), header, paths=("location", "file"))


def _dependents_text(hotspot: Hotspot) -> object:
    """Return the number of dependents for display. If it may be higher than known, a plus sign is appended."""
    return f"{hotspot.dependents:,}+" if hotspot.dependents_partial is True else hotspot.dependents


def _report_notes(context: CommandContext, result: Hotspots) -> None:
    if result.churn_note:
        context.note(result.churn_note)
    if result.excluded:
        parts = [f"{count:,} {_EXCLUDED_TEXTS[category]}" for category, count in sorted(result.excluded.items())]
        context.note(f"hidden: {', '.join(parts)}; show them with --all")


_EXCLUDED_TEXTS = {
    "test": "in test files",
    "foreign": "in vendored or generated files",
    "doubtful": "in partially parsed files",
}
