"""Options of commands about the uses of a symbol, and the text for the certainty of a use."""

from __future__ import annotations

from codebatch.cli.framework.commands import option
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
    resolution, candidates = row["resolution"], row["candidates"]
    if row["through"]:
        return f" (through {row['through']})"
    if resolution == "exact":
        return ""
    if resolution == "name" and isinstance(candidates, int) and candidates > 1:
        return f" (by name, {candidates:,} candidates)"
    return " (by name)" if resolution == "name" else f" ({resolution})"
