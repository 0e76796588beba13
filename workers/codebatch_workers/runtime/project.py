"""The project of a batch: what project tasks are given (api/project.py), out of the plan, registers and objects."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

import msgspec

from codebatch.engine.ledger import Ledger
from codebatch.model.entry import Entry, path_from_fields
from codebatch.model.plan import Plan
from codebatch.model.record import Located, Record
from codebatch.store.outcomes import Outcomes
from codebatch_workers.syntax.source import SourceFile

_decoder = msgspec.json.Decoder(Record)


class BatchProject:
    """A `Project` over what the registers say."""

    def __init__(
        self,
        plan: Plan,
        items: Sequence[Entry],
        ledger: Ledger,
        outcomes: Outcomes,
        *,
        read: Callable[[Entry], bytes],
        needs: Collection[str],
        contexts: Collection[str] = (),
        outside: Sequence[Entry] = (),
    ) -> None:
        """`read` gives the content of a file; `needs` are the tasks whose records may be asked for; `contexts` those
        that sources have.
        """
        self.files = items
        self.outside = outside
        self._plan = plan
        self._ledger = ledger
        self._outcomes = outcomes
        self._read = read
        self._needs = needs
        self._contexts = contexts

    def records(self, task: str, *kinds: str, holding: str = "") -> Iterator[tuple[Entry, list[Record]]]:
        """See `Project.records`."""
        if task not in self._needs:
            raise ValueError(f"the task does not need {task!r}")
        prefixes = tuple(b'{"kind":"%s"' % kind.encode() for kind in kinds) or (b"",)
        text = holding.encode("utf-8") or (prefixes[0] if len(prefixes) == 1 else b"")
        for shard in self._plan.shards:
            for link in self._ledger.walk(shard.id, task):
                if kinds and not any(kind in link.outcome.counts.kinds for kind in kinds):
                    continue
                lines, bounds = self._outcomes.read_items(link.segment, link.outcome)
                places = [place for place in _lines_holding(lines, text) if lines.startswith(prefixes, place[0])]
                found: dict[int, list[Record]] = {}
                for (start, _), record in zip(
                    places, _decoder.decode_lines(b"".join([lines[start:end] for start, end in places])), strict=True
                ):
                    found.setdefault(bisect_right(bounds, start) - 1, []).append(record)
                for item, records in found.items():
                    yield self.files[shard.start + link.start + item], records

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """See `Project.records_of`."""
        if task not in self._needs:
            raise ValueError(f"the task does not need {task!r}")
        item = self.place_of(file.path)
        shard = self._plan.shards[bisect_right(self._plan.shards, item, key=lambda each: each.start) - 1]
        item -= shard.start
        (link,) = (link for link in self._ledger.walk(shard.id, task) if link.start <= item < link.end)
        return decode_kinds(self._outcomes.read_item(link.segment, link.outcome, item - link.start), kinds)

    def find(self, path: bytes) -> Entry | None:
        """The file at a path, also one outside."""
        place = self._places.get(path)
        return self._elsewhere.get(path) if place is None else self.files[place]

    def read(self, file: Entry) -> bytes:
        """The content of a file. Raises ObjectMissing."""
        return self._read(file)

    def source(self, file: Entry) -> SourceFile:
        """A file of the batch as tasks of file scope see it. Raises ValueError for any other, or ObjectMissing."""
        every = self._plan.context_of(self.place_of(file.path))
        contexts = {name: value for name, value in every.items() if name in self._contexts}
        return SourceFile(file.path, self._read(file), executable=file.executable, contexts=contexts)

    def item_of(self, record: Located) -> int:
        """The item that a record speaks of. Raises ValueError where there is no such file."""
        return self.place_of(path_from_fields(record.path, record.path_b64))

    def place_of(self, path: bytes) -> int:
        """The item at a path. Raises ValueError where there is none."""
        place = self._places.get(path)
        if place is None:
            what = "lies outside of what the batch is of" if path in self._elsewhere else "is no file of the snapshot"
            raise ValueError(f"{path!r} {what}")
        return place

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {entry.path: place for place, entry in enumerate(self.files)}

    @cached_property
    def _elsewhere(self) -> dict[bytes, Entry]:
        return {entry.path: entry for entry in self.outside}


def decode_kinds(lines: bytes, kinds: Collection[str]) -> list[Record]:
    """The records of some lines; only those of some kinds where any are named."""
    prefixes = tuple(b'{"kind":"%s"' % kind.encode() for kind in kinds) or (b"",)
    return _decoder.decode_lines(
        b"".join(line for line in lines.splitlines(keepends=True) if line.startswith(prefixes))
    )


def _lines_holding(lines: bytes, text: bytes) -> Iterator[tuple[int, int]]:
    """Where those of some lines begin and end that hold a text, without a look at the others one by one."""
    at = lines.find(text)
    while 0 <= at < len(lines):
        end = lines.index(b"\n", at) + 1
        yield lines.rfind(b"\n", 0, at) + 1, end
        at = lines.find(text, end)
