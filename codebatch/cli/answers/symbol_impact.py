"""The answer of `impact NAME`: the code that uses a symbol, directly or indirectly."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from codebatch.cli.answers.empty_answers import emit_search
from codebatch.cli.answers.file_groups import FILES_SHOWN
from codebatch.cli.framework.context import CommandContext, table_lines
from codebatch.errors import InvalidInput
from codebatch.model.text.quantities import count_text
from codebatch.operations.names.symbol_impact import SymbolDependent, SymbolImpact
from codebatch.operations.queries.batch_query import Answer
from codebatch.query.fields import record_path
from codebatch.query.filters.paths import PathFilter


def answer_symbol_impact(
    context: CommandContext,
    answer: Answer[SymbolImpact],
    name: str,
    path: str,
    limit: int | None,
    *,
    only_tests: bool,
) -> int:
    """Print the code that depends on a symbol, or only the test files and tests in source files with such code.

    Return the exit status. `path` restricts the printed files. `limit` is the maximum number of rows.
    """
    if only_tests and limit is not None:
        raise InvalidInput("--limit cannot be used with --tests")
    impact, is_wanted = answer.result, PathFilter(path).matches
    dependents = [dependent for dependent in impact.dependents if is_wanted(dependent.path)]
    if only_tests:
        return _answer_tests(context, answer, name, is_wanted)
    shown = dependents[: FILES_SHOWN if limit is None and not context.as_json and sys.stdout.isatty() else limit]
    members = {"definitions": impact.definitions, "is_cut": impact.is_cut}
    rows = [dependent.row for dependent in shown]
    lines = _lines(shown, dependents, len(impact.tests))
    status = emit_search(context, answer, rows, lines, f"uses of {name}", members=members, name="impact-symbol")
    if len(shown) < len(dependents):
        context.note(f"{len(dependents) - len(shown):,} more; show all with --limit {len(dependents)}")
    if impact.tests:
        context.note(f"list the test files with: codebatch impact {shlex.quote(name)} --tests")
    return status


def _answer_tests(
    context: CommandContext, answer: Answer[SymbolImpact], name: str, is_wanted: Callable[[bytes], bool]
) -> int:
    tests = [test for test in answer.result.tests if is_wanted(os.fsencode(test))]
    functions = [function for function in answer.result.test_functions if is_wanted(function.path)]
    files = dict.fromkeys(os.fsdecode(function.path) for function in functions)
    places = (f"{record_path(each.row)}:{each.line}: {each.scope or '(file)'}" for each in functions)
    members = {"functions": [function.row for function in functions]}
    subject = f"tests that use {name}"
    return emit_search(
        context, answer, [*tests, *files], chain(tests, places), subject, members=members, name="impact-tests"
    )


def _lines(shown: Sequence[SymbolDependent], dependents: Sequence[SymbolDependent], tests: int) -> Iterator[str]:
    if not dependents:
        return
    rows = (
        (
            dependent.distance,
            f"{record_path(dependent.row)}:{dependent.line}",
            dependent.scope or "(file)",
            dependent.uses,
            f"through {dependent.through}" if dependent.through else dependent.resolution,
        )
        for dependent in shown
    )
    yield from table_lines(rows, ("distance", "path", "scope", "uses", "resolution"), paths=("path",))
    direct = sum(dependent.distance == 1 for dependent in dependents)
    total = f"{count_text(len(dependents), 'dependent')}, {direct:,} direct"
    yield f"{total}, {count_text(tests, 'test file')}" if tests else total
