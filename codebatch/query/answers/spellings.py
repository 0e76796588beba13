"""Other spellings of a name in languages that compare names without case."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cached_property

from codebatch.errors import ObjectMissing
from codebatch.index.words import has_lower_words
from codebatch.model.entry import Entry
from codebatch.plugins.worker_services import fact_services
from codebatch.query.sources.records import BatchRecords


class Spellings:
    """The search for spellings of names in the files of a batch."""

    def __init__(self, records: BatchRecords) -> None:
        self._records = records

    def others(self, name: str, languages: Collection[str]) -> tuple[str, ...]:
        """Return the other spellings of a name that is defined in some languages, sorted. Raises StoreCorrupt."""
        if not any(fact_services().language_facts(language).ignores_case for language in languages):
            return ()
        indexed = {entry.path: entry for _, entry in self._records.items_with_name(name.lower())}
        searched = [entry for path, entry in indexed.items() if path in self._paths_without_case]
        searched += [entry for entry in self._unindexed if entry.path not in indexed]
        return self._find(name, searched)

    def of_undefined(self, name: str) -> tuple[str, ...]:
        """Like `others`, for a name without a definition, in the files whose names show their language."""
        entries = [entry for _, entry in self._records.items_with_name(name.lower())]
        return self._find(name, [entry for entry in entries if has_lower_words(entry.path)])

    def _find(self, name: str, searched: Iterable[Entry]) -> tuple[str, ...]:
        spelled = re.compile(rb"(?<![A-Za-z0-9_])%b(?![A-Za-z0-9_])" % re.escape(name.encode()), re.IGNORECASE)
        found = set[bytes]()
        for entry in searched:
            try:
                found.update(spelled.findall(self._records.read_object(entry)))
            except ObjectMissing:
                continue  # The search for each spelling notes that the content is missing.
        return tuple(sorted({text.decode() for text in found} - {name}))

    @cached_property
    def _paths_without_case(self) -> frozenset[bytes]:
        facts = fact_services().language_facts
        return frozenset(file.path_bytes for file in self._records.files if facts(file.lang).ignores_case)

    @cached_property
    def _unindexed(self) -> list[Entry]:
        """The files whose words the index does not have in lower case."""
        paths = {path for path in self._paths_without_case if not has_lower_words(path)}
        return [entry for entry in self._records.items if entry.path in paths] if paths else []
