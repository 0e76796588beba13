"""Query for the definitions of a name."""

from __future__ import annotations

from codebatch.operations.names.symbol_uses import UseSearch, search_uses
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.definitions import find_definitions_only, last_name_component
from codebatch.operations.queries.name_answers import NameSearch, name_answer, use_evidence
from codebatch.operations.queries.partial_files import note_partial_files
from codebatch.query.fields import JsonRecord


def find_definitions(question: BatchQuery, name: str) -> Answer[list[JsonRecord]]:
    """Return the symbols with a name, by path and location. Imports are left out.

    The name may be unqualified, or partly or fully qualified. Raises InvalidInput or StoreCorrupt.
    """
    matches, completeness = find_definitions_only(question, name)
    word = last_name_component(name)
    if matches:
        notes = note_partial_files(question, word)
        return Answer(question=question, result=matches, completeness=completeness, notes=notes)
    uses = UseSearch(question)
    found = search_uses(uses, name)
    counts = {role: count for role, count in found.others.items() if role != "import"}
    for use in found.uses:
        # An import does not show that the batch defines the name.
        if use.certainty != "external" and use.use.role != "import":
            counts[use.use.role] = counts.get(use.use.role, 0) + 1
    search = NameSearch(
        name=name,
        word=word,
        is_known=bool(found.uses or found.others),
        evidence=tuple(use_evidence(name, counts, "definition")),
        covered=found.covered,
    )
    return name_answer(question, matches, completeness, search, is_empty=True, notes=())
