"""Stand-ins for code that a grammar misreads without reporting an error. They are applied before every parse."""

from __future__ import annotations

from codebatch_workers.syntax.grammar_gaps.csharp import without_extension_blocks
from codebatch_workers.syntax.grammar_gaps.kotlin import without_quotes_at_ends
from codebatch_workers.syntax.grammar_gaps.ruby import without_inner_heredocs


def repaired(utf8: bytes, language: str) -> bytes:
    """Return a text of the same length in which misread code of a language is replaced."""
    if language == "csharp":
        return without_extension_blocks(utf8)
    if language == "kotlin" and b'""""' in utf8:
        return without_quotes_at_ends(utf8)
    if language == "ruby" and b"<<" in utf8:
        return without_inner_heredocs(utf8)
    return utf8
