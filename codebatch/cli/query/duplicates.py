"""The command `duplicates`: duplicate blocks, and their source side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

import click
import msgspec

from codebatch.cli.framework.answer_printing import emit_document, emit_formatted, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import (
    CommandContext,
    OutputForm,
    path_option,
    query_batch_option,
    with_common_options,
)
from codebatch.cli.framework.format_option import form_option, resolve_form
from codebatch.cli.framework.path_arguments import path_restriction, paths_argument
from codebatch.cli.output.tables import wrap_text
from codebatch.cli.output.terminal import printable_line
from codebatch.cli.output.widths import fit_path, terminal_width
from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.query.fields import JsonRecord

if TYPE_CHECKING:
    from codebatch.operations.api.batch import Batch
    from codebatch.operations.queries.duplicate_blocks import DuplicateBlock, DuplicateLocation
    from codebatch.operations.queries.duplicates import DuplicateBlocks
    from codebatch.operations.queries.source_line import SourceLine

_BLOCKS_SHOWN_MAX = 10
_PLACES_LISTED_MAX = 3
_SOURCE_LINES_SHOWN = 12
_SIDE_COLUMNS_MIN = 40
"""Minimum width of each of the two sides in columns. In a narrower terminal, one side is printed below the other."""
_SIDE_SEPARATOR = " | "
_PLACE_COLUMNS_MIN = 24
"""Minimum width of a location in columns. If locations would become narrower, they are wrapped to the next line."""
_TAB_COLUMNS = 4


@command()
@paths_argument
@query_batch_option
@option("--show", type=click.IntRange(min=1), metavar="N", help="Show only the Nth block, with its source")
@option(
    "--min", "least", metavar="N", type=click.IntRange(min=1), default=1, help="Only blocks of at least N code lines"
)
@common_option("limit", default_text=f"{_BLOCKS_SHOWN_MAX}, or all with --json or -o")
@path_option
@option(
    "--all",
    "everything",
    is_flag=True,
    help="Include blocks that occur only in test files, vendored or generated code",
)
@form_option
@with_common_options
def duplicates(
    context: CommandContext,
    paths: tuple[str, ...],
    batch_reference: str | None,
    show: int | None,
    least: int,
    limit: int | None,
    path: str,
    everything: bool,
    form: OutputForm | None,
) -> int:
    """Show duplicate blocks, the largest first.

    A duplicate block is ten or more identical code lines in several places. Comments and white space do not count. A
    location with only some lines of the block is listed too, with the number of these lines.

    The source of the first block is shown. --show N shows block N instead. The locations of the block are printed side
    by side, or one below the other in a narrow terminal or a pipe.

    Each PATH selects the blocks that have a location in a file, or in the files below a directory.
    """
    form, context = resolve_form(context, form)
    if show is not None and limit is not None:
        raise InvalidInput("--limit cannot be used with --show")
    batch = open_queried_batch(context, batch_reference)
    blocks_max = 1 if show is not None else limit or (_BLOCKS_SHOWN_MAX if form is None else None)
    paths_restriction = path_restriction(batch, paths, path)
    answer = batch.copies(least=least, first=show or 1, limit=blocks_max, path=paths_restriction, everything=everything)
    blocks = answer.result
    if show is not None and not blocks.blocks and answer.completeness.is_complete:
        raise InvalidInput(
            f"duplicate block {show:,} does not exist", hint=f"blocks found: {_at_most(blocks)}{blocks.count:,}"
        )
    if blocks.excluded:
        secondary_noun = "test, vendored or generated files"
        bound = "at most " * blocks.excluded_is_upper_bound
        hidden = f"{bound}{count_text(blocks.excluded, 'duplicate block')}"
        context.note(f"hidden: {hidden} with fewer than two locations outside {secondary_noun}; to show all, use --all")
    if form == "json":
        document = {"batch_id": batch.id, **msgspec.to_builtins(blocks)}
        return emit_document(context, answer, document, ())
    if_none = "" if blocks.blocks else "no duplicate blocks"
    if form is not None:
        from codebatch.cli.framework.formats import write_rows

        rows = [row for block in blocks.blocks for row in _place_rows(block)]
        write = partial(write_rows, form, rows, _COLUMNS)
        return emit_formatted(context, answer, write, if_none=if_none)
    lines = list(_duplicates_lines(batch, blocks, is_alone=show is not None))
    status = emit_formatted(context, answer, partial(context.print, None, lines), if_none=if_none)
    if show is None and len(blocks.blocks) < blocks.count:
        more = f"{_at_most(blocks)}{blocks.count - len(blocks.blocks):,} more"
        context.note(f"{more}; show them with --limit {blocks.count}")
    return status


def _at_most(blocks: DuplicateBlocks) -> str:
    return "at most " * blocks.count_is_upper_bound


_COLUMNS = ("number", "lines", "copies", "path", "line", "end_line")


def _place_rows(block: DuplicateBlock) -> Iterator[JsonRecord]:
    about: JsonRecord = {"number": block.number, "lines": block.lines, "copies": block.copies, "group": block.group}
    for place in block.locations:
        yield about | msgspec.to_builtins(place)


def _duplicates_lines(batch: Batch, blocks: DuplicateBlocks, *, is_alone: bool) -> Iterator[str]:
    for block in blocks.blocks:
        yield from _block_lines(block, len(block.locations) if is_alone else _PLACES_LISTED_MAX)
    if blocks.blocks:
        first, *_ = blocks.blocks
        yield ""
        yield from _source_lines(batch, first, None if is_alone else _SOURCE_LINES_SHOWN)


def _block_lines(block: DuplicateBlock, listed: int) -> list[str]:
    """Return a block as lines with its first `listed` locations.

    On a terminal, lines are wrapped and paths are shortened, but no path is broken.
    """
    head = f"{block.number:>4}  {count_text(block.lines, 'line')}  "
    hidden = len(block.locations) - listed
    more = f" (and {hidden:,} more)" if hidden > 0 else ""
    places = [_place_text(place) for place in block.locations[:listed]]
    line = f"{head}{' = '.join(places)}{more}"
    width = terminal_width()
    if width is None or len(line) <= width:
        return [line]
    room = (width - len(head) - len(more) - len(" = ") * (len(places) - 1)) // len(places)
    fitted = [fit_path(place, max(room, _PLACE_COLUMNS_MIN), 0) for place in places]
    # If the short forms of two paths are equal, more directories are shown to distinguish them.
    if len({*fitted}) < len(fitted):
        fitted = [fit_path(place, width - len(head), 0) for place in places]
    first, *further = wrap_text(f"{' = '.join(fitted)}{more}", width - len(head))
    return [f"{head}{first}", *(" " * len(head) + line for line in further)]


def _place_text(place: DuplicateLocation) -> str:
    part = f" ({count_text(place.lines, 'line')})" if isinstance(place.lines, int) else ""
    return f"{display_path(place.path_bytes)}:{place.line}{part}"


def _source_lines(batch: Batch, block: DuplicateBlock, lines_max: int | None) -> Iterator[str]:
    """Yield the source of a block at its locations, side by side or, without enough room, one below the other."""
    sides = [(_place_text(place), _numbered_lines(lines, lines_max)) for place, lines in batch.copy_sources(block)]
    columns = terminal_width()
    width = 0 if columns is None else (columns - len(_SIDE_SEPARATOR)) // 2
    if len(sides) == 2 and width >= _SIDE_COLUMNS_MIN:
        (left_title, left), (right_title, right) = sides
        for left_line, right_line in zip_longest([left_title, *left], [right_title, *right], fillvalue=""):
            yield f"{_cut_line(left_line, width):<{width}}{_SIDE_SEPARATOR}{_cut_line(right_line, width)}".rstrip()
    else:
        for title, lines in sides:
            yield from (fit_path(title, columns, 0), *lines)
    longest = max((len(lines) for _, lines in sides), default=0)
    if lines_max is not None and longest == lines_max:
        yield f"   …  full source: codebatch duplicates --show {block.number}"


def _numbered_lines(lines: Sequence[SourceLine], lines_max: int | None) -> list[str]:
    numbered = []
    for line in lines[:lines_max]:
        text = printable_line(line.text.removesuffix("\r").expandtabs(_TAB_COLUMNS))
        numbered.append(f"{line.line:>6}  {text}".rstrip())
    return numbered


def _cut_line(text: str, width: int) -> str:
    text = printable_line(text)
    return text if len(text) <= width else text[: width - 1] + "…"
