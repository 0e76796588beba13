"""`impact`: what depends on a file."""

from __future__ import annotations

import click

from codebatch.cli.options import Answering, answering, batch_option, table
from codebatch.cli.queries import find_item
from codebatch.model.entry import display_path
from codebatch.query.impact import impact as dependents_of
from codebatch.query.impact import iter_imports
from codebatch.query.records import BatchRecords


@click.command()
@click.argument("path", metavar="FILE")
@batch_option
@click.option("--depth", type=click.IntRange(min=1), help="At most so many steps. Default: all.")
@answering
def impact(answering: Answering, path: str, batch_reference: str | None, depth: int | None) -> None:
    """What depends on a file: what imports it, what imports that, and so on.

    `resolution` tells how sure the step is: exact by the language's rule, file (one fits), name (several fit).
    """
    records = BatchRecords(*answering.batch(batch_reference))
    name, _ = find_item(records, path)
    found = [
        each
        for each in dependents_of(iter_imports(records), display_path(name))
        if depth is None or each.distance <= depth
    ]
    rows = ((each.distance, each.path, f"{each.imports}:{each.line}", each.resolution) for each in found)
    answering.print(found, table(rows, ("distance", "path", "imports", "resolution")))
    if not found:
        answering.note(f"nothing in the batch imports {display_path(name)}")
