"""Python."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    "python": LanguageFacts(
        has_hash_comments=True,
        has_all_links=True,
        maps_module_roots=True,
        unparsed_users=frozenset({"cython"}),
        called_methods=r"__\w+__",
    ),
}
