"""`impact`, `graph`: how files depend on one another."""

from __future__ import annotations

import click
import msgspec

from codebatch.cli.asking import answer_rows, ask
from codebatch.cli.options import Answering, answering, asked_batch_option, table
from codebatch.model.entry import display_path
from codebatch.model.quantities import count_of


@click.command()
@click.argument("path", metavar="FILE")
@asked_batch_option
@click.option("--depth", type=click.IntRange(min=1), help="At most so many steps. Default: all.")
@answering
def impact(answering: Answering, path: str, batch_reference: str | None, depth: int | None) -> int:
    """What depends on a file: what imports it, what imports that, and so on.

    `resolution` tells how sure the step is: exact by the language's rule, file (one fits), name (several fit).
    """
    answer = ask(answering, batch_reference).impact(path, depth)
    found = answer.found.dependents
    rows = ((each.distance, each.path, f"{each.imports}:{each.line}", each.resolution) for each in found)
    lines = table(rows, ("distance", "path", "imports", "resolution")) if found else ()
    if_none = f"nothing in the batch imports {display_path(answer.found.path)}"
    return answer_rows(answering, answer, found, lines, if_none=if_none)


@click.command()
@asked_batch_option
@click.option("--cycles", "only_cycles", is_flag=True, help="Files that import one another, most files first.")
@click.option("--dot", is_flag=True, help="Print the graph for Graphviz.")
@answering
def graph(answering: Answering, batch_reference: str | None, only_cycles: bool, dot: bool) -> int:
    """The import graph: which file imports which, where, and how sure that is."""
    batch = ask(answering, batch_reference)
    if only_cycles:
        cycles = batch.import_cycles()
        lines = (f"{count_of(len(each.files), 'file')}: {' -> '.join(each.shortest)}" for each in cycles.found)
        return answer_rows(answering, cycles, cycles.found, lines, if_none="no import cycle")
    answer = batch.imports()
    if dot:
        pairs = dict.fromkeys((each.source, each.target) for each in answer.found)
        arrows = (f"  {_quoted(source)} -> {_quoted(target)};" for source, target in pairs)
        return answer_rows(answering, answer, list(pairs), ["digraph imports {", *arrows, "}"])
    rows = [msgspec.structs.asdict(each) for each in answer.found]
    cells = table((row.values() for row in rows), rows[0]) if rows else []
    return answer_rows(answering, answer, rows, cells, if_none="no imports")


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
