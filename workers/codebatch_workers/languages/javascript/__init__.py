"""JavaScript and TypeScript."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    language: LanguageFacts(
        has_all_links=True,
        maps_module_roots=True,
        unparsed_users=frozenset({"astro", "svelte", "vue"}),
        called_methods="constructor|toString|valueOf|toJSON|then",
    )
    for language in ("javascript", "tsx", "typescript")
}
