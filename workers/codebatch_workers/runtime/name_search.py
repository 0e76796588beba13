"""Occurrences of a name in files. This module imports no rules, so it loads fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.task import JsonValue
from codebatch_workers.symbols.occurrences.references import find_references, may_contain_name
from codebatch_workers.syntax.source import SourceFile


def references_in(
    name: str,
    path: bytes,
    content: bytes,
    contexts: Mapping[str, bytes],
    calls: Sequence[tuple[int, str, str]] | None = None,
) -> list[dict[str, JsonValue]]:
    """Return the occurrences of a name in a file (symbols/occurrences).

    `calls` are the calls of the name in the stored records of the file, or None if no records are available (calls.py).
    """
    if not may_contain_name(name, path, content):
        return []
    return list(find_references(SourceFile(path, content, executable=False, contexts=contexts), name, calls))
