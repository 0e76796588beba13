"""Occurrences of a name in files. This module imports no rules, so it loads fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.task import JsonValue
from codebatch_workers.symbols.references import find_references
from codebatch_workers.syntax.language.encodings import WIDE_MARKS
from codebatch_workers.syntax.source import NOTEBOOK_ENDING, SourceFile


def references_in(
    name: str,
    path: bytes,
    content: bytes,
    contexts: Mapping[str, bytes],
    calls: Sequence[tuple[int, str, str]] | None = None,
) -> list[dict[str, JsonValue]]:
    """Return the occurrences of a name in a file (references.py).

    `calls` are the calls of the name in the stored records of the file, or None if no records are available (calls.py).
    """
    is_escaped = content.startswith(WIDE_MARKS) or path.endswith(NOTEBOOK_ENDING)
    if name.isascii() and not is_escaped and name.encode() not in content:
        return []  # Most files without the name are skipped here, without being decoded.
    return list(find_references(SourceFile(path, content, executable=False, contexts=contexts), name, calls))
