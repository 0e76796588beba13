"""The lines of functions: `analyze` says where each begins, `symbols` where it ends; without a name, `analyze` too."""

from __future__ import annotations

from typing import NamedTuple

from codebatch.query.sources.records import BatchRecords


class FunctionLocation(NamedTuple):
    """A function by its file, its qualified name and the line where it begins."""

    path: bytes
    symbol: str
    line: int


class FunctionLines:
    """Where functions end. Every file that is asked for takes one frame."""

    def __init__(self, records: BatchRecords) -> None:
        self._records = records
        self._ends: dict[bytes, dict[tuple[object, object], int]] = {}

    def end_of(self, place: FunctionLocation) -> int | None:
        """The line behind a function; None if `symbols` does not have it. Raises StoreCorrupt."""
        if place.path not in self._ends:
            self._ends[place.path] = self._read(place.path)
        return self._ends[place.path].get((place.symbol, place.line))

    def _read(self, path: bytes) -> dict[tuple[object, object], int]:
        ends: dict[tuple[object, object], int] = {}
        item = self._records.find_items([path]).get(path)
        for task in {"analyze", "symbols"} & {*self._records.task_names}:
            for each in [] if item is None else self._records.item_records(task, item) or []:
                name = each.get("symbol") if each["kind"] == "metric" else each.get("qualified")
                end = each.get("end_line")
                if each["kind"] in ("metric", "symbol") and each.get("symbol_type") != "macro" and isinstance(end, int):
                    # What ends before the first column of a line does not have that line.
                    ends[name, each.get("line", 1)] = end + (each.get("end_column") != 1)
        return ends
