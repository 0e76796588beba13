"""Rust."""

from __future__ import annotations

import re

from codebatch.model.analysis.language_facts import LanguageFacts, ReferenceFacts

BASE_MARK = "impl "
FACTS = {
    "rust": LanguageFacts(
        has_all_links=True,
        has_implicit_imports=True,
        is_native=True,
        called_methods="drop|fmt|next|eq|ne|cmp|partial_cmp|hash|add|sub|mul|div|rem|neg|not|index|index_mut|deref"
        r"|deref_mut|from|try_from|into_iter|poll|\w+_assign|shl|shr|bitand|bitor|bitxor",
        base_mark=BASE_MARK,
        indirect_bases=r"\bderive\b.*\bNAME\b|\bimpl\b.*\bNAME\b.*\bfor\b.*\$",
        calls_by_type=True,
        refuses_cycles=True,
        references=ReferenceFacts(
            dynamic_names=re.compile(rb"\b(include|paste|concat_idents)!"),
            module_file=re.compile(r"\A(?:.*/)?(?:lib|main)\.rs\Z|(/mod)?\.rs\Z"),
        ),
        test_mark=re.compile(rb"#\[(?:[\w:]+::)?test\b|\bcfg\(test\)"),
        test_block=re.compile(
            rb"^[^\n/\"]*?#\[(?:[\w:]+::)?(?:test|bench|rstest|test_case|quickcheck|wasm_bindgen_test)\b[^\n]*?"
            rb"(?:\n\s*(?:#\[|//)[^\n]*?)*\s*(?:pub(?:\([^)\n]*\))?\s+)?(?:async\s+|unsafe\s+)*fn\s+(?P<test>\w+)"
            rb"|^[^\n/\"]*?#\[cfg\(test\)\]\s*(?:pub\s+)?mod\s+(?P<module>\w+)",
            re.MULTILINE,
        ),
    ),
}
