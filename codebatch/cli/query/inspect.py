"""The command `inspect`: an overview of a file or symbol, one line of a file, or all records about a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from codebatch.cli.framework.answer_printing import emit_document, emit_rows, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.completion import complete_file
from codebatch.cli.framework.context import CommandContext, query_batch_option, with_common_options
from codebatch.model.entry import display_path, path_row
from codebatch.operations import ignore_note
from codebatch.operations.queries.batch_query import try_find_item

if TYPE_CHECKING:
    from codebatch import Batch, FileRecords
    from codebatch.operations.queries.batch_query import BatchQuery


@command()
@click.argument("path", metavar="FILE[:LINE]|NAME", shell_complete=complete_file)
@query_batch_option
@option("--kinds", metavar="KIND,...", help="List all records of these kinds")
@option("--all", "everything", is_flag=True, help="List every record about the file, as with --json")
@with_common_options
def inspect(
    context: CommandContext, path: str, batch_reference: str | None, kinds: str | None, everything: bool
) -> int:
    """Show an overview of a file or symbol.

    With LINE, shows the source line, the definitions that enclose the line, and the records about the line.

    If no file is called NAME, the definitions of NAME are shown, with their callers, their own calls, and the test
    files that call NAME or depend on a file that defines it. NAME can be qualified, such as Class.method.
    """
    batch = open_queried_batch(context, batch_reference)
    named = kinds and kinds.split(",")
    path, line = batch.split_place(path)
    if line is not None:
        from codebatch.cli.answers.source_line import answer_inspected_line  # Other answers do not need this import.

        return answer_inspected_line(context, batch.inspect_line(path, line, kind=named))
    if kinds is None and not (everything or context.explain) and not _is_file(batch, path):
        from codebatch.cli.answers.symbol_overview import answer_symbol  # Other answers do not need this import.

        return answer_symbol(context, batch.symbol_overview(path), path)
    if kinds is None and not (everything or context.as_json or context.explain):
        from codebatch.cli.answers.file_overview import overview_lines  # Other answers do not need this import.

        file_overview = batch.overview(path)
        return emit_document(context, file_overview, {}, overview_lines(file_overview.result))
    answer = batch.inspect(path, kind=named, for_machines=context.as_json)
    records_found = answer.result
    from codebatch.cli.output.records import record_line

    lines = [record_line(record) for record in records_found.records]
    if not context.explain:
        if_none = f"no records for {display_path(records_found.path)}"
        return emit_rows(context, answer, records_found.records, lines, if_none=if_none)
    explain, more = _explain_records(answer.question, records_found)
    document: dict[str, object] = {"batch_id": batch.id, "records": records_found.records, "explain": explain}
    document.update(path_row(records_found.path))
    return emit_document(context, answer, document, lines + more, name="inspect-explain")


def _is_file(batch: Batch, path: str) -> bool:
    return try_find_item(batch.question.records, path, ignore_note) is not None


def _explain_records(question: BatchQuery, file_records: FileRecords) -> tuple[dict[str, object], list[str]]:
    """Return from which files of the store the records of a file were read, as JSON and as lines."""
    records, batch = question.records, question.batch
    shard = next(shard for shard in records.plan.shards if shard.start <= file_records.item < shard.end)
    where = records.source.description
    object_, item = records.items[file_records.item].object, file_records.item - shard.start
    document = {
        "batch_id": batch.id,
        "snapshot_id": batch.about.snapshot_id,
        "object": object_,
        "shard_id": shard.id,
        "item": item,
        "tasks": list(file_records.tasks),
        "read_from": where,
    }
    return document, [
        f"batch {batch.id}, snapshot {batch.about.snapshot_id}, object {object_}",
        f"item {item} of shard {shard.id}, tasks {', '.join(file_records.tasks)}, read from {where}",
    ]
