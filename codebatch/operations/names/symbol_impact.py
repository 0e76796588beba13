"""Query for the impact of a change of a symbol: the code that uses it, directly or indirectly."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.analysis.uses import Certainty, least_certain
from codebatch.model.entry import path_row
from codebatch.operations.names.symbol_uses import SymbolKey, UseSearch, definitions_at, symbol_keys
from codebatch.operations.queries.batch_query import Answer, BatchQuery, unknown_path_error
from codebatch.operations.queries.definitions import find_definitions_only, last_name_component
from codebatch.query.answers.test_names import is_test_file
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.arguments import refuse_numbers_below_one

SEARCHED_SYMBOLS_MAX = 100
"""Maximum number of symbols whose uses are searched for one answer."""


class SymbolDependent(msgspec.Struct, frozen=True):
    """A scope in a file that uses a symbol, directly or indirectly.

    `distance` is the number of uses from this scope to the symbol. In the first, the scope uses the symbol `uses` at
    `line`. `scope` is empty for code outside of definitions. `resolution` is the least certain of all these uses.
    """

    path: bytes
    scope: str
    distance: int
    uses: str
    line: int
    resolution: Certainty

    @property
    def row(self) -> JsonRecord:
        """The dependent as a dictionary."""
        fields = msgspec.structs.asdict(self)
        return {**path_row(fields.pop("path")), **fields}


class SymbolImpact(msgspec.Struct, frozen=True, kw_only=True):
    """The definitions of a symbol and the code that depends on it, the nearest first.

    `is_cut` is set if SEARCHED_SYMBOLS_MAX was reached, so farther dependents may be missing.
    """

    definitions: list[JsonRecord]
    dependents: list[SymbolDependent]
    is_cut: bool = False

    @property
    def tests(self) -> list[str]:
        """The paths of test files among the dependents, sorted. Test files are recognised by their names."""
        paths = {dependent.path for dependent in self.dependents if is_test_file(dependent.path)}
        return sorted(map(os.fsdecode, paths))


def find_symbol_impact(
    question: BatchQuery, name: str, *, definition: str = "", is_exact: bool = False, depth: int | None = None
) -> Answer[SymbolImpact]:
    """Return the code that depends on the symbols with a name, which may be qualified.

    `definition` selects one symbol, as in `find_symbol_uses`. With `depth`, only code at most this number of uses away
    is returned. Uses that are not resolved are listed, but the code that uses their scopes is not. With `is_exact`,
    only certain uses count. Raises InvalidInput or StoreCorrupt.
    """
    refuse_numbers_below_one(depth=depth)
    try:
        all_definitions, _ = find_definitions_only(question, name)
    except InvalidInput:
        all_definitions = []
    definitions = definitions_at(question.records, name, all_definitions, definition)
    if not definitions:
        raise unknown_path_error(question.records, name, "no file or definition")
    search = UseSearch(question)
    dependents: dict[tuple[bytes, str], SymbolDependent] = {}
    nearest: dict[SymbolKey, Certainty] = dict.fromkeys(symbol_keys(definitions), "exact")
    known, distance = set(nearest), 0
    while nearest and distance != depth and len(known) <= SEARCHED_SYMBOLS_MAX:
        distance += 1
        following: dict[SymbolKey, Certainty] = {}
        # Only the uses of the symbol itself can be unresolved.
        candidates = len(symbol_keys(all_definitions)) if distance == 1 else 0
        for dependent in _direct_dependents(search, nearest, candidates, distance):
            if is_exact and dependent.resolution != "exact":
                continue
            place = (dependent.path, dependent.scope)
            before = dependents.get(place)
            if before is None or (before.distance == distance and before.resolution == "name"):
                dependents[place] = dependent
            key = (os.fsdecode(dependent.path), dependent.scope)
            if dependent.scope and dependent.resolution != "name" and key not in known:
                following[key] = least_certain(following.get(key, "exact"), dependent.resolution)
        nearest = following
        known |= nearest.keys()
    in_order = sorted(dependents.values(), key=lambda dependent: (dependent.distance, dependent.path, dependent.line))
    is_cut = bool(nearest) and distance != depth
    impact = SymbolImpact(definitions=definitions, dependents=in_order, is_cut=is_cut)
    coverage = None if in_order else question.read_coverage((last_name_component(name),))
    return Answer(question=question, result=impact, completeness=search.completeness, coverage=coverage)


def _direct_dependents(
    search: UseSearch, symbols: Mapping[SymbolKey, Certainty], candidates: int, distance: int
) -> Iterator[SymbolDependent]:
    """Yield the scopes that use one of the symbols. `symbols` has how certain it is that each symbol is reached."""
    for symbol, certainty in symbols.items():
        qualified = symbol[1]
        for found in search.uses(last_name_component(qualified), {symbol}, candidates):
            if found.use.role not in ("definition", "import"):
                total = least_certain(certainty, found.certainty)
                yield SymbolDependent(found.path, found.use.scope, distance, qualified, found.use.line, total)
