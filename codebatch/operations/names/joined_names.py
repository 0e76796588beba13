"""Names that a program joins at run time: `getattr(x, "do_" + y)`, `` this[`on${x}`] ``, and `do_##x` in a C macro."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch.errors import ObjectMissing
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.query.answers.search_coverage import Evidence, unsearched_evidence
from codebatch.query.sources.records import BatchRecords

_PARTS_MAX = 8
_PART_CHARACTERS_MIN = 3
_FILES_READ_MAX = 300
_PLACES_SHOWN = 10
_BOUNDARY = re.compile(r"(?<=[A-Za-z0-9]_)(?=[A-Za-z0-9])|(?<=[a-z0-9])(?=[A-Z])")
_DOCUMENT = re.compile(rb"\.(?:adoc|md|mdx|po|rst|tex|txt)\Z")
# The text around a part at the beginning of a name: quotes and an operator, or a placeholder.
_BEGINNING = rb"[\"'`:]%b(?:[\"'`]\s*(?:\+|\.\s*[\w$]|\.\.|<>|~|&)|\$|#?\{|\\\(|%%[sdv])|\b%b\s*##"
_END = rb"(?:(?:\+|\w\s*\.|\.\.|<>|~|&)\s*[\"'`]|[})]|%%[sdv]|##\s*)%b\b"


def find_joined_names(records: BatchRecords, name: str) -> tuple[Evidence, ...]:
    """Return the evidence of texts that a program joins with others to names like this one. Raises StoreCorrupt."""
    found = [_find(records, part, pattern) for part, pattern in _parts(name)]
    unsearched = set[bytes]().union(*(paths for _, paths in found))
    evidence = unsearched_evidence(
        len(unsearched), f"more file with a part of {name}", f"more files with parts of {name}"
    )
    places = [place for places_of_part, _ in found for place in places_of_part]
    if not places:
        return evidence
    text = count_text(
        len(places), "text that is joined to names can give it", "texts that are joined to names can give it"
    )
    return (Evidence(kind="string", count=len(places), text=text, places=tuple(places[:_PLACES_SHOWN])), *evidence)


def _parts(name: str) -> Iterator[tuple[str, re.Pattern[bytes]]]:
    """Yield the beginnings and ends of a name at the boundaries of its words, with patterns of their uses."""
    boundaries = [match.start() for match in _BOUNDARY.finditer(name)][: _PARTS_MAX // 2]
    for boundary in boundaries:
        has_underscore = name[boundary - 1] == "_"
        beginning, end = name[:boundary], name[boundary - 1 :] if has_underscore else ""
        if len(beginning.strip("_")) >= _PART_CHARACTERS_MIN - 1:
            encoded = re.escape(beginning.encode())
            yield beginning, re.compile(_BEGINNING % (encoded, encoded))
        if len(end.strip("_")) >= _PART_CHARACTERS_MIN:
            yield end, re.compile(_END % re.escape(end.encode()))


def _find(records: BatchRecords, part: str, pattern: re.Pattern[bytes]) -> tuple[list[str], set[bytes]]:
    """Return the places of a pattern, and the files with the part that were not searched."""
    entries = [entry for _, entry in records.items_with_name(part) if not _DOCUMENT.search(entry.path)]
    unsearched = {entry.path for entry in entries[_FILES_READ_MAX:]}
    places: list[str] = []
    for entry in entries[:_FILES_READ_MAX]:
        try:
            content = records.read_object(entry)
        except ObjectMissing:
            unsearched.add(entry.path)
            continue
        lines = (content.count(b"\n", 0, match.start()) + 1 for match in pattern.finditer(content))
        places += (f"{display_path(entry.path)}:{line}" for line in lines)
    return places, unsearched
