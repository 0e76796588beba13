"""Query for the callers of a name."""

from __future__ import annotations

import msgspec

from codebatch.model.analysis.uses import least_certain
from codebatch.operations.names.symbol_use import SymbolUse
from codebatch.operations.names.symbol_uses import UseSearch, search_uses, uses_answer
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.query.fields import JsonRecord, path_key
from codebatch.query.filters.paths import PathPatterns

_CALL_FIELDS = ("scope", "line", "target")


class Caller(msgspec.Struct, frozen=True):
    """A function that calls a name, with its first call and the number of its calls.

    `first` is the first of the calls that are resolved most certainly.
    """

    first: SymbolUse
    calls: int

    @property
    def row(self) -> JsonRecord:
        """The caller as a dictionary.

        Its keys are `path` or `path_b64`, `scope`, `line`, `target`, `calls`, `resolution`, `candidates` and `through`.
        `scope` is empty for calls outside of functions.
        """
        row = self.first.row
        place: JsonRecord = {key: row[key] for key in ("path", "path_b64") if key in row}
        call = {field: row[field] for field in _CALL_FIELDS}
        certainty = {key: row[key] for key in ("resolution", "candidates", "through")}
        return {**place, **call, "calls": self.calls, **certainty}


def find_callers(
    question: BatchQuery,
    name: str,
    path: PathPatterns = "",
    *,
    definition: str = "",
    is_exact: bool = False,
    noun: str = "name",
    search: UseSearch | None = None,
) -> Answer[list[Caller]]:
    """Return the scopes that call a name in files that match `path`, by path and first call.

    The name may be unqualified, or partly or fully qualified. `definition` and `is_exact` are as in `find_symbol_uses`,
    `noun` as in NameSearch. `search` is a new search, if it is given.
    Raises InvalidInput or StoreCorrupt.
    """
    search = search or UseSearch(question)
    found = search_uses(search, name, definition=definition, is_exact=is_exact, roles=("call",), path=path)
    by_scope: dict[tuple[object, ...], Caller] = {}
    for use in found.uses:
        scope = (*path_key(use.row), use.use.scope)
        known = by_scope.get(scope)
        if known is None:
            by_scope[scope] = Caller(use, 1)
            continue
        is_surer = least_certain(known.first.certainty, use.certainty) != use.certainty
        by_scope[scope] = Caller(use if is_surer else known.first, known.calls + 1)
    callers = list(by_scope.values())
    return uses_answer(
        question, callers, found, search.completeness, name, path, is_empty=not callers, kind="call", noun=noun
    )
