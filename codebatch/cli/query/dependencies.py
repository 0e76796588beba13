"""The commands `impact` and `graph`: dependencies between files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from codebatch.cli.answers.empty_answers import emit_search
from codebatch.cli.answers.file_groups import FILES_SHOWN, LIMIT_DEFAULT_TEXT, omission_notes
from codebatch.cli.framework.answer_printing import emit_rows, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.completion import complete_file
from codebatch.cli.framework.context import (
    CommandContext,
    path_option,
    query_batch_option,
    table_lines,
    with_common_options,
)
from codebatch.cli.framework.path_arguments import path_clause, path_restriction, paths_argument
from codebatch.cli.output.tables import wrap_text
from codebatch.cli.output.widths import fit_path, hide_repeated_directories, terminal_width
from codebatch.cli.query.symbol_options import definition_option, exact_option
from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations import ignore_note
from codebatch.operations.names.impact import Impact
from codebatch.operations.queries.batch_query import Answer, try_find_item
from codebatch.query.fields import JsonRecord

if TYPE_CHECKING:
    from codebatch import Cycle
    from codebatch.operations.api.batch import Batch
    from codebatch.query.filters.paths import PathPatterns


@command()
@click.argument("file", metavar="FILE|NAME", shell_complete=complete_file)
@query_batch_option
@path_option
@definition_option
@exact_option
@common_option("limit", help="Maximum number of files", default_text=LIMIT_DEFAULT_TEXT)
@option("--depth", metavar="N", type=click.IntRange(min=1), help="Maximum number of import steps")
@option(
    "--tests",
    "only_tests",
    is_flag=True,
    help="Print only test files, one per line, relative to the current directory",
)
@with_common_options
def impact(
    context: CommandContext,
    file: str,
    batch_reference: str | None,
    path: str,
    definition: str,
    is_exact: bool,
    limit: int | None,
    depth: int | None,
    only_tests: bool,
) -> int:
    """List what depends on a file or a symbol, directly or indirectly.

    A file depends on FILE if it imports FILE, or uses its names without an import, or imports a file that depends on
    FILE. To test a change:

    \b
    pytest $(codebatch impact FILE --tests)

    The column `resolution` shows how certain it is that an import refers to a file. `exact` is certain by the rules of
    the language. `file` is uncertain, but only one file is likely. `name` means that several files are likely.

    If no file is called NAME, the code that uses the symbols with this name is listed. NAME can be qualified, such as
    Class.method.

    If no dependent is found, files that were not parsed completely and ignored files are searched for the name of FILE.
    If they contain it, they are listed (exit status 3).
    """
    batch = open_queried_batch(context, batch_reference)
    if definition or try_find_item(batch.question.records, file, ignore_note) is None:
        from codebatch.cli.answers.symbol_impact import answer_symbol_impact  # Other answers do not need this import.

        impact_of_symbol = batch.symbol_impact(
            file, definition=definition, is_exact=is_exact, depth=depth, for_tests=only_tests
        )
        return answer_symbol_impact(context, impact_of_symbol, file, path, limit, only_tests=only_tests)
    answer = batch.impact(file, depth, path, is_exact=is_exact, for_tests=only_tests)
    dependents = answer.result.dependents
    if only_tests:
        if limit is not None:
            raise InvalidInput("--limit cannot be used with --tests")
        return _answer_tests(context, answer)
    shown = dependents[: FILES_SHOWN if limit is None and not context.as_json and sys.stdout.isatty() else limit]
    rows = (
        (dependent.distance, f"{dependent.path}:{dependent.line}", dependent.imports, dependent.resolution)
        for dependent in shown
    )
    lines = (
        table_lines(rows, ("distance", "path", "imports", "resolution"), paths=("path", "imports"))
        if dependents
        else ()
    )
    total = (_impact_total_text(answer.result),) if dependents else ()
    subject = f"dependents of {display_path(answer.result.path)}{path_clause(path)}"
    status = emit_search(context, answer, shown, iter((*lines, *total)), subject)
    omitted = [msgspec.structs.asdict(dependent) for dependent in dependents[len(shown) :]]
    for note in omission_notes(omitted, count_text(len(omitted), "dependent"), _depth_option, len(dependents)):
        context.note(note)
    if answer.result.tests:
        from shlex import quote  # `graph` does not need this import.

        context.note(f"list the test files with: codebatch impact {quote(file)} --tests")
    return status


def _depth_option(row: JsonRecord) -> tuple[str, str]:
    return f"distance {row['distance']}", f"--depth {row['distance']}"


def _impact_total_text(impact: Impact) -> str:
    direct, tests = sum(dependent.distance == 1 for dependent in impact.dependents), len(impact.tests)
    total = f"{count_text(len(impact.dependents), 'dependent')}, {direct:,} direct"
    return f"{total}, {count_text(tests, 'test file')}" if tests else total


def _answer_tests(context: CommandContext, answer: Answer[Impact]) -> int:
    """Print the test files of an impact as words of a command line.

    A path that needs quoting is left out, with a note.
    """
    tests = answer.result.tests
    sources = answer.question.batch.about.sources
    test_paths = [_relative_to_current(test, sources) for test in tests]
    lines = [path for path in test_paths if not _UNSAFE_IN_SHELL.search(path)]
    subject = f"tests of {display_path(answer.result.path)}"
    status = emit_search(context, answer, tests, iter(lines), subject, members={"functions": []}, name="impact-tests")
    if len(lines) < len(test_paths) and not context.as_json:
        omitted = count_text(len(test_paths) - len(lines), "test file")
        context.report(f"{omitted} omitted because the shell would split or expand the name; list all with --json")
    return status


_UNSAFE_IN_SHELL = re.compile(r"[^\w./:@%+=,~-]|^~")
"""Characters that a shell or a test runner could interpret in a word without quotes."""


def _relative_to_current(path: str, sources: Sequence[bytes]) -> str:
    """Return a path of the project relative to the current directory.

    The path is returned relative to the project in two cases: there are several sources, or the current directory is
    neither inside nor above the source.
    """
    current = os.getcwd()
    root = os.fsdecode(sources[0]) if len(sources) == 1 else ""
    if root and (os.path.commonpath([current, root]) in (current, root)):
        path = os.path.relpath(os.path.join(root, path), current)
    return f"./{path}" if path.startswith("-") else path


@command()
@paths_argument
@query_batch_option
@path_option
@option("--cycles", "only_cycles", is_flag=True, help="List import cycles, the smallest first")
@option(
    "--all",
    "everything",
    is_flag=True,
    help="With --cycles: include cycles through imports that are not executed while files are loaded",
    details="Also includes cycles that consist only of test files, vendored or generated code.",
)
@option("--dot", is_flag=True, help="Print the graph for Graphviz")
@with_common_options
def graph(
    context: CommandContext,
    paths: tuple[str, ...],
    batch_reference: str | None,
    path: str,
    only_cycles: bool,
    everything: bool,
    dot: bool,
) -> int:
    """List imports between files, or import cycles.

    Each import has a line number, and a `resolution` that shows how certain the import is, as in `codebatch impact`.
    Each PATH restricts the list to imports from or to a file, or the files below a directory.

    --cycles lists import cycles. Each import cycle is shown as its shortest path, with the import to cut: the import
    whose removal leaves the fewest files in cycles. With PATH, only cycles are listed that contain this file,
    or a file below this directory.

    Cycles that are harmless when files are loaded are listed only with --all. These are cycles through imports for type
    checkers (`import type`, `if TYPE_CHECKING:`), through imports in functions, or within a Rust crate.
    """
    batch = open_queried_batch(context, batch_reference)
    paths_restriction = path_restriction(batch, paths, path)
    if only_cycles:
        return _answer_cycles(context, batch, paths_restriction, everything=everything)
    if everything:
        raise InvalidInput("--all cannot be used without --cycles")
    answer = batch.imports(paths_restriction)
    if dot:
        pairs = dict.fromkeys((file_import.source, file_import.target) for file_import in answer.result)
        arrows = (f"  {_quote_dot_name(source)} -> {_quote_dot_name(target)};" for source, target in pairs)
        return emit_rows(context, answer, list(pairs), ["digraph imports {", *arrows, "}"], name="graph-dot")
    rows = [msgspec.structs.asdict(file_import) for file_import in answer.result]
    columns = ("source", "target", "line", "resolution")
    cells = table_lines(([row[name] for name in columns] for row in rows), columns, paths=columns[:2]) if rows else []
    return emit_rows(context, answer, rows, cells, if_none="no imports")


def _answer_cycles(context: CommandContext, batch: Batch, paths: PathPatterns, *, everything: bool) -> int:
    answer = batch.import_cycles(paths, everything=everything)
    lines = (line for cycle in answer.result for line in _cycle_lines(cycle, terminal_width()))
    status = emit_rows(context, answer, answer.result, lines, if_none="no import cycles", name="graph-cycles")
    if not everything and not context.as_json:
        displayed_cycles = [set(cycle.files) for cycle in answer.result]
        every = batch.import_cycles(paths, everything=True).result
        omitted_count = sum(not any(files <= set(cycle.files) for files in displayed_cycles) for cycle in every)
        if omitted_count:
            context.note(
                f"{count_text(omitted_count, 'import cycle')} hidden; to list all, use --all. "
                "Hidden cycles depend on type-only imports or imports in functions, are within a Rust crate, "
                "or contain only test, vendored or generated files"
            )
    return status


def _cycle_lines(cycle: Cycle, width: int | None) -> list[str]:
    """Return an import cycle as one line. On a terminal, the line is wrapped, and paths are shortened."""
    count = f"{count_text(len(cycle.files), 'file')}: "
    cut = f"{cycle.cut.source}:{cycle.cut.line}"
    if width is None:
        return [f"{count}{' -> '.join(cycle.shortest)}; cut at {cut}"]
    files = [fit_path(path, width, len("  -> ")) for path in hide_repeated_directories(list(cycle.shortest))]
    cut = fit_path(cut, width, len("  "))
    return wrap_text(f"{count}{' -> '.join(files)}; cut at {cut}", width, "  ")


def _quote_dot_name(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
