"""PHP."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    "php": LanguageFacts(
        has_hash_comments=True,
        has_all_links=True,
        has_implicit_imports=True,
        ignores_case=True,
        called_methods=r"__\w+",
        indirect_bases=r"\bclass_alias\b.*\bNAME\b",
    ),
}
