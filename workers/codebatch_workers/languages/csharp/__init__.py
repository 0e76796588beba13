"""C#."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    "csharp": LanguageFacts(
        has_all_links=True,
        has_implicit_imports=True,
        merges_declarations=True,
        attribute_ending="Attribute",
        hides_fields=True,
        unparsed_users=frozenset({"fsharp", "vb"}),
        called_methods="Main|Dispose|DisposeAsync|ToString|Equals|GetHashCode|GetEnumerator|MoveNext|Deconstruct"
        "|CompareTo|Add",
    ),
}
