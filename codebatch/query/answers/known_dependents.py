"""Whether the known dependents of a file are complete, by its language and the languages of the batch."""

from __future__ import annotations

from collections.abc import Iterable, Set

from codebatch.plugins.worker_services import fact_services
from codebatch.query.sources.parsed_files import ParsedFile


def has_all_dependents(language: str, unparsed: Set[str]) -> bool:
    """Return whether the known dependents of a file are complete, because all uses of other files are resolved.

    `unparsed` are the languages of the batch's files without a grammar.
    """
    return fact_services().language_facts(language).has_all_links and not has_hidden_dependents(language, unparsed)


def has_hidden_dependents(language: str, unparsed: Set[str]) -> bool:
    """Return whether files without a grammar can use a file in a language, or uses of such files are not resolved."""
    facts = fact_services().language_facts(language)
    return bool(facts.unlinked_title) or not facts.unparsed_users.isdisjoint(unparsed)


def unparsed_languages(files: Iterable[ParsedFile]) -> frozenset[str]:
    """Return the languages of files without a grammar."""
    return frozenset(file.lang for file in files if file.parse == "unsupported")
