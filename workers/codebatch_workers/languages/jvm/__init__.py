"""Java, Kotlin and Scala."""

from __future__ import annotations

import re

from codebatch.model.analysis.language_facts import LanguageFacts, ReferenceFacts

_CALLED_METHODS = {
    "java": "readObject|writeObject|readResolve|writeReplace",
    "kotlin": r"constructor|invoke|get|set|plus|minus|times|div|rem|rangeTo|rangeUntil|contains|inc|dec|not|unary\w+"
    r"|\w+Assign|component\d+|getValue|setValue|provideDelegate|next|hasNext",
    "scala": r"apply|unapply|unapplySeq|update|map|flatMap|foreach|withFilter|\W+",
}
_INDIRECT_BASES = {
    "java": r"\bNAME\b.*(?:->|::\s*\w+\s*[;,)])",
    "kotlin": r"(?<!:)(?<!:\s)\bNAME\s*(?:<[^>]*>)?\s*\{",
    "scala": r"\b(?:given|derives)\b.*\bNAME\b",
}
_REFERENCES = {
    "java": ReferenceFacts(package_clause=re.compile(rb"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)),
}
FACTS = {
    language: LanguageFacts(
        has_all_links=True,
        has_implicit_imports=True,
        unparsed_users=frozenset({"clojure", "groovy"}),
        called_methods=f"main|toString|equals|hashCode|compareTo|iterator|close|finalize|{methods}",
        indirect_bases=_INDIRECT_BASES[language],
        hides_fields=language == "java",
        references=_REFERENCES.get(language),
    )
    for language, methods in _CALLED_METHODS.items()
}
