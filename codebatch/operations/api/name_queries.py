"""Public methods that answer questions about a name: its definitions, references and uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codebatch.operations.api.record_queries import RecordQueries

if TYPE_CHECKING:
    from codebatch.operations.names.callers import Caller
    from codebatch.operations.names.implementations import Implementation
    from codebatch.operations.names.symbol_impact import SymbolImpact
    from codebatch.operations.names.symbol_overview import SymbolOverview
    from codebatch.operations.names.symbol_uses import SymbolUses
    from codebatch.operations.queries.batch_query import Answer
    from codebatch.operations.queries.references import SearchProgress
    from codebatch.query.fields import JsonRecord
    from codebatch.query.filters.paths import PathPatterns
    from codebatch.query.filters.record_options import OneOrMany


class NameQueries(RecordQueries):
    """Methods about names. They raise InvalidInput for an invalid request, and StoreCorrupt for damaged data."""

    def definitions(self, name: str) -> Answer[list[JsonRecord]]:
        """Return the definitions of a name, sorted by path and location. Imports are not included.

        The name can be qualified, such as `Class.method`.
        """
        from codebatch.operations.names.name_definitions import find_definitions

        return self.check(find_definitions(self.question, name))

    def callers(
        self, name: str, path: PathPatterns = "", *, definition: str = "", is_exact: bool = False
    ) -> Answer[list[Caller]]:
        """Return the functions that call a name, sorted by path and first call. `path` restricts the files.

        The name can be qualified, such as `Class.method`. `definition` and `is_exact` are as in `uses`.
        """
        from codebatch.operations.names.callers import find_callers

        return self.check(find_callers(self.question, name, path, definition=definition, is_exact=is_exact))

    def implementations(
        self, name: str, path: PathPatterns = "", *, definition: str = ""
    ) -> Answer[list[Implementation]]:
        """Return the types that inherit the types with a name, and the methods that override the methods with the name.

        They are sorted by path and location. The name can be qualified, such as `Class.method`. `path` restricts the
        files, and `definition` is as in `uses`.
        """
        from codebatch.operations.names.implementations import find_implementations

        return self.check(find_implementations(self.question, name, path, definition=definition))

    def uses(
        self,
        name: str,
        *,
        definition: str = "",
        is_exact: bool = False,
        role: OneOrMany = None,
        path: PathPatterns = "",
        progress: SearchProgress | None = None,
    ) -> Answer[SymbolUses]:
        """Return the uses of the symbols with a name, each with the certainty that it refers to them.

        The name can be qualified. `definition` selects one symbol by its place, `path:line` or `path`. With `is_exact`,
        only uses are returned that follow from scope, imports and the rules of the language. `role`, `path` and
        `progress` are as in `references`.
        """
        from codebatch.operations.names.symbol_uses import find_symbol_uses
        from codebatch.operations.queries.references import ignore_progress
        from codebatch.query.filters.record_options import as_tuple

        roles = () if role is None else as_tuple("role", role)
        found = find_symbol_uses(
            self.question,
            name,
            definition=definition,
            is_exact=is_exact,
            roles=roles,
            path=path,
            progress=progress or ignore_progress,
        )
        return self.check(found)

    def symbol_impact(
        self,
        name: str,
        *,
        definition: str = "",
        is_exact: bool = False,
        depth: int | None = None,
        for_tests: bool = False,
    ) -> Answer[SymbolImpact]:
        """Return the code that uses the symbols with a name, directly or indirectly, the nearest first.

        The name can be qualified. `definition` and `is_exact` are as in `uses`. With `depth`, only code at most this
        number of uses away is returned. `for_tests` is as in `Batch.impact`.
        """
        from codebatch.operations.names.symbol_impact import find_symbol_impact

        found = find_symbol_impact(
            self.question, name, definition=definition, is_exact=is_exact, depth=depth, for_tests=for_tests
        )
        return self.check(found)

    def references(
        self, name: str, *, role: OneOrMany = None, path: PathPatterns = "", progress: SearchProgress | None = None
    ) -> Answer[list[JsonRecord]]:
        """Return all occurrences of a name, or only occurrences in some roles: `definition`, `import`, `call` or
        `reference`.

        Each row has `path` or `path_b64`, `name`, `line`, `column`, `role` and `scope`. `progress` is called with two
        numbers: the files searched so far, and all files.
        """
        from codebatch.operations.names.symbol_uses import count_renamed_uses
        from codebatch.operations.queries.references import find_references, ignore_progress
        from codebatch.query.filters.record_options import as_tuple

        found = find_references(
            self.question,
            name,
            count_renamed=count_renamed_uses,
            roles=() if role is None else as_tuple("role", role),
            path=path,
            progress=progress or ignore_progress,
        )
        return self.check(found)

    def symbol_overview(self, name: str) -> Answer[SymbolOverview]:
        """Return the definitions of a name, its callers, the calls within it, and the test files that reach it.

        The name can be qualified, such as `Class.method`.
        """
        from codebatch.operations.names.symbol_overview import read_symbol_overview

        return self.check(read_symbol_overview(self.question, name))
