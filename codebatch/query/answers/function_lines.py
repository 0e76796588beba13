"""The end lines of functions, from the tasks `analyze` and `symbols`."""

from __future__ import annotations

from typing import NamedTuple

from codebatch.query.sources.records import BatchRecords


class FunctionLocation(NamedTuple):
    """The location of a function: its file, its qualified name and its first line."""

    path: bytes
    symbol: str
    line: int


class FunctionLines:
    """The end lines of functions.

    The first query for a file reads one frame for each of the tasks.
    """

    def __init__(self, records: BatchRecords) -> None:
        self._records = records
        self._ends: dict[bytes, dict[tuple[object, object], int]] = {}

    def function_end(self, place: FunctionLocation) -> int | None:
        """Return the number of the line after a function, or None if it is unknown. Raises StoreCorrupt."""
        if place.path not in self._ends:
            self._ends[place.path] = self._read(place.path)
        return self._ends[place.path].get((place.symbol, place.line))

    def _read(self, path: bytes) -> dict[tuple[object, object], int]:
        ends: dict[tuple[object, object], int] = {}
        item = self._records.find_items([path]).get(path)
        for task in {"analyze", "symbols"} & {*self._records.task_names}:
            for record in [] if item is None else self._records.item_records(task, item) or []:
                name = record.get("symbol") if record["kind"] == "metric" else record.get("qualified")
                end = record.get("end_line")
                if (
                    record["kind"] in ("metric", "symbol")
                    and record.get("symbol_type") != "macro"
                    and isinstance(end, int)
                ):
                    # If the end is in column 1, the function does not include the line of its end.
                    ends[name, record.get("line", 1)] = end + (record.get("end_column") != 1)
        return ends
