"""Functions whose numbers are not to be believed, for their file was parsed in part.

Where a brace is not understood, a function may take in all that follows it, up to the end of the file, or a macro may
be taken for one. Nothing says where that happened, but it can be seen: no definition begins where the function does, or
its definition ends with the file, and not with the first brace that stands under its first line.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from codebatch.errors import CodebatchError
from codebatch.query.fields import JsonRecord
from codebatch.query.sources.parsed_files import IN_PART
from codebatch.query.sources.records import BatchRecords


class _Definitions(msgspec.Struct, frozen=True):
    """Of a file that was parsed in part where definitions end, and where it ends."""

    ends: dict[tuple[object, object], int]
    lines: int


class PartialParseCheck:
    """Asked of few functions: each file takes a frame of two tasks, or none where it is known not to be `in_part`."""

    def __init__(self, records: BatchRecords, in_part: Collection[bytes] | None) -> None:
        self._records = records
        self._in_part = in_part
        self._known: dict[bytes, _Definitions | None] = {}

    def is_doubtful(self, path: bytes, symbol: str, line: int) -> bool:
        """Whether what is said of a function may be of other code. Raises StoreCorrupt."""
        if path not in self._known:
            self._known[path] = self._look(path)
        definitions = self._known[path]
        if definitions is None:
            return False
        end = definitions.ends.get((symbol, line))
        return end is None or (end >= definitions.lines and not self._ends_with_its_brace(path, line))

    def _ends_with_its_brace(self, path: bytes, line: int) -> bool:
        """Whether the first closing brace under the first line of a function, equally indented, is on the last line."""
        entry = self._records.snapshot.entry(path)
        try:
            content = b"" if entry is None else self._records.read_object(entry)
        except CodebatchError:
            return False
        first, *others = content.rstrip().split(b"\n")[line - 1 :] or [b""]
        brace = first[: len(first) - len(first.lstrip())] + b"}"
        return next((each for each in range(len(others)) if others[each].startswith(brace)), -1) == len(others) - 1 >= 0

    def _look(self, path: bytes) -> _Definitions | None:
        """None where nothing is to be doubted, or it is not known."""
        if self._in_part is not None and path not in self._in_part:
            return None
        if not {"parse", "symbols"} <= {*self._records.task_names}:
            return None
        item = self._records.find_items([path]).get(path)
        if item is None:
            return None
        files = [each for each in self._said("parse", item) if each["kind"] == "file"]
        if not files or files[0].get("parse") not in IN_PART:
            return None
        ends: dict[tuple[object, object], int] = {}
        for each in self._said("symbols", item):
            end = each.get("end_line")
            if each["kind"] == "symbol" and each.get("symbol_type") != "macro" and isinstance(end, int):
                ends[each.get("qualified"), each.get("line")] = end
        lines = files[0].get("lines")
        return _Definitions(ends, lines if isinstance(lines, int) else 0)

    def _said(self, task: str, item: int) -> list[JsonRecord]:
        return self._records.item_records(task, item) or []
