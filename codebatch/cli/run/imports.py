"""The command `import`. It adds findings of other tools to a batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, batch_option, with_common_options
from codebatch.cli.run.run import RunListener, with_execution_options
from codebatch.errors import InvalidInput
from codebatch.model.analysis.imports import ExcludedRecords
from codebatch.model.analysis.report_formats import REPORT_FORMAT_NAMES, TABLE_FORMAT_NAMES, ReportFormat
from codebatch.model.task import JsonValue
from codebatch.model.text.quantities import count_text
from codebatch.operations.runs.execution import ExecutionSettings
from codebatch.operations.runs.import_file import check_format, import_files

_NUMBER_MEMBERS = ("first_line", "first_column")


class ImportAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch import`.

    - `batch_id`: the batch with the findings.
    - `omitted`: the numbers of findings that were not imported. It is null if the record of them no longer exists.
    - `action`: `ran` or `up to date`.
    """

    batch_id: str
    snapshot_id: str
    task: str
    format: str
    findings: int
    omitted: ExcludedRecords | None
    status: str
    action: str


@command("import")
@click.argument("form", metavar="FORMAT", type=click.Choice((*REPORT_FORMAT_NAMES, *TABLE_FORMAT_NAMES)))
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@option("--as", "task", metavar="TASK", required=True, help="Task name for the findings, such as eslint")
@batch_option
@option(
    "--root",
    metavar="DIR",
    default_text="the source directory of the batch",
    help="Directory of the project as the tool saw it, such as /src in a container",
    details="Absolute paths in FILE are taken relative to this directory.",
)
@option(
    "--set",
    "members",
    metavar="KEY=VALUE",
    multiple=True,
    help="Describe the report of json, json-lines or pattern",
    details="For example: --set path=/file --set line=/line --set message=/text --set severities.2=error",
)
@option("--allow-failed", is_flag=True, help="Accept a file in which the tool reports that it failed")
@with_common_options
@with_execution_options
def import_(
    context: CommandContext,
    execution: ExecutionSettings,
    form: str,
    files: tuple[str, ...],
    task: str,
    batch_reference: str | None,
    root: str | None,
    members: tuple[str, ...],
    allow_failed: bool,
) -> int:
    """Import findings of other tools.

    Each FILE is in FORMAT: sarif, checkstyle, rdjson, rdjsonl, jsonl or gcc. FORMAT can also be json, json-lines or
    pattern, which --set describes (see `codebatch help data`). If FILE is `-`, standard input is read.

    Creates a new batch, which becomes the latest batch. The new batch has all records of --batch, by default the latest
    batch, including earlier imports. It also has the findings of all FILEs as records of TASK. A second import with the
    same TASK replaces the first import.

    Findings in files that are not in the snapshot are not imported; their number is reported.

    Later runs do not include imported findings. After each run, import them again.
    """
    imported = import_files(
        execution,
        context.store_place.open(),
        batch_reference,
        files,
        form=_described_format(form, members),
        task=task,
        root=None if root is None else Path(root),
        allow_failed=allow_failed,
        listener=RunListener(context),
    )
    if imported.signal_status:
        context.note("stopped; nothing was imported")
        return imported.signal_status
    context.batches.append(imported.batch)
    for text in _omission_lines(imported.left_out):
        context.report(text)
    answer = ImportAnswer(
        batch_id=imported.batch.id,
        snapshot_id=imported.batch.about.snapshot_id,
        task=task,
        format=form,
        findings=imported.findings,
        omitted=imported.left_out,
        status=imported.standing.state.value,
        action=imported.action,
    )
    done = "" if imported.action == "new" else " (up to date, nothing to do)"
    line = f"{count_text(imported.findings, 'finding')} of {task} in {imported.batch.id}{done}"
    context.print(answer, context.unless_quiet([line]))
    if imported.shortfall is not None:
        raise imported.shortfall
    if imported.findings:
        context.note(f"next: codebatch query diagnostics --task {task}")
    return 0


def _described_format(form: str, members: tuple[str, ...]) -> ReportFormat:
    """Return the format with the given name and the members of `--set`. Raises InvalidInput."""
    if form not in TABLE_FORMAT_NAMES:
        if members:
            raise InvalidInput(f"--set cannot be used with the format {form}")
        return check_format(form)
    table: dict[str, JsonValue] = {"format": form}
    severities: dict[str, str] = {}
    for member in members:
        key, equals, value = member.partition("=")
        if not equals:
            raise InvalidInput(f"--set {member!r} has no value", hint="for example: --set path=/file")
        prefix, dot, word = key.partition(".")
        if dot and prefix == "severities":
            severities[word] = value
        else:
            table[key] = int(value) if key in _NUMBER_MEMBERS and value in ("0", "1") else value
    return check_format({**table, "severities": severities} if severities else table)


def _omission_lines(excluded: ExcludedRecords | None) -> Iterator[str]:
    """Yield lines with the number of findings that were not imported, for each reason."""
    if excluded is None:
        yield "the number of ignored findings is no longer known"
        return
    if excluded.unknown_files:
        examples = ", ".join(excluded.examples)
        is_elsewhere = any(example.startswith(("/", "file:")) for example in excluded.examples)
        yield (
            f"ignored: {count_text(excluded.unknown_files, 'finding')} in files that the batch does not have"
            + (f" (such as {examples})" if examples else "")
            + ("; set the directory that the tool analysed with --root DIR" if is_elsewhere else "")
        )
    if excluded.unknown_locations:
        yield f"ignored: {count_text(excluded.unknown_locations, 'finding')} at locations that their files do not have"
    if excluded.dismissed:
        yield f"ignored: {count_text(excluded.dismissed, 'finding')} that the report marks as dismissed"
    if excluded.unread:
        yield f"{count_text(excluded.unread, 'part')} of the report cannot be read, such as {excluded.unread_sample}"
    if excluded.replaced:
        values = count_text(excluded.replaced, "value")
        yield f"{values} unknown, so findings have a default instead, such as {excluded.replaced_sample}"
    if excluded.tool_failed:
        yield "the report is marked as incomplete: findings may be missing"
