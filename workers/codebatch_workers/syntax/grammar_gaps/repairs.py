"""Replacements for code that a grammar misreads without reporting an error. They are applied before every parse."""

from __future__ import annotations

from codebatch_workers.syntax.grammar_gaps.csharp import blank_extension_blocks
from codebatch_workers.syntax.grammar_gaps.kotlin import blank_final_quotes
from codebatch_workers.syntax.grammar_gaps.ruby import blank_inner_heredocs


def repair_text(utf8: bytes, language: str) -> bytes:
    """Return a text of the same length, in which other code replaces the code that the grammar misreads."""
    if language == "csharp":
        return blank_extension_blocks(utf8)
    if language == "kotlin" and b'""""' in utf8:
        return blank_final_quotes(utf8)
    if language == "ruby" and b"<<" in utf8:
        return blank_inner_heredocs(utf8)
    return utf8
