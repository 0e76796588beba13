"""Ruby."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    "ruby": LanguageFacts(
        has_hash_comments=True,
        has_all_links=True,
        has_implicit_imports=True,
        merges_declarations=True,
        unparsed_users=frozenset({"erb"}),
        indirect_bases=r"\b(?:new|include|extend|prepend|refine|DelegateClass)\b\W.*\bNAME\b",
        called_methods=r"initialize|\w+_missing\??|inherited|included|extended|prepended|method_added|to_\w+|each|call"
        r"|coerce|hash|eql\?|inspect|\W+",
    ),
}
