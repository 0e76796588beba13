"""Overview of a symbol: its definitions, its callers, what it calls, and the tests that reach it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.entry import path_row
from codebatch.operations.names.callers import find_callers
from codebatch.operations.names.implementations import find_direct_subtypes
from codebatch.operations.names.in_source_tests import find_test_scopes
from codebatch.operations.names.symbol_impact import FILE_OR_NAME
from codebatch.operations.names.symbol_uses import UseSearch
from codebatch.operations.queries.batch_query import Answer, BatchQuery, refuse_unknown_path
from codebatch.operations.queries.definitions import find_definitions_only, last_name_component
from codebatch.query.answers.dependencies import BatchImports, find_dependents, tasks_for_dependencies
from codebatch.query.answers.test_names import is_test_file
from codebatch.query.completeness import Completeness, tasks_completeness
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import path_bytes
from codebatch.query.sources.records import BatchRecords

DEFINITIONS_FOLLOWED_MAX = 20
"""Maximum number of definitions whose calls and tests are read."""


class SymbolOverview(msgspec.Struct, frozen=True, kw_only=True):
    """An overview of the symbols with a name.

    - `definitions`: the records of the symbols, by path and location.
    - `callers`: the functions that call the name. The rows are as in the answer of `codebatch callers`.
    - `implementations`: the types that name one of the types as their base. The rows are as in the answer of
      `codebatch implementations`, which also has indirect ones, and members that override others.
    - `calls`: the calls within the definitions. A row has a path, `scope`, `line` and `target` of the first call of a
      target, and its number of `calls`.
    - `tests`: the test files that reach a definition, and source files with tests that call it. A row has a path and
      `distance`: 0 for a file that calls the name, otherwise the number of import steps to the file of a definition.
      `calls` is the number of calls in tests.
    - `followed`: the number of definitions whose calls and tests were read, the first ones in `definitions`.
    """

    definitions: list[JsonRecord]
    callers: list[JsonRecord]
    implementations: list[JsonRecord]
    calls: list[JsonRecord]
    tests: list[JsonRecord]
    followed: int


def read_symbol_overview(question: BatchQuery, name: str) -> Answer[SymbolOverview]:
    """Return the overview of the symbols with a name, which may be qualified.

    If the name has no callers, the answer has the coverage of the search for calls. Raises InvalidInput if there is no
    such symbol, or StoreCorrupt.
    """
    records = question.records
    noun = f"no {FILE_OR_NAME}" if "/" not in name else "no file"
    refuse_unknown_path(records, name, noun)
    definitions, defined = find_definitions_only(question, name)
    refuse_unknown_path(records, name, noun, is_defined=bool(definitions))
    search = UseSearch(question)
    callers = find_callers(question, name, noun=FILE_OR_NAME, search=search)
    if not definitions:
        hint = f"see: codebatch references {shlex.quote(last_name_component(name))}"
        raise InvalidInput(f"the batch has uses, but no definition of {name!r}", hint=hint)
    caller_rows = [caller.row for caller in callers.result]
    followed = definitions[:DEFINITIONS_FOLLOWED_MAX]
    files = list(dict.fromkeys(map(path_bytes, followed)))
    items = records.find_items(files)
    overview = SymbolOverview(
        definitions=definitions,
        callers=caller_rows,
        implementations=[found.row for found in find_direct_subtypes(definitions, search)],
        calls=[
            call
            for definition in followed
            for call in _calls_within(records, items[path_bytes(definition)], definition)
        ],
        tests=_reaching_tests(question, files, caller_rows),
        followed=len(followed),
    )
    parts = [defined, callers.completeness, _imports_completeness(question)]
    completeness = next((part for part in parts if not part.is_complete), defined)
    return Answer(
        question=question,
        result=overview,
        completeness=completeness,
        coverage=callers.coverage,
        not_searched=callers.not_searched,
    )


def _calls_within(records: BatchRecords, item: int, definition: JsonRecord) -> list[JsonRecord]:
    """Return the first call of each target within a definition or its nested definitions, in source order."""
    qualified = str(definition["qualified"])
    nested = (f"{qualified}.", f"{qualified}::")
    calls: dict[tuple[str, str], JsonRecord] = {}
    for record in records.item_records("symbols", item) or ():
        if record["kind"] != "edge" or record["edge_type"] != "calls":
            continue
        source, target = str(record.get("source", "")), str(record["target"])
        if source != qualified and not source.startswith(nested):
            continue
        first = calls.get((source, target))
        number = first["calls"] if first else 0
        assert isinstance(number, int)
        row = first or {**path_row(path_bytes(record)), "scope": source, "line": record["line"], "target": target}
        calls[source, target] = {**row, "calls": number + 1}
    return list(calls.values())


def _reaching_tests(question: BatchQuery, files: Sequence[bytes], callers: Sequence[JsonRecord]) -> list[JsonRecord]:
    """Return the test files that call a name or depend on one of the files that define it, the nearest first.

    A source file is one of them if a test function in it calls the name.
    """
    scopes = [(path_bytes(caller), str(caller["scope"]), int(str(caller["line"]))) for caller in callers]
    in_source = {*find_test_scopes(question, scopes)}
    calls = Counter[bytes]()
    for caller, scope in zip(callers, scopes, strict=True):
        number = caller["calls"]
        assert isinstance(number, int)
        calls[scope[0]] += number if scope in in_source or is_test_file(scope[0]) else 0
    distances = {**_dependent_distances(question.records, files), **dict.fromkeys(calls, 0)}
    tests = sorted((distance, path) for path, distance in distances.items() if is_test_file(path) or calls[path])
    return [{**path_row(path), "distance": distance, "calls": calls[path]} for distance, path in tests]


def _dependent_distances(records: BatchRecords, files: Sequence[bytes]) -> Mapping[bytes, int]:
    """Return the files that depend on one of some files, each with its smallest number of import steps."""
    if "dependencies" not in records.task_names:
        return {}
    importers_of = BatchImports(records).importers_of
    distances: dict[bytes, int] = {}
    for file in files:
        try:
            dependents = find_dependents(importers_of, file.decode())
        except UnicodeDecodeError:  # No import can name such a file.
            continue
        for dependent in dependents:
            path = dependent.path.encode()
            distances[path] = min(distances.get(path, dependent.distance), dependent.distance)
    return distances


def _imports_completeness(question: BatchQuery) -> Completeness:
    records = question.records
    if "dependencies" not in records.task_names:
        return Completeness()
    lacks_files = bool(question.batch.about.paths)
    return tasks_completeness(records, tasks_for_dependencies(records), lacks_files=lacks_files)
