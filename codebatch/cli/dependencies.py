"""`impact`, `graph`: how files depend on one another."""

from __future__ import annotations

import click
import msgspec

from codebatch.cli.asking import ask
from codebatch.cli.options import Answering, answering, asked_batch_option, count_of, table
from codebatch.cli.queries import find_item
from codebatch.model.entry import display_path
from codebatch.query.completeness import completeness
from codebatch.query.dependencies import cycles, iter_imports, needed_tasks
from codebatch.query.dependencies import impact as dependents_of


@click.command()
@click.argument("path", metavar="FILE")
@asked_batch_option
@click.option("--depth", type=click.IntRange(min=1), help="At most so many steps. Default: all.")
@answering
def impact(answering: Answering, path: str, batch_reference: str | None, depth: int | None) -> int:
    """What depends on a file: what imports it, what imports that, and so on.

    `resolution` tells how sure the step is: exact by the language's rule, file (one fits), name (several fit).
    """
    question = ask(answering, batch_reference)
    records = question.records
    name, _ = find_item(answering, records, path)
    found = [
        each
        for each in dependents_of(iter_imports(records), display_path(name))
        if depth is None or each.distance <= depth
    ]
    rows = ((each.distance, each.path, f"{each.imports}:{each.line}", each.resolution) for each in found)
    lines = table(rows, ("distance", "path", "imports", "resolution")) if found else ()
    whole = completeness(records, needed_tasks(records), needs_all_files=True)
    return question.answer_rows(found, lines, whole, if_none=f"nothing in the batch imports {display_path(name)}")


@click.command()
@asked_batch_option
@click.option("--cycles", "only_cycles", is_flag=True, help="Files that import one another, most files first.")
@click.option("--dot", is_flag=True, help="Print the graph for Graphviz.")
@answering
def graph(answering: Answering, batch_reference: str | None, only_cycles: bool, dot: bool) -> int:
    """The import graph: which file imports which, where, and how sure that is."""
    question = ask(answering, batch_reference)
    imports = list(iter_imports(question.records))
    whole = completeness(question.records, needed_tasks(question.records), needs_all_files=only_cycles)
    if only_cycles:
        found = cycles(imports)
        lines = (f"{count_of(len(each.files), 'file')}: {' -> '.join(each.shortest)}" for each in found)
        return question.answer_rows(found, lines, whole, if_none="no import cycle")
    if dot:
        pairs = dict.fromkeys((each.source, each.target) for each in imports)
        arrows = (f"  {_quoted(source)} -> {_quoted(target)};" for source, target in pairs)
        return question.answer_rows(list(pairs), ["digraph imports {", *arrows, "}"], whole)
    rows = [msgspec.structs.asdict(each) for each in imports]
    cells = table((row.values() for row in rows), rows[0]) if rows else []
    return question.answer_rows(rows, cells, whole, if_none="no imports")


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
