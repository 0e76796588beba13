"""JavaScript and TypeScript."""

from __future__ import annotations

import re

from codebatch.model.analysis.language_facts import LanguageFacts, ReferenceFacts

FACTS = {
    language: LanguageFacts(
        has_all_links=True,
        maps_module_roots=True,
        unparsed_users=frozenset({"astro", "svelte", "vue"}),
        called_methods="constructor|toString|valueOf|toJSON|then",
        structural_base="interface",
        has_methods_in_literals=True,
        indirect_bases=r"[(,]\s*(?:\w+\.)*NAME\s*[,)]|\bNAME\s*\.\s*prototype\b|\bclass\b.*\bextends\b.*\bNAME\b",
        references=ReferenceFacts(
            dynamic_names=re.compile(rb"\bexports\b|\bexport\s*="),
            exports=re.compile(rb"\bexports?\b[^{;\n]*(?:\{[^}]*\})?"),
            star_export=re.compile(rb"\s*export\s*\*\s*from\b"),
        ),
        test_mark=re.compile(rb"\bimport\.meta\.vitest\b"),
        test_block=re.compile(rb"^[^\n/\"]*?\bif\s*\(\s*import\.meta\.vitest\s*\)\s*(?=\{)", re.MULTILINE),
    )
    for language in ("javascript", "tsx", "typescript")
}
