"""The command `export`: findings in formats of other programs, and definitions as tags."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

import click

from codebatch.cli.compare.diff import open_both_batches
from codebatch.cli.framework.answer_printing import AnswerScope, emit_document, emit_formatted, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, query_batch_option, with_common_options
from codebatch.cli.framework.filter_options import filter_options
from codebatch.cli.framework.output_files import (
    STANDARD_OUTPUT,
    append_summary,
    refuse_in_store,
    resolve_output,
    write_target,
)
from codebatch.errors import InvalidInput
from codebatch.interchange.findings import Export, ExportFormat
from codebatch.model.record import SEVERITIES, Severity
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.operations.api.batch import Batch
from codebatch.operations.export.export import make_export
from codebatch.operations.queries.batch_query import Answer
from codebatch.query.filters.record_options import CommonFilters


class ExportAnswer(AnswerScope, frozen=True, kw_only=True):
    """The answer of `codebatch export`: the file that was written, and its number of findings or definitions.

    `excluded` describes what was left out because of limits of the format.
    """

    form: ExportFormat
    path: str
    bytes: int
    count: int
    excluded: tuple[str, ...]


@command()
@click.argument("form", metavar="FORMAT", type=click.Choice(get_args(ExportFormat)))
@click.argument("pair", metavar="[BASE HEAD]", nargs=-1)
@query_batch_option
@filter_options("--severity", "--code", "--tool", "--lang", "--path", "--where", "--task")
@option("--all", "with_hints", is_flag=True, help="Include hints")
@common_option("base-store")
@option("-o", "--output", metavar="FILE", default=STANDARD_OUTPUT, default_text="standard output", help="File to write")
@option("--summary", metavar="FILE", help="With FORMAT github: append a summary in Markdown to this file")
@with_common_options
def export(
    context: CommandContext,
    form: ExportFormat,
    pair: tuple[str, ...],
    batch_reference: str | None,
    with_hints: bool,
    base_store: str | None,
    output: str,
    summary: str | None,
    severity: tuple[Severity, ...],
    code: tuple[str, ...],
    tool: tuple[str, ...],
    lang: tuple[str, ...],
    path: str,
    where: str,
    task: str | None,
) -> int:
    """Export findings for other programs, or definitions for editors.

    Exports all findings of a batch. With BASE and HEAD, exports only the regressions of HEAD. BASE and HEAD are
    batches, @NAMEs, snapshots or git commits. A commit without a batch is analysed first.

    \b
    FORMAT is one of:
      sarif       SARIF, for code scanning
      github      annotations of a GitHub workflow
      gitlab      GitLab Code Quality
      checkstyle  Checkstyle XML
      rdjson      reviewdog
      junit       JUnit XML, in which each finding is a failed test
      ctags       definitions, as tags for editors

    Hints are left out, unless --all or --severity selects them. An existing file is replaced atomically. The same
    batches give the same bytes.
    """
    _refuse_combinations(form, pair, batch_reference, summary, with_hints=with_hints, has_severity=bool(severity))
    if base_store is not None and not pair:
        raise InvalidInput("--base-store cannot be used without BASE and HEAD")
    places = _resolve_targets(form, output, summary, as_json=context.as_json)
    if pair:
        than, batch = open_both_batches(context, pair[0], pair[1], base_store)
    else:
        than, batch = None, open_queried_batch(context, batch_reference)
    for place in filter(None, places):
        refuse_in_store(place, batch.question.store.root)
    filters: CommonFilters = {"lang": lang or None, "path": path, "where": where, "task": task}
    codes, tools = code or None, tool or None
    gravities = SEVERITIES if with_hints else severity or None
    answer = make_export(batch, form, than=than, severity=gravities, code=codes, tool=tools, **filters)
    if gravities is None and than is None and form != "ctags":
        hints = batch.stats(severity="hint", code=codes, tool=tools, **filters).result.total
        if hints:
            context.note(f"{count_text(hints, 'hint')} hidden; include them with --all")
    return _answer_export(context, batch, form, output, places, answer)


class _ExportTargets(NamedTuple):
    """The paths to which an export is written.

    `export` is None for standard output. `summary` is None if not requested.
    """

    export: Path | None
    summary: Path | None


def _resolve_targets(form: ExportFormat, output: str, summary: str | None, *, as_json: bool) -> _ExportTargets:
    """Return the paths to which to write. Raises InvalidInput if one is invalid."""
    if as_json and output == STANDARD_OUTPUT:
        raise InvalidInput("--json cannot be used with an export to standard output; write it to a file with -o FILE")
    example = f"codebatch export {form} -o FILE"
    target = None if output == STANDARD_OUTPUT else resolve_output(output, example)
    summary_target = None if summary is None else resolve_output(summary, f"codebatch export {form} --summary FILE")
    if summary_target is not None and summary_target == target:
        raise InvalidInput("-o and --summary cannot be the same file")
    return _ExportTargets(target, summary_target)


def _answer_export(
    context: CommandContext,
    batch: Batch,
    form: ExportFormat,
    output: str,
    places: _ExportTargets,
    answer: Answer[Export],
) -> int:
    """Write an export. Return the exit status."""
    exported = answer.result
    for text in exported.excluded:
        context.report(text)
    if places.summary is not None:
        append_summary(context, places.summary, exported.summary)
    noun = "definition" if form == "ctags" else "finding"
    if places.export is None:
        write = partial(sys.stdout.buffer.write, exported.data)
        return emit_formatted(context, answer, write, if_none="" if exported.count else f"no {noun}s")
    write_target(places.export, exported.data)
    size = len(exported.data)
    document: dict[str, object] = {"batch_id": batch.id, "form": form, "path": output, "bytes": size}
    lines = [f"{output}: {count_text(exported.count, noun)}, {human_bytes(size)}"]
    document |= {"count": exported.count, "excluded": exported.excluded}
    return emit_document(context, answer, document, context.unless_quiet(lines))


def _refuse_combinations(
    form: ExportFormat,
    pair: tuple[str, ...],
    batch_reference: str | None,
    summary: str | None,
    *,
    with_hints: bool,
    has_severity: bool,
) -> None:
    """Raise InvalidInput if arguments contradict each other or have no effect."""
    if pair and batch_reference is not None:
        raise InvalidInput("--batch cannot be used with BASE and HEAD")
    if len(pair) not in (0, 2):
        hint = f"for one batch: codebatch export {form} --batch ID; for a comparison: codebatch export {form} A B"
        raise InvalidInput("give two batches to compare, or none", hint=hint)
    if with_hints and (has_severity or form == "ctags"):
        raise InvalidInput(f"--all cannot be used with {'--severity' if has_severity else 'ctags'}")
    if summary is not None and form != "github":
        raise InvalidInput(f"--summary cannot be used with {form}")
