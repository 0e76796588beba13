"""`gc`, `pin`, `unpin` and `store-stats`: what a store holds, what of it is kept, and what goes."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import asdict

from codebatch.application.collecting import Collected, StoreStats, collect_garbage, stats_of
from codebatch.application.configuration import load_configuration
from codebatch.cli.answers import PartHeld, Pinned, Unpinned
from codebatch.cli.completing import complete_batch
from codebatch.cli.options import Answering, answering, table
from codebatch.cli.reading import explain_option
from codebatch.cli.show import collected_line
from codebatch.model.quantities import human_bytes
from codebatch.store import pins


class CollectedAnswer(Collected, frozen=True, kw_only=True):
    """`gc`."""

    dry_run: bool


class StoreStatsAnswer(StoreStats, frozen=True, kw_only=True):
    """`store-stats`."""

    store: str
    parts: dict[str, PartHeld]  # type: ignore[assignment]


@click.command()
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="Batches that stay, of each source and pipeline. Default: 50, or `keep` of [store] in the configuration.",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Say what would go, and change nothing.")
@answering
def gc(answering: Answering, keep: int | None, is_dry: bool) -> None:
    """Remove old batches, and whatever only they needed.

    Of batches that have ended the latest stay that are COMPLETED, and as many that are not, of each source, paths and
    pipeline; and, not counted among these, those that are pinned or named, at work, or not at their end. Snapshots that
    no batch names, those that `snapshot` took too, go 14 days after they were last taken, unless they are pinned; then
    objects that nothing names.

    Equal files of results become one again: a copy of a store without its hard links holds each several times.

    `run` does all but that at its end to batches of its own source, and to objects once a day. Where somebody writes
    to the store nothing is done.
    """
    chosen = keep or load_configuration(Path.cwd()).settings.store.keep
    collected = collect_garbage(answering.place.open(), keep=chosen, is_dry=is_dry, note=answering.tell)
    gone = [
        *(f"batch     {each}" for each in collected.batches),
        *(f"snapshot  {each}" for each in collected.snapshots),
    ]
    answering.print(
        CollectedAnswer(dry_run=is_dry, **asdict(collected)), [*gone, collected_line(collected, is_dry=is_dry)]
    )


@click.command()
@click.argument("reference", metavar="BATCH|SNAPSHOT", shell_complete=complete_batch)
@answering
def pin(answering: Answering, reference: str) -> None:
    """Keep a batch or a snapshot until it is unpinned."""
    store = answering.place.open()
    with store.writing():
        found = pins.pin(store, reference, answering.note)
    answering.print(Pinned(pinned=found), [f"pinned {found}"])


@click.command()
@click.argument("reference", metavar="BATCH|SNAPSHOT|@NAME", shell_complete=complete_batch)
@answering
def unpin(answering: Answering, reference: str) -> None:
    """Let a pinned batch or snapshot go with the others; or take a name away, which pins a batch as well."""
    store = answering.place.open()
    with store.writing():
        found = pins.unpin(store, reference, answering.note)
    answering.print(Unpinned(unpinned=found), [f"unpinned {found}"])


@click.command("store-stats")
@explain_option
@answering
def store_stats(answering: Answering) -> None:
    """What the store holds: bytes by part, what hard links share counted once, and what is pinned."""
    store = answering.place.open()
    stats = stats_of(store)
    parts = {part: PartHeld(files=files, bytes=held) for part, (files, held) in stats.parts.items()}
    lines = [
        f"store     {store.root}",
        f"size      {human_bytes(stats.bytes)} ({human_bytes(stats.bytes + stats.shared_bytes)} without hard links)",
        f"batches   {stats.batches:,}",
        f"snapshots {stats.snapshots:,}",
        *(f"pinned    {each}" for each in stats.pinned),
        *(f"named     {batch_id} @{name}" for name, batch_id in stats.named.items()),
        *table(((part, files, held) for part, (files, held) in stats.parts.items()), ("part", "files", "bytes")),
    ]
    answering.print(StoreStatsAnswer(store=str(store.root), **{**asdict(stats), "parts": parts}), lines)
