"""The commands `snapshot` and `files`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import click
import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from codebatch.cli.answers.schemas import (
    FileRow,
    PathSelectionAnswer,
    SkippedPathRow,
    SnapshotListRow,
    SnapshotTakeAnswer,
)
from codebatch.cli.framework.answer_printing import emit_rows, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import (
    CommandContext,
    SourcePath,
    table_lines,
    whole_batch_option,
    with_common_options,
)
from codebatch.cli.framework.groups import GLOBAL_FLAGS, CommandGroup, group_with_common_options
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.output.records import value_text
from codebatch.errors import InvalidInput, StoreCorrupt, UnknownId
from codebatch.model.entry import Entry, EntryLine, display_path, entry_line, path_row
from codebatch.model.record import FileClass, ParseState
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.operations.project import project_snapshot
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.path_selection import explain_path_selection
from codebatch.query.filters.filters import JsonRecord
from codebatch.store.batches.snapshot_references import resolve_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import SnapshotSource, load_snapshot, reset_snapshot_age, snapshot_ids

FILE_CLASSES: tuple[FileClass, ...] = get_args(FileClass)
PARSE_STATES: tuple[ParseState, ...] = get_args(ParseState)


class SnapshotShowAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch snapshot show`. `listing` is set with --files."""

    snapshot_id: str
    created_at: str
    digest: str
    files: int
    bytes: int
    entries: int
    source: SnapshotSource
    listing: tuple[EntryLine, ...] | UnsetType = UNSET


_GLOBAL_FLAG_WORDS = tuple(word for words, _ in GLOBAL_FLAGS.values() for word in words)


class SnapshotGroup(CommandGroup):
    """The group of `snapshot`. `snapshot DIR` means `snapshot take DIR`, unless DIR is the name of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `take` before the first word that is not a global option, unless it is a command of the group."""
        place = 0
        while place < len(args) and args[place].startswith(("--store", "--color", *_GLOBAL_FLAG_WORDS)):
            place += 2 if args[place] in ("--store", "--color") else 1
        word = args[place] if place < len(args) else None
        if word not in (None, "-h", "--help", *self.commands):
            args = [*args[:place], "take", *args[place:]]
        return super().parse_args(ctx, args)


@click.group(cls=SnapshotGroup, subcommand_metavar="PATH...|list|show")
@group_with_common_options
def snapshot() -> None:
    """Take, list and show snapshots.

    `codebatch snapshot PATH` is short for `codebatch snapshot take PATH`.
    """


@snapshot.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=SourcePath())
@common_option("include")
@common_option("exclude")
@option("--rehash", is_flag=True, help="Read every file, even if the stat cache shows that it has not changed")
@with_common_options
def take(
    context: CommandContext, paths: tuple[Path, ...], include: tuple[str, ...], exclude: tuple[str, ...], rehash: bool
) -> None:
    """Take a snapshot of directories or files.

    The same files give the same snapshot ID on any machine.

    A snapshot without a batch is removed 14 days after it was last taken, unless it is pinned with `codebatch pin`.
    """
    rules = project_snapshot.rules_for(load_configuration(Path.cwd()), include, exclude, rehash=rehash)
    store = context.store_place.open_or_create_store(context.note)
    with store.writing():
        result = project_snapshot.take_snapshot_of_paths(store, paths, rules, context.phase)
        reset_snapshot_age(store.files, store.root, result.snapshot_id)
    for note in result.notes:
        context.note(note)
    context.print(
        SnapshotTakeAnswer(
            snapshot_id=result.snapshot_id,
            digest=result.digest,
            files=result.files,
            bytes=result.bytes,
            entries=result.entries,
            read_files=result.read_files,
            reused=result.reused,
            skipped=tuple(
                SkippedPathRow(**path_row(skipped.path), reason=skipped.reason, shown=display_path(skipped.path))
                for skipped in result.skipped
            ),
        ),
        [f"snapshot {result.snapshot_id}: {count_text(result.files, 'file')}, {human_bytes(result.bytes)}"],
    )
    context.note(f"next: codebatch batch init --snapshot {result.snapshot_id}")


@snapshot.command("list")
@explain_option
@with_common_options
def snapshot_list(context: CommandContext) -> None:
    """List all snapshots."""
    store = context.store_place.open()
    rows = [_snapshot_row(context, store, snapshot_id) for snapshot_id in snapshot_ids(store.files, store.root)]
    cells = [asdict(row) for row in rows]
    context.print(
        rows, table_lines((row.values() for row in cells), cells[0]) if cells else [], if_none="no snapshots yet"
    )


@snapshot.command("show")
@click.argument("reference", metavar="[ID]", default="latest")
@option("--files", "with_files", is_flag=True, help="Also list the entries of the snapshot")
@explain_option
@with_common_options
def snapshot_show(context: CommandContext, reference: str, with_files: bool) -> None:
    """Show a snapshot.

    ID is a snapshot ID, a unique ID prefix, latest or latest~N. The default is the latest of this project.
    """
    store = context.store_place.open()
    resolved = resolve_snapshot(store, reference, context.note)
    about = resolved.document
    answer = msgspec.convert(about, SnapshotShowAnswer, from_attributes=True)
    if with_files:
        answer = msgspec.structs.replace(answer, listing=tuple(map(entry_line, resolved.entries)))
    cells = asdict(answer) | {"source": ", ".join(about.source.roots)}
    del cells["listing"]
    lines = [f"{name.ljust(12)} {value}" for name, value in cells.items()]
    context.print(answer, [*lines, *(entry.text for entry in resolved.entries if with_files)])


def _snapshot_row(context: CommandContext, store: StoreDir, snapshot_id: str) -> SnapshotListRow:
    """Return a row about a snapshot. If the snapshot is unreadable, the row has the status DAMAGED."""
    try:
        document = load_snapshot(store.files, store.root, snapshot_id).document
    except (StoreCorrupt, UnknownId) as error:
        context.note(f"{snapshot_id}: {error.message}")
        return SnapshotListRow(snapshot_id=snapshot_id, created_at="", status="DAMAGED", files=0, bytes=0, source="")
    return SnapshotListRow(
        snapshot_id=document.snapshot_id,
        created_at=document.created_at,
        status="READY",
        files=document.files,
        bytes=document.bytes,
        source=", ".join(document.source.roots),
    )


@command()
@whole_batch_option
@option("--snapshot", "snapshot_reference", metavar="ID", help="List the entries of this snapshot")
@option(
    "--why",
    "why_path",
    metavar="PATH",
    type=SourcePath(),
    help="Show which rule includes or excludes this path of the current project",
)
@common_option("include", help="With --why: include only paths matching this gitignore-style pattern")
@common_option("exclude", help="With --why: exclude paths matching this gitignore-style pattern")
@option(
    "--parse",
    "parse",
    multiple=True,
    metavar="STATE",
    type=click.Choice(PARSE_STATES),
    help=f"Only files with this parse state: {', '.join(PARSE_STATES[:-1])} or {PARSE_STATES[-1]}",
)
@option(
    "--class",
    "file_class",
    multiple=True,
    metavar="CLASS",
    type=click.Choice(FILE_CLASSES),
    help="Only files of this class, such as test or generated",
    details=f"Classes are {', '.join(FILE_CLASSES[:-1])} and {FILE_CLASSES[-1]}.",
)
@common_option("lang")
@common_option("path")
@common_option("limit")
@explain_option
@with_common_options
def files(
    context: CommandContext,
    batch_reference: str | None,
    snapshot_reference: str | None,
    why_path: Path | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    parse: tuple[str, ...],
    file_class: tuple[str, ...],
    lang: tuple[str, ...],
    path: str,
    limit: int | None,
) -> int:
    """List files, or explain why a path is included or excluded.

    Lists the files of a batch with their language and number of lines. --snapshot lists the entries of a snapshot
    instead. --why explains a single path.
    """
    is_filtered = bool(parse or file_class or lang or path)
    if is_filtered and (why_path is not None or snapshot_reference is not None):
        raise InvalidInput("--parse, --class, --lang and --path apply only to batches")
    if why_path is None and (include or exclude):
        raise InvalidInput("--include and --exclude need --why", hint="give the path with --why PATH")
    if why_path is not None and (batch_reference is not None or snapshot_reference is not None):
        raise InvalidInput("--why cannot be used with --batch or --snapshot")
    if why_path is not None:
        _answer_path_selection(context, why_path, include, exclude)
        return 0
    if batch_reference is not None and snapshot_reference is not None:
        raise InvalidInput("--batch cannot be used with --snapshot")
    if snapshot_reference is not None:
        snapshot = resolve_snapshot(context.store_place.open(), snapshot_reference, context.note)
        rows = [entry_line(entry) for entry in snapshot.entries[:limit]]
        lines = (entry.text for entry in snapshot.entries[:limit])
        context.print(rows, lines, if_none="no files", name="files-snapshot")
        return 0
    answer = open_queried_batch(context, batch_reference).entries(
        limit, parse=parse or None, file_class=file_class or None, path=path, lang=lang or None
    )
    rows = [_file_row(entry, record or {}) for entry, record in answer.result]
    lines = (
        f"{entry.text}  {properties.get('lang', '?')}  {value_text(properties.get('lines'), 'line')}"
        for entry, properties in ((entry, record or {}) for entry, record in answer.result)
    )
    return emit_rows(context, answer, rows, lines, if_none="no matching files" if is_filtered else "no files")


def _answer_path_selection(
    context: CommandContext, path: Path, include: tuple[str, ...], exclude: tuple[str, ...]
) -> None:
    rules = project_snapshot.rules_for(load_configuration(Path.cwd()), include, exclude)
    answer = explain_path_selection(path, rules, context.store_place)
    mode = f" (listing: {answer.mode})" if answer.mode else ""
    name = os.fsencode(path)
    context.print(
        PathSelectionAnswer(**path_row(name), included=answer.included, rule=answer.rule, mode=answer.mode),
        [f"{display_path(name)}: {'included' if answer.included else 'excluded'}: {answer.rule}{mode}"],
        name="files-why",
    )


def _file_row(entry: Entry, properties: JsonRecord) -> FileRow:
    """Return a row about an entry of a snapshot. `properties` are the entry's `file` record, or empty."""
    known_properties = {name: properties[name] for name in ("lang", "lines", "class", "parse") if name in properties}
    row: dict[str, object] = msgspec.to_builtins(entry_line(entry))
    return msgspec.convert(row | known_properties, FileRow)
