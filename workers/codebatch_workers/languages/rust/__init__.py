"""Rust."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    "rust": LanguageFacts(
        has_all_links=True,
        has_implicit_imports=True,
        is_native=True,
        called_methods="drop|fmt|next|eq|ne|cmp|partial_cmp|hash|add|sub|mul|div|rem|neg|not|index|index_mut|deref"
        r"|deref_mut|from|try_from|into_iter|poll|\w+_assign|shl|shr|bitand|bitor|bitxor",
        calls_by_trait=True,
    ),
}
