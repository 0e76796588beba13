"""Swift."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    "swift": LanguageFacts(
        has_all_links=True,
        has_implicit_imports=True,
        merges_declarations=True,
        is_native=True,
        unparsed_users=frozenset({"objective-c", "objective-cpp"}),
        called_methods="init|deinit|subscript|callAsFunction|dynamicallyCall|makeIterator|next|hash|main|description"
        r"|encode|\W.*",
    ),
}
