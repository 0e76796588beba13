"""Detection of functions with unreliable metrics in partially parsed files.

If the parser misreads a brace, a function may include all code up to the end of the file. The parser may also take a
macro for a function. It reports neither error. A function is suspect in two cases:

- No definition starts at the first line of the function.
- The definition extends to the end of the file, although an earlier line has a closing brace with the indentation of
  its first line.
"""

from __future__ import annotations

import msgspec

from codebatch.errors import CodebatchError
from codebatch.query.fields import JsonRecord
from codebatch.query.sources.parsed_files import PARTIAL_PARSE_STATES
from codebatch.query.sources.records import BatchRecords


class _FileDefinitions(msgspec.Struct, frozen=True):
    """The definitions in a partially parsed file.

    `ends` maps name and line to the end line. `lines` is the number of lines of the file.
    """

    ends: dict[tuple[object, object], int]
    lines: int


class PartialParseCheck:
    """A check of functions for unreliable metrics.

    It reads records of two tasks for each new file, so it should be used for few functions only.
    """

    def __init__(self, records: BatchRecords) -> None:
        self._records = records
        self._definitions: dict[bytes, _FileDefinitions | None] = {}

    def is_doubtful(self, path: bytes, symbol: str, line: int) -> bool:
        """Return whether the metrics of a function may include other code. Raises StoreCorrupt."""
        if path not in self._definitions:
            self._definitions[path] = self._read_definitions(path)
        definitions = self._definitions[path]
        if definitions is None:
            return False
        end = definitions.ends.get((symbol, line))
        return end is None or (end >= definitions.lines and not self._ends_with_its_brace(path, line))

    def _ends_with_its_brace(self, path: bytes, line: int) -> bool:
        """Return whether a function ends correctly at the end of its file.

        This is true if the first closing brace with the indentation of the function's first line is on the last line.
        """
        entry = self._records.snapshot.entry(path)
        try:
            content = b"" if entry is None else self._records.read_object(entry)
        except CodebatchError:
            return False
        first, *following = content.rstrip().split(b"\n")[line - 1 :] or [b""]
        brace = first[: len(first) - len(first.lstrip())] + b"}"
        return (
            next((index for index in range(len(following)) if following[index].startswith(brace)), -1)
            == len(following) - 1
            >= 0
        )

    def _read_definitions(self, path: bytes) -> _FileDefinitions | None:
        """Return the definitions of a file. Return None if it is fully parsed, or if its parse state is unknown."""
        if not {"parse", "symbols"} <= {*self._records.task_names}:
            return None
        item = self._records.find_items([path]).get(path)
        if item is None:
            return None
        files = [record for record in self._item_records("parse", item) if record["kind"] == "file"]
        if not files or files[0].get("parse") not in PARTIAL_PARSE_STATES:
            return None
        ends: dict[tuple[object, object], int] = {}
        for record in self._item_records("symbols", item):
            end = record.get("end_line")
            if record["kind"] == "symbol" and record.get("symbol_type") != "macro" and isinstance(end, int):
                ends[record.get("qualified"), record.get("line")] = end
        lines = files[0].get("lines")
        return _FileDefinitions(ends, lines if isinstance(lines, int) else 0)

    def _item_records(self, task: str, item: int) -> list[JsonRecord]:
        return self._records.item_records(task, item) or []
