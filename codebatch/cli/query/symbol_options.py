"""Options of commands about the uses of a symbol, and the texts of their rows."""

from __future__ import annotations

from codebatch.cli.framework.commands import option
from codebatch.cli.output.records import resolution_mark
from codebatch.query.fields import JsonRecord

definition_option = option(
    "--definition",
    "definition",
    metavar="PATH[:LINE]",
    default="",
    help="Only uses of the definition at this place, if several have the name",
)
exact_option = option(
    "--exact", "is_exact", is_flag=True, help="Only uses that are certain by scope, imports and the language's rules"
)


def certainty_mark(row: JsonRecord) -> str:
    """Return a text in brackets for a use that is not certain, with a space before it. Otherwise, return no text."""
    candidates = row["candidates"]
    if row["through"]:
        return f" ({'by name, ' if row['resolution'] == 'name' else ''}through {row['through']})"
    if row["resolution"] == "name" and isinstance(candidates, int) and candidates > 1:
        return f" (by name, {candidates:,} candidates)"
    return resolution_mark(row)
