"""The command `report`: the results of a batch as one HTML page."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from urllib.parse import quote

import click

from codebatch.cli.compare.diff import open_both_batches
from codebatch.cli.framework.answer_printing import AnswerScope, emit_document, emit_formatted, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, query_batch_option, with_common_options
from codebatch.cli.framework.output_files import (
    STANDARD_OUTPUT,
    is_null_device,
    refuse_in_store,
    resolve_output,
    write_target,
)
from codebatch.errors import InvalidInput
from codebatch.model.text.quantities import human_bytes
from codebatch.operations.api.batch import Batch
from codebatch.report.report import make_report
from codebatch.store.layout import REPORT_FILE

_REPORT_MARK = b'<meta name="generator" content="codebatch report">'
_HEAD_BYTES_MAX = 4096
"""Number of bytes to read at the start of a file to find _MARK, which shows that the file is a report."""
_EXAMPLE_HINT = "for example: codebatch report -o report.html latest~1 latest"


class ReportAnswer(AnswerScope, frozen=True, kw_only=True):
    """The answer of `codebatch report`: the path and the size of the report."""

    path: str
    bytes: int


@command()
@click.argument("pair", metavar="[BASE HEAD]", nargs=-1)
@query_batch_option
@option("-o", "--output", metavar="FILE", default_text=REPORT_FILE, help="File to write, or - for standard output")
@with_common_options
def report(context: CommandContext, pair: tuple[str, ...], batch_reference: str | None, output: str | None) -> int:
    """Write an HTML report of a batch.

    The page works offline. It begins with an overview of where to look first and a map of the code. Then it lists
    functions, duplicate blocks, imports between directories, and findings by rule.

    With BASE and HEAD, the page shows HEAD and what changed since BASE. Both are batches, @NAMEs, snapshots or git
    commits. A commit without a batch is analysed first.

    An existing FILE is replaced atomically; the default file is replaced only if it is a report. The same batches and
    the same git history give the same page.
    """
    if pair and (len(pair) != 2 or batch_reference is not None):
        raise InvalidInput("give two batches, the older one first, or none", hint=_EXAMPLE_HINT)
    if output == STANDARD_OUTPUT:
        if context.as_json:
            raise InvalidInput("--json cannot be used with -o -")
        older, batch = _open_named_batches(context, pair, batch_reference)
        answer = make_report(batch, older=older)
        return emit_formatted(context, answer, partial(sys.stdout.buffer.write, answer.result))
    target = resolve_output(REPORT_FILE if output is None else output, "codebatch report -o report.html")
    if output is None:
        output = REPORT_FILE
        _refuse_other_file(target)
    older, batch = _open_named_batches(context, pair, batch_reference)
    refuse_in_store(target, batch.question.store.root)
    answer = make_report(batch, older=older)
    write_target(target, answer.result)
    size = len(answer.result)
    document: dict[str, object] = {"batch_id": answer.question.batch.id, "path": output, "bytes": size}
    link = "" if is_null_device(target) else f"; open it: file://{quote(os.fsencode(target))}"
    return emit_document(context, answer, document, context.unless_quiet([f"{output}: {human_bytes(size)}{link}"]))


def _refuse_other_file(target: Path) -> None:
    """Raise InvalidInput if the file at the default name exists and is not a report.

    Without this check, the report would replace a file that the user did not name.
    """
    try:
        with target.open("rb") as file:
            head = file.read(_HEAD_BYTES_MAX)
    except FileNotFoundError:
        return
    if _REPORT_MARK not in head:
        raise InvalidInput(
            f"{target.name!r} exists and is not a codebatch report",
            hint=f"overwrite it with: codebatch report -o {target.name}",
        )


def _open_named_batches(
    context: CommandContext, pair: tuple[str, ...], reference: str | None
) -> tuple[Batch | None, Batch]:
    """Return the older batch and the batch of the report. The older batch is None unless the user named it."""
    return open_both_batches(context, *pair) if pair else (None, open_queried_batch(context, reference))
