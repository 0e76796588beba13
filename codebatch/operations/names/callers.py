"""Query for the callers of a name."""

from __future__ import annotations

import msgspec

from codebatch.model.analysis.uses import least_certain
from codebatch.operations.names.symbol_uses import SymbolUse, find_symbol_uses
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.definitions import last_name_component, name_answer
from codebatch.query.fields import JsonRecord, path_key
from codebatch.query.filters.paths import PathFilter, PathPatterns

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

        Its keys are `path` or `path_b64`, `scope`, `line`, `target`, `calls`, `resolution` and `candidates`. `scope` is
        empty for calls outside of functions.
        """
        row = self.first.row
        place = {key: row[key] for key in ("path", "path_b64") if key in row}
        call = {field: row[field] for field in _CALL_FIELDS}
        return {**place, **call, "calls": self.calls, "resolution": row["resolution"], "candidates": row["candidates"]}


def find_callers(
    question: BatchQuery, name: str, path: PathPatterns = "", *, definition: str = "", is_exact: bool = False
) -> Answer[list[Caller]]:
    """Return the scopes that call a name in files that match `path`, by path and first call.

    The name may be unqualified, or partly or fully qualified. `definition` and `is_exact` are as in `find_symbol_uses`.
    Raises InvalidInput or StoreCorrupt.
    """
    answer = find_symbol_uses(question, name, definition=definition, is_exact=is_exact, roles=("call",), path=path)
    by_scope: dict[tuple[object, ...], Caller] = {}
    for use in answer.result.uses:
        scope = (*path_key(use.row), use.use.scope)
        known = by_scope.get(scope)
        if known is None:
            by_scope[scope] = Caller(use, 1)
            continue
        is_surer = least_certain(known.first.certainty, use.certainty) != use.certainty
        by_scope[scope] = Caller(use if is_surer else known.first, known.calls + 1)
    callers = list(by_scope.values())
    is_wanted = PathFilter(path).matches
    word, unresolved = last_name_component(name), answer.result.other_chains
    return name_answer(question, callers, answer.completeness, word, "calls", is_wanted, unresolved=unresolved)
