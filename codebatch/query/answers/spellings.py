"""Other spellings of a name in languages that compare names without case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from functools import cached_property

from codebatch.errors import ObjectMissing
from codebatch.index.words import add_content_words
from codebatch.plugins.worker_services import fact_services
from codebatch.query.sources.records import BatchRecords


class Spellings:
    """The words of all files in languages that compare names without case. The files are read on first use."""

    def __init__(self, records: BatchRecords) -> None:
        self._records = records

    def others(self, name: str, languages: Collection[str]) -> tuple[str, ...]:
        """Return the other spellings of a name that is defined in some languages, sorted. Raises StoreCorrupt."""
        if not any(fact_services().language_facts(language).ignores_case for language in languages):
            return ()
        return tuple(sorted(self._words[name.lower()] - {name}))

    @cached_property
    def _words(self) -> defaultdict[str, set[str]]:
        language_facts = fact_services().language_facts
        paths = {file.path_bytes for file in self._records.files if language_facts(file.lang).ignores_case}
        words = set[bytes]()
        for entry in self._records.items:
            if entry.path in paths:
                try:
                    add_content_words(words, self._records.read_object(entry), in_notebook=False)
                except ObjectMissing:
                    continue  # The search for each spelling notes that the content is missing.
        by_lower = defaultdict[str, set[str]](set)
        for word in words:
            text = word.decode("latin-1")
            by_lower[text.lower()].add(text)
        return by_lower
