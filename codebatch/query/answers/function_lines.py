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

    The first request for a file reads the records of `analyze` and `symbols` for the file.
    """

    def __init__(self, records: BatchRecords) -> None:
        self._records = records
        self._ends: dict[bytes, dict[tuple[object, object], int]] = {}

    def function_end(self, place: FunctionLocation) -> int | None:
        """Return the number of the line after the end of a function, or None if it is unknown. Raises StoreCorrupt."""
        if place.path not in self._ends:
            self._ends[place.path] = self._read_function_ends(place.path)
        return self._ends[place.path].get((place.symbol, place.line))

    def _read_function_ends(self, path: bytes) -> dict[tuple[object, object], int]:
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
                    # The end is exclusive. So if it is in column 1, the last line of the function is the line before.
                    ends[name, record.get("line", 1)] = end + (record.get("end_column") != 1)
        return ends
