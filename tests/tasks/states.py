"""States of a tree in memory, as `duplicates` sees them: one as a project, an older one as what it may go on from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, path_from_fields
from codebatch.model.record import Fingerprints, Record
from codebatch_workers.api.before import Before, Change
from codebatch_workers.duplicates.fingerprints import fingerprints
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.duplicates import Duplicates

Result = dict[bytes, list[Record]]
Analyze = Callable[[SourceFile], Fingerprints | None]


class State:
    """A `Project` of some files, by path; `analyze` says of each its fingerprints."""

    outside: Sequence[Entry] = ()

    def __init__(self, sources: Iterable[SourceFile], analyze: Analyze = fingerprints) -> None:
        self._sources = {file.path: file for file in sources}
        self._analyze = analyze
        self.read_again: list[bytes] = []

    @cached_property
    def files(self) -> list[Entry]:
        return [
            Entry(path, "file", file.executable, len(file.content), Digest(hashlib.sha256(file.content).hexdigest()))
            for path, file in sorted(self._sources.items())
        ]

    @cached_property
    def said(self) -> dict[bytes, list[Record]]:
        """What `analyze` says of each file, of what is asked about here."""
        return {path: self._said(file) for path, file in sorted(self._sources.items())}

    def _said(self, file: SourceFile) -> list[Record]:
        record = self._analyze(file)
        return [] if record is None else [record]

    def records(self, task: str, *kinds: str, holding: str = "") -> Iterator[tuple[Entry, list[Record]]]:
        assert (task, holding) == ("analyze", "")
        for entry in self.files:
            found = _of_kinds(self.said[entry.path], kinds)
            if found:
                yield entry, found

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        assert task == "analyze"
        assert file in self.files
        return _of_kinds(self.said[file.path], kinds)

    def find(self, path: bytes) -> Entry | None:
        raise AssertionError("duplicates asks for no paths")

    def read(self, file: Entry) -> bytes:
        raise AssertionError("duplicates reads files as analyze did")

    def source(self, file: Entry) -> SourceFile:
        self.read_again.append(file.path)
        return self._sources[file.path]


def _of_kinds(records: Iterable[Record], kinds: Sequence[str]) -> list[Record]:
    return [record for record in records if record.__struct_config__.tag in kinds]


class Older:
    """A `Before`: what another state was."""

    def __init__(self, state: State, changes: Sequence[Change]) -> None:
        self.changes = changes
        self.records_of = state.records_of

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        raise AssertionError("duplicates needs not know what it said")

    def read(self, file: Entry) -> bytes:
        raise AssertionError("duplicates needs no old text")


def older(before: State, now: State) -> Before:
    """What differs between two states, by path; that `analyze` says another thing of a file means other contexts."""
    then, here = ({entry.path: entry for entry in state.files} for state in (before, now))
    changes = [Change(then.get(path), here.get(path)) for path in sorted({*then, *here})]
    return Older(
        before,
        [
            change
            for change in changes
            if change.before is None
            or change.now is None
            or change.before != change.now
            or before.said[change.now.path] != now.said[change.now.path]
        ],
    )


def whole(state: State) -> Result:
    """The records of each file that has any, of a whole run."""
    found: Result = {}
    for record in Duplicates().run_project(state):
        found.setdefault(path_from_fields(record.path, record.path_b64), []).append(record)
    return found


def patched(result: Mapping[bytes, list[Record]], before: State, now: State) -> Result | None:
    """A result that is taken from a state to another; None where it is to be made anew."""
    answer = Duplicates().update(now, older(before, now))
    if answer is None:
        return None
    assert [file for file, _ in answer] == sorted({file for file, _ in answer})
    assert {file for file, _ in answer} <= set(now.files)
    there = {entry.path for entry in now.files}
    after = {path: records for path, records in result.items() if path in there}
    after.update((file.path, records) for file, records in answer)
    return {path: after[path] for path in sorted(after) if after[path]}
