"""Query for the impact of a change of a symbol: the code that uses it, directly or indirectly."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from codebatch.model.analysis.uses import Certainty, least_certain
from codebatch.model.entry import path_row
from codebatch.operations.names.in_source_tests import find_test_scopes, in_source_tests
from codebatch.operations.names.symbol_use import SymbolKey, SymbolUse, symbol_keys
from codebatch.operations.names.symbol_uses import UseSearch, search_uses, uses_answer
from codebatch.operations.queries.batch_query import Answer, BatchQuery, refuse_unknown_path
from codebatch.operations.queries.definitions import last_name_component
from codebatch.query.answers.search_coverage import Evidence
from codebatch.query.answers.test_names import is_test_file
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.arguments import refuse_numbers_below_one

FILE_OR_NAME = "file or name"
SEARCHED_SYMBOLS_MAX = 100
"""Maximum number of symbols whose uses are searched for one answer."""


class SymbolDependent(msgspec.Struct, frozen=True):
    """A scope in a file that uses a symbol, directly or indirectly.

    `distance` is the number of uses from this scope to the symbol. In the first, the scope uses the symbol `uses` at
    `line`. `scope` is empty for code outside of definitions. `resolution` is the least certain of all these uses.
    `through` is as in SymbolUse.
    """

    path: bytes
    scope: str
    distance: int
    uses: str
    line: int
    resolution: Certainty
    through: str = ""

    @property
    def row(self) -> JsonRecord:
        """The dependent as a dictionary."""
        fields = msgspec.structs.asdict(self)
        return {**path_row(fields.pop("path")), **fields}


class SymbolImpact(msgspec.Struct, frozen=True, kw_only=True):
    """The definitions of a symbol and the code that depends on it, the nearest first.

    `test_functions` are the tests in source files among the dependents, if only tests are requested.

    `is_cut` is set if SEARCHED_SYMBOLS_MAX was reached, so farther dependents may be missing. `unfollowed` is the
    number of uses by name only, whose own users are not listed.
    """

    definitions: list[JsonRecord]
    dependents: list[SymbolDependent]
    is_cut: bool = False
    unfollowed: int = 0
    test_functions: list[SymbolDependent] = []

    @property
    def tests(self) -> list[str]:
        """The paths of test files among the dependents, sorted. Test files are recognised by their names."""
        paths = {dependent.path for dependent in self.dependents if is_test_file(dependent.path)}
        return sorted(map(os.fsdecode, paths))


def find_symbol_impact(
    question: BatchQuery,
    name: str,
    *,
    definition: str = "",
    is_exact: bool = False,
    depth: int | None = None,
    for_tests: bool = False,
) -> Answer[SymbolImpact]:
    """Return the code that depends on the symbols with a name, which may be qualified.

    `definition` selects one symbol, as in `find_symbol_uses`. With `depth`, only code at most this number of uses away
    is returned. Uses that are not resolved are listed, but the code that uses their scopes is not. With `is_exact`,
    only certain uses count. `for_tests` is as in `find_impact`. Raises InvalidInput or StoreCorrupt.
    """
    refuse_numbers_below_one(depth=depth)
    refuse_unknown_path(question.records, name, f"no {FILE_OR_NAME}")
    search = UseSearch(question)
    found = search_uses(search, name, definition=definition, is_exact=is_exact)
    refuse_unknown_path(question.records, name, f"no {FILE_OR_NAME}", is_defined=bool(found.definitions))
    ring = [use for use in found.uses if use.use.role not in ("definition", "import")]
    imports = sum(use.use.role == "import" for use in found.uses)
    found = msgspec.structs.replace(found, others={**({"import": imports} if imports else {}), **found.others})
    symbols = symbol_keys(found.definitions)
    impact = _Impact(search, symbols, _overloads_that_use(found.definitions, ring), is_exact=is_exact)
    impact.add_ring([_dependent(use, _used_symbol(use, symbols, name)) for use in ring])
    is_cut = impact.follow(depth)
    result = SymbolImpact(
        definitions=found.definitions,
        dependents=impact.in_order,
        is_cut=is_cut,
        unfollowed=impact.unfollowed,
        test_functions=_test_functions(question, [*impact.in_order, *map(_dependent, ring)]) if for_tests else [],
    )
    completeness = search.completeness
    if is_cut:
        completeness = msgspec.structs.replace(completeness, unfollowed=_CUT_TEXT)
    is_empty = not ring
    evidence: tuple[Evidence, ...] = ()
    if for_tests and ring and not result.tests and not result.test_functions:
        is_empty = True
        unfollowed = {"unfollowed": result.unfollowed} if result.unfollowed else {}
        found = msgspec.structs.replace(found, others={**unfollowed, **found.others})
        evidence = in_source_tests(question, [dependent.path for dependent in result.dependents])
    return uses_answer(
        question,
        result,
        found,
        completeness,
        name,
        "",
        is_empty=is_empty,
        kind="reference",
        noun=FILE_OR_NAME,
        evidence=evidence,
    )


_CUT_TEXT = (
    f"the search stopped after {SEARCHED_SYMBOLS_MAX} symbols; code that uses the symbol less directly may be missing, "
    "see --depth"
)


def _test_functions(question: BatchQuery, dependents: Sequence[SymbolDependent]) -> list[SymbolDependent]:
    """Return the dependents that are test functions in source files, each scope once."""
    places = {(each.path, each.scope, each.line): each for each in reversed(dependents) if not is_test_file(each.path)}
    tests = {place[:2]: places[place] for place in find_test_scopes(question, places)}
    return sorted(tests.values(), key=lambda each: (each.path, each.line))


class _Impact:
    """The dependents of some symbols, found ring by ring.

    `unfollowed` counts the uses whose scopes are not followed. `overloads` are the symbols of which one definition uses
    another. Their users are uncertain, because they can use any of the definitions.
    """

    def __init__(
        self, search: UseSearch, symbols: Collection[SymbolKey], overloads: Collection[SymbolKey], *, is_exact: bool
    ) -> None:
        self.unfollowed = 0
        self._search = search
        self._is_exact = is_exact
        self._known = {*symbols}.difference(overloads)
        self._overloads = overloads
        self._nearest: dict[SymbolKey, Certainty] = {}
        self._dependents: dict[tuple[bytes, str], SymbolDependent] = {}
        self._distance = 1

    @property
    def in_order(self) -> list[SymbolDependent]:
        """The dependents, the nearest first, then by path and line."""
        return sorted(
            self._dependents.values(), key=lambda dependent: (dependent.distance, dependent.path, dependent.line)
        )

    def follow(self, depth: int | None) -> bool:
        """Add the rings after the first one, up to a distance. Return whether the search stopped before."""
        while self._nearest and self._distance != depth and len(self._known) <= SEARCHED_SYMBOLS_MAX:
            self._distance += 1
            nearest, self._nearest = self._nearest, {}
            self._known |= nearest.keys()
            self.add_ring(list(self._users(nearest)))
        return bool(self._nearest) and self._distance != depth

    def add_ring(self, ring: Iterable[SymbolDependent]) -> None:
        """Add the dependents of one distance. The scopes that certainly use a symbol are followed next."""
        following: dict[SymbolKey, Certainty] = {}
        for dependent in ring:
            if self._is_exact and dependent.resolution != "exact":
                continue
            place = (dependent.path, dependent.scope)
            before = self._dependents.get(place)
            if before is None or (before.distance == self._distance and before.resolution == "name"):
                self._dependents[place] = dependent
            key = (os.fsdecode(dependent.path), dependent.scope)
            if dependent.resolution == "name":
                self.unfollowed += 1
            elif dependent.scope and key not in self._known:
                certainty = "name" if key in self._overloads else dependent.resolution
                following[key] = least_certain(following.get(key, "exact"), certainty)
        self._nearest = following

    def _users(self, symbols: Mapping[SymbolKey, Certainty]) -> Iterator[SymbolDependent]:
        """Yield the scopes that use one of the symbols. `symbols` has how certain it is that each is reached."""
        for symbol, certainty in symbols.items():
            # Only uses of the requested symbol itself can be unresolved.
            for use in self._search.uses(last_name_component(symbol[1]), {symbol}, 0):
                if use.use.role not in ("definition", "import"):
                    dependent = _dependent(use, symbol[1], self._distance)
                    total = least_certain(certainty, dependent.resolution)
                    yield msgspec.structs.replace(dependent, resolution=total)
        self.unfollowed += self._search.unfollowed
        self._search.unfollowed = 0


def _overloads_that_use(definitions: Iterable[JsonRecord], uses: Iterable[SymbolUse]) -> set[SymbolKey]:
    """Return the symbols of which a definition that is not requested uses a requested one."""
    requested = [
        (*symbol_keys([record]), range(int(str(record["line"])), int(str(record["end_line"])) + 1))
        for record in definitions
    ]
    keys = {key for key, _ in requested}
    return {
        key
        for use in uses
        if (key := (os.fsdecode(use.path), use.use.scope)) in keys
        and not any(key == known and use.use.line in lines for known, lines in requested)
    }


def _dependent(use: SymbolUse, used: str = "", distance: int = 1) -> SymbolDependent:
    return SymbolDependent(use.path, use.use.scope, distance, used, use.use.line, use.certainty, use.through)


def _used_symbol(use: SymbolUse, symbols: Collection[SymbolKey], name: str) -> str:
    """Return the qualified name of the symbol that is used. If it is one of several, return the first."""
    places = [(found.path, found.qualified) for found in use.use.resolved.definitions]
    used = next((place for place in places if place in symbols), None) or next(iter(sorted(symbols)), ("", name))
    return used[1]
