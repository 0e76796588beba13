"""The commands `gc`, `pin`, `unpin` and `store-stats`: garbage collection, and the size of a store."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import asdict

from codebatch.cli.answers.schemas import PinAnswer, StorePartSize, UnpinAnswer
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.completion import complete_batch
from codebatch.cli.framework.context import CommandContext, table_lines, with_common_options
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.output.records import collection_line
from codebatch.errors import StoreUnwritable
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.collection import CollectionResult, StoreStats, collect_garbage, read_store_stats
from codebatch.store.batches import pins


class GcAnswer(CollectionResult, frozen=True, kw_only=True):
    """The answer of `codebatch gc`."""

    dry_run: bool


class StoreStatsAnswer(StoreStats, frozen=True, kw_only=True):
    """The answer of `codebatch store-stats`."""

    store: str
    parts: dict[str, StorePartSize]  # type: ignore[assignment]


@command()
@option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=1),
    default_text="50",
    help="Number of complete batches to keep for each combination of project, paths and pipeline",
    details="The setting `keep` in [store] of the configuration changes the default.",
)
@option("--dry-run", "is_dry", is_flag=True, help="Show what would be removed, and change nothing")
@option(
    "--unapplied", "removes_unapplied", is_flag=True, help="Remove also task lists with changes that are not applied"
)
@with_common_options
def gc(context: CommandContext, keep: int | None, is_dry: bool, removes_unapplied: bool) -> None:
    """Remove old batches and the data that only they use.

    Batches of the same project, paths and pipeline form a group. In each group, the latest N complete batches are kept,
    and the latest N incomplete batches that have ended. --keep sets N. Batches that are pinned or named, or that have
    not ended, are always kept. Task lists with changes that `codebatch apply` has not written are kept too, unless
    --unapplied is given.

    If the directory of a project was removed, none of its batches are kept, except pinned and named batches and such
    task lists. This applies to a git work tree that git no longer lists, and to a directory that its parent directory
    has not had for a day. It does not apply if the directory may only be invisible, as on a disk that is not mounted
    now.

    Snapshots without a batch are removed 14 days after they were last taken, unless they are pinned. Objects, such as
    file contents, are removed if no snapshot or batch uses them.

    If a copied store has identical result files, they are hard-linked to save space.

    `codebatch run` also removes old batches of the project, and once a day unused objects. In CI, it keeps 3
    batches by default. Nothing is removed while another process writes to the store. If permissions refuse the removal
    of some data, the rest is removed, the output lists the refused data, and the exit status is 4.
    """
    chosen = keep or load_configuration(Path.cwd()).keep
    collected = collect_garbage(
        context.store_place.open(),
        keep=chosen,
        is_dry=is_dry,
        removes_unapplied=removes_unapplied,
        note=context.report,
    )
    removed = [
        *(f"source    {source} was removed, so its batches are not kept" for source in collected.removed_sources),
        *(f"batch     {id_}" for id_ in collected.batches),
        *(f"snapshot  {id_}" for id_ in collected.snapshots),
    ]
    kept = [
        f"kept      {each.batch_id}: {count_text(each.changes, 'change')} of {count_text(each.tasks, 'task')} "
        f"{'is' if each.changes == 1 else 'are'} not applied"
        for each in collected.unapplied
    ]
    refused = [f"refused   {each.name}: {each.reason}" for each in collected.unremoved]
    lines = [*removed, *kept, *refused, collection_line(collected, is_dry=is_dry)]
    context.print(GcAnswer(dry_run=is_dry, **asdict(collected)), lines if is_dry else context.unless_quiet(lines))
    if collected.unapplied:
        context.note("to remove these batches too: codebatch gc --unapplied")
    if collected.unremoved:
        hint = "run codebatch gc as the user that owns these files, or change their permissions"
        raise StoreUnwritable(f"not removed: {collected.unremoved_text}", hint=hint)


@command()
@click.argument("reference", metavar="BATCH|SNAPSHOT", shell_complete=complete_batch)
@with_common_options
def pin(context: CommandContext, reference: str) -> None:
    """Protect a batch or snapshot from removal.

    The protection lasts until `codebatch unpin`.
    """
    store = context.store_place.open()
    with store.writing():
        pinned_id = pins.pin_reference(store, reference, context.note)
    context.print(PinAnswer(pinned=pinned_id), context.unless_quiet([f"pinned {pinned_id}"]))


@command()
@click.argument("reference", metavar="BATCH|SNAPSHOT|@NAME", shell_complete=complete_batch)
@with_common_options
def unpin(context: CommandContext, reference: str) -> None:
    """Undo pin, or remove the name of a batch.

    Pins and names protect a batch from removal.
    """
    store = context.store_place.open()
    with store.writing():
        unpinned_id = pins.unpin_reference(store, reference, context.note)
    context.print(UnpinAnswer(unpinned=unpinned_id), context.unless_quiet([f"unpinned {unpinned_id}"]))


@command("store-stats")
@explain_option
@with_common_options
def store_stats(context: CommandContext) -> None:
    """Show the contents and the size of the store.

    Files that are hard-linked several times are counted once. Pinned and named batches are listed.
    """
    store = context.store_place.open()
    stats = read_store_stats(store)
    parts = {part: StorePartSize(files=files, bytes=size) for part, (files, size) in stats.parts.items()}
    lines = [
        f"store     {store.root}",
        f"size      {human_bytes(stats.bytes)} ({human_bytes(stats.bytes + stats.shared_bytes)} without hard links)",
        f"batches   {stats.batches:,}",
        f"snapshots {stats.snapshots:,}",
        *(f"pinned    {pinned_id}" for pinned_id in stats.pinned),
        *(f"named     {batch_id} @{name}" for name, batch_id in stats.batch_names.items()),
        *table_lines(((part, files, size) for part, (files, size) in stats.parts.items()), ("part", "files", "bytes")),
    ]
    context.print(StoreStatsAnswer(store=str(store.root), **{**asdict(stats), "parts": parts}), lines)
