"""Selection of the files of a batch by path and language."""

from __future__ import annotations

from collections.abc import Callable, Collection

from codebatch.model.analysis.language_groups import unknown_languages, with_variants
from codebatch.query.filters.arguments import refuse_invalid_texts, refuse_unknown
from codebatch.query.filters.filters import path_bytes
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.sources.records import BatchRecords


def make_file_predicate(
    records: BatchRecords, path: PathPatterns, languages: Collection[str]
) -> Callable[[bytes], bool]:
    """Return a predicate that selects files by path and language. Raises InvalidInput."""
    refuse_invalid_texts(languages=languages)
    paths = PathFilter(path)
    if not languages:
        return paths.matches if path else lambda _: True
    languages_by_path = {
        path_bytes({"path": path_} if path_b64 is None else {"path_b64": path_b64}): language
        for (path_, path_b64), language in records.languages.items()
    }
    known = sorted(set(languages_by_path.values()))
    refuse_unknown("language in the batch", [*unknown_languages(languages, known)], known)
    searched = with_variants(languages)
    return lambda file: languages_by_path.get(file) in searched and paths.matches(file)
