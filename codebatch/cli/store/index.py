"""The commands `index build` and `index-build`. They build the index, so that queries read less data."""

from __future__ import annotations

import click

from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, batch_option, with_common_options
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.operations.runs.indexing import IndexAnswer, verify_index
from codebatch.operations.runs.indexing import build_index as build


@command("index-build")
@batch_option
@option("--rebuild", "rebuilds", is_flag=True, help="Read all records again, and reuse no index data")
@option(
    "--verify",
    "is_verifying",
    is_flag=True,
    help="Verify the existing index; with --rebuild, rebuild it first",
)
@with_common_options
def index_build(context: CommandContext, batch_reference: str | None, rebuilds: bool, is_verifying: bool) -> None:
    """Build the index of a batch.

    The index lists the results that contain each name, rule ID, and target of an import or call, and the source files
    that contain each word. So queries read fewer files. They give the same answers without an index. By default, each
    run builds the index. It can be deleted at any time.
    """
    store, batch = context.batch(batch_reference)
    context.phase("indexing")
    is_made = rebuilds or not is_verifying
    answer = build(store, batch, rebuilds=rebuilds, note=context.report) if is_made else None
    if answer is None or is_verifying:
        answer = verify_index(store, batch, context.report)
    lines = _index_lines(answer, is_verifying=is_verifying)
    context.print(answer, lines if is_verifying else context.unless_quiet(lines))


@click.group(cls=CommandGroup)
@group_with_common_options
def index() -> None:
    """Build the index that makes queries faster."""


index.add_command(index_build, "build")


def _index_lines(answer: IndexAnswer, *, is_verifying: bool) -> list[str]:
    scope = f"{count_text(answer.terms, 'term')} of {count_text(answer.shard_files - answer.reused, 'shard file')}"
    damaged = f"; {count_text(answer.damaged, 'shard file')} damaged and not indexed" if answer.damaged else ""
    if is_verifying:
        files = f"the words of {count_text(answer.contents, 'file')}"
        return [f"the index of {answer.batch_id} matches its records and files: {scope}, {files}{damaged}"]
    read = f"{count_text(answer.decoded, 'shard file')} read"
    if answer.reused == answer.shard_files > 0 and answer.contents == answer.contents_reused:
        return [
            (f"indexed {answer.batch_id}: an older index covers all {count_text(answer.reused, 'shard file')}{damaged}")
        ]
    suffix = f"; an older index covers the other {answer.reused:,}" if answer.reused else ""
    words = f"words of {count_text(answer.contents - answer.contents_reused, 'file')}"
    return [f"indexed {answer.batch_id}: {scope}, {words}, {read}, {human_bytes(answer.bytes)}{suffix}{damaged}"]
