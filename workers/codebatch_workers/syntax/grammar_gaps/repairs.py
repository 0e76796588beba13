"""Stand-ins for code that a grammar misreads without an error. They are always needed, whatever the tree is."""

from __future__ import annotations


def repaired(utf8: bytes, language: str) -> bytes:
    """Return a text of the same length for the grammar of a language."""
    # The imports are local, because the patterns of the other languages take long to compile.
    if language == "csharp":
        from codebatch_workers.syntax.grammar_gaps.csharp import without_extension_blocks

        return without_extension_blocks(utf8)
    if language == "kotlin" and b'""""' in utf8:
        from codebatch_workers.syntax.grammar_gaps.kotlin import without_quotes_at_ends

        return without_quotes_at_ends(utf8)
    if language == "ruby" and b"<<" in utf8:
        from codebatch_workers.syntax.grammar_gaps.ruby import without_inner_heredocs

        return without_inner_heredocs(utf8)
    return utf8
