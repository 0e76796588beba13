"""`impact`, `graph`: how files depend on one another."""

from __future__ import annotations

import click
import msgspec

from codebatch.cli.options import Answering, answering, batch_option, count_of, table
from codebatch.cli.queries import find_item
from codebatch.model.entry import display_path
from codebatch.query.dependencies import cycles, iter_imports
from codebatch.query.dependencies import impact as dependents_of
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


@click.command()
@batch_option
@click.option("--cycles", "only_cycles", is_flag=True, help="Files that import one another, most files first.")
@click.option("--dot", is_flag=True, help="Print the graph for Graphviz.")
@answering
def graph(answering: Answering, batch_reference: str | None, only_cycles: bool, dot: bool) -> None:
    """The import graph: which file imports which, where, and how sure that is."""
    imports = list(iter_imports(BatchRecords(*answering.batch(batch_reference))))
    if only_cycles:
        found = cycles(imports)
        lines = (f"{count_of(len(each.files), 'file')}: {' -> '.join(each.shortest)}" for each in found)
        answering.print(found, lines, if_none="no import cycle")
        return
    if dot:
        pairs = dict.fromkeys((each.source, each.target) for each in imports)
        arrows = (f"  {_quoted(source)} -> {_quoted(target)};" for source, target in pairs)
        answering.print(list(pairs), ["digraph imports {", *arrows, "}"])
        return
    rows = [msgspec.structs.asdict(each) for each in imports]
    answering.print(rows, table((row.values() for row in rows), rows[0]) if rows else [], if_none="no imports")


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
