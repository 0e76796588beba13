"""The commands `batch`, `tasks` and `shards`: low-level commands for batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click
from msgspec.structs import asdict

from codebatch.cli.answers.schemas import (
    BatchInitAnswer,
    BatchOutputsAnswer,
    BatchShowAnswer,
)
from codebatch.cli.framework.answer_printing import open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.completion import complete_batch, complete_pipeline
from codebatch.cli.framework.context import (
    CommandContext,
    batch_option,
    query_batch_option,
    table_lines,
    with_common_options,
)
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.cli.framework.read_report import explain_option
from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.text.instants import instant_text
from codebatch.model.text.quantities import count_text
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.queries import batches
from codebatch.operations.queries.batch_query import displayed_restriction
from codebatch.operations.queries.batches import batch_row, names_of_batch
from codebatch.store.batches.batch_directory import BatchDir, read_batch_names
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import latest_offset
from codebatch.store.results.outputs import current_outputs


@click.group(cls=CommandGroup)
@group_with_common_options
def batch() -> None:
    """Create a batch without running it, list and show batches."""


@batch.command("init")
@option(
    "--snapshot",
    "snapshot_reference",
    metavar="ID",
    default="latest",
    default_text="latest of this project",
    help="Snapshot ID, unique ID prefix, latest or latest~N",
)
@common_option("pipeline")
@with_common_options
def batch_init(context: CommandContext, snapshot_reference: str, pipeline: str | None) -> None:
    """Create a batch of a snapshot without running it."""
    # Imported here, because the other commands of this module do not need it.
    from codebatch.operations.runs.planning import plan_snapshot

    store = context.store_place.open()
    configuration = load_configuration(Path.cwd())
    new_batch, plan = plan_snapshot(configuration, store, snapshot_reference, pipeline, context.note)
    context.report_other_project(store, new_batch)
    size = f"{count_text(plan.item_count, 'file')} in {count_text(len(plan.shards), 'shard')}"
    context.print(
        BatchInitAnswer(
            batch_id=new_batch.id, snapshot_id=plan.snapshot_id, pipeline=plan.pipeline, plan_digest=plan.digest
        ),
        [f"batch {new_batch.id}: {size}, {', '.join(plan.task_names)}"],
    )
    context.note(f"next: codebatch run --batch {new_batch.id}")


@batch.command("list")
@option(
    "--pipeline",
    metavar="NAME",
    shell_complete=complete_pipeline,
    help="Only batches of this pipeline; `work` selects task lists",
)
@option("--active", "is_active", is_flag=True, help="Only batches that have not ended or that wait for an answer")
@explain_option
@with_common_options
def batch_list(context: CommandContext, pipeline: str | None, is_active: bool) -> None:
    """List all batches, the oldest first."""
    store = context.store_place.open()
    names = read_batch_names(store)
    listed = batches.list_batches(store, context.note, pipeline=pipeline)
    rows = [batch_row(listed_batch, names) for listed_batch in listed if listed_batch.is_active or not is_active]
    displayed_rows = [
        asdict(row) | {"paths": ", ".join(row.paths), "names": _prefix_at_signs(row.names)} for row in rows
    ]
    context.print(
        rows,
        table_lines((row.values() for row in displayed_rows), displayed_rows[0]) if displayed_rows else [],
        if_none="no matching batches" if pipeline or is_active else "no batches yet",
    )


@batch.command("show")
@click.argument("named", metavar="[BATCH]", required=False, shell_complete=complete_batch)
@query_batch_option
@option("--outputs", "only_outputs", is_flag=True, help="Print only the directory of the outputs of the batch")
@with_common_options
def batch_show(context: CommandContext, named: str | None, batch_reference: str | None, only_outputs: bool) -> None:
    """Show a batch and the directory of its outputs.

    Without BATCH or --batch, shows the batch that queries use by default. To read all symbols, for example:

    \b
    zstdcat "$(codebatch batch show --outputs)"/symbols/*.jsonl.zst

    Exit status 3 with --outputs if the batch has no outputs yet.
    """
    if named is not None and batch_reference is not None:
        raise InvalidInput("two batches were given", hint="give one batch, as ID or with --batch")
    reference = batch_reference if named is None else named
    if reference is None or latest_offset(reference) is not None or only_outputs:
        question = open_queried_batch(context, reference).question
        store, batch_dir = question.store, question.batch
    else:
        store, batch_dir = context.batch(reference, "any")
    if not only_outputs:
        _answer_batch(context, store, batch_dir)
        return
    directory = str(batches.outputs_directory(batch_dir))
    if context.as_json:
        context.print(BatchOutputsAnswer(outputs=directory), (), name="batch-outputs")
        return
    # A shell needs exactly the bytes of the path to open it, so they are not converted to text.
    context.display.erase_for_output()
    sys.stdout.buffer.write(os.fsencode(directory) + b"\n")
    sys.stdout.flush()


def _answer_batch(context: CommandContext, store: StoreDir, batch_dir: BatchDir) -> None:
    about, outputs = batch_dir.about, current_outputs(batch_dir)
    root = None if outputs is None else str(outputs.root)
    names = names_of_batch(batch_dir.id, read_batch_names(store))
    row = BatchShowAnswer(
        batch_id=batch_dir.id,
        created_at=instant_text(about.created_at_ns),
        snapshot_id=about.snapshot_id,
        pipeline=about.pipeline,
        status=batches.read_batch_state(store, batch_dir)[0],
        source=", ".join(map(display_path, about.sources)),
        paths=displayed_restriction(batch_dir),
        plan_digest=about.plan_digest,
        names=names,
        outputs=root,
    )
    root_shown = "none yet" if root is None else display_path(os.fsencode(root))
    paths_shown = ", ".join(displayed_restriction(batch_dir)) or "all"
    displayed_row = {**asdict(row), "paths": paths_shown, "names": _prefix_at_signs(names), "outputs": root_shown}
    context.print(row, (f"{name.ljust(12)} {value}" for name, value in displayed_row.items()))


@command()
@batch_option
@explain_option
@with_common_options
def tasks(context: CommandContext, batch_reference: str | None) -> None:
    """List the tasks of a batch and their progress."""
    store, batch = context.batch(batch_reference)
    rows = batches.task_states(store, batch)
    context.print(
        rows,
        table_lines(
            ((r.task_id, r.status, ", ".join(r.depends_on) or "-", r.files_done, r.files_failed) for r in rows),
            ("task", "status", "needs", "done", "failed"),
        ),
    )


@command()
@batch_option
@option("--task", "task", metavar="NAME", required=True, help="Task whose shards are listed")
@option(
    "--status",
    "state_filter",
    metavar="STATE",
    type=click.Choice(["open", "ready", "running", "done", "failed"]),
    help="Only shards in this state: open, running, done or failed",
    details="The value ready is the same as open.",
)
@explain_option
@with_common_options
def shards(context: CommandContext, batch_reference: str | None, task: str, state_filter: str | None) -> None:
    """List the shards of one task.

    A shard is a part of the files of a batch. Shards are listed in the order of their paths.
    """
    store, batch = context.batch(batch_reference)
    state_filter = "open" if state_filter == "ready" else state_filter
    rows = [asdict(state) for state in batches.shard_states(store, batch, task) if state_filter in (None, state.status)]
    context.print(
        rows, table_lines((row.values() for row in rows), rows[0]) if rows else [], if_none="no matching shards"
    )


def _prefix_at_signs(names: Iterable[str]) -> str:
    """Return the names of batches as users type them: each with `@` before it."""
    return ", ".join(f"@{name}" for name in names)
