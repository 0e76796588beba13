"""States of a tree in memory as project tasks see them: one as a project, an older one as the base of an update."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, path_from_fields
from codebatch.model.record import Fingerprints, Record
from codebatch_workers.api.before import Before, ChangedEntry
from codebatch_workers.api.protocols import IncrementalTask
from codebatch_workers.duplicates.fingerprints import make_fingerprints
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.duplicates import DuplicatesTask

Result = dict[bytes, list[Record]]
Analyze = Callable[[SourceFile], Fingerprints | None]


class State:
    """A `Project` of some files. `tasks` maps the tasks whose records it has to functions that return them for a file.

    `own` is the asking task's result for the state.
    """

    outside: Sequence[Entry] = ()
    symlinks: Sequence[Entry] = ()

    def __init__(
        self, sources: Iterable[SourceFile], tasks: Mapping[str, Callable[[SourceFile], list[Record]]]
    ) -> None:
        self.sources = {file.path: file for file in sources}
        self._tasks = tasks
        self.own: Result = {}
        self.read_again: list[bytes] = []

    @cached_property
    def files(self) -> list[Entry]:
        return [
            Entry(path, "file", file.executable, len(file.content), Digest(hashlib.sha256(file.content).hexdigest()))
            for path, file in sorted(self.sources.items())
        ]

    @cached_property
    def said(self) -> dict[str, Result]:
        """The records of each task for each file."""
        every = sorted(self.sources.items())
        return {task: {path: say(file) for path, file in every} for task, say in self._tasks.items()}

    def records(self, task: str, *kinds: str, holding: str = "") -> Iterator[tuple[Entry, list[Record]]]:
        for entry in self.files:
            if found := self.records_of(entry, task, *kinds):
                yield entry, found

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        assert file in self.files
        said = self.said[task][file.path]
        return [record for record in said if not kinds or record.__struct_config__.tag in kinds]

    def find(self, path: bytes) -> Entry | None:
        return next((file for file in self.files if file.path == path), None)

    def read(self, file: Entry) -> bytes:
        return self.sources[file.path].content

    def source(self, file: Entry) -> SourceFile:
        self.read_again.append(file.path)
        return self.sources[file.path]


def analyzed(sources: Iterable[SourceFile], analyze: Analyze = make_fingerprints) -> State:
    """Return a state as `duplicates` sees it. `analyze` returns the fingerprints of each file."""

    def say(file: SourceFile) -> list[Record]:
        record = analyze(file)
        return [] if record is None else [record]

    return State(sources, {"analyze": say})


class Older:
    """A `Before`: an older state."""

    def __init__(self, state: State, changes: Sequence[ChangedEntry]) -> None:
        self._state = state
        self.changes = changes
        self.records_of, self.read = state.records_of, state.read

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        return ((file, self._state.own[file.path]) for file in self._state.files if file.path in self._state.own)


def older(before: State, now: State) -> Before:
    """Return the older state with the changes between two states by path.

    If a task returns other records for an unchanged file, its contexts count as changed.
    """
    then, here = ({entry.path: entry for entry in state.files} for state in (before, now))
    return Older(
        before,
        [
            ChangedEntry(then.get(path), here.get(path))
            for path in sorted({*then, *here})
            if then.get(path) != here.get(path) or _is_other(before, now, path)
        ],
    )


def _is_other(before: State, now: State, path: bytes) -> bool:
    if before.sources[path].contexts != now.sources[path].contexts:
        return True
    return any(before.said[task][path] != now.said[task][path] for task in now.said)


def whole(state: State, task: Callable[[], IncrementalTask] = DuplicatesTask) -> Result:
    """Return the records of a full run by file. Files without records are left out."""
    found: Result = {}
    for record in task().run_project(state):
        found.setdefault(path_from_fields(record.path, record.path_b64), []).append(record)
    return found


def patched(
    result: Result, before: State, now: State, task: Callable[[], IncrementalTask] = DuplicatesTask
) -> Result | None:
    """Update a result from one state to another. Return None if the task must start over."""
    before.own = result
    found = task().update(now, older(before, now))
    if found is None:
        return None
    answer = list(found)
    named = [file for file, _ in answer]
    assert len(named) == len(set(named))
    assert set(named) <= set(now.files)
    there = {entry.path for entry in now.files}
    after = {path: records for path, records in result.items() if path in there}
    after.update((file.path, records) for file, records in answer)
    return {path: after[path] for path in sorted(after) if after[path]}
