"""Asking a batch: which one answers, how complete its answer is, and whether its tree has changed since.

Every answer is an `Answer`: what was found, and what it rests on. Nobody who shows one may leave that out.
"""

from __future__ import annotations

import os
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from codebatch.errors import BatchIncomplete, InvalidInput, StoreError
from codebatch.model.entry import display_path
from codebatch.model.text.displayed_paths import paths_shown_as
from codebatch.model.text.suggestions import closest
from codebatch.operations import Note, TellPhase, ignore_note, ignore_phase
from codebatch.query.filters.arguments import path_of
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir, iter_batches
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store import StoreDir
from codebatch.store.ids import latest_offset

if TYPE_CHECKING:
    from codebatch.git.history import Head
    from codebatch.plugins.catalogue import TaskCatalogue
    from codebatch.query.answers.file_numbers import FileNumbers
    from codebatch.query.completeness import Completeness
    from codebatch.query.secondary_files import Apart, SecondaryFiles
    from codebatch.query.sources.records import BatchRecords
    from codebatch.snapshotting.changes import Changes
    from codebatch.system.processes.background_fork import BackgroundFork

Found = TypeVar("Found", covariant=True)

AHEAD_BYTES = range(1 << 18, 1 << 22)
"""Of a stat cache. Fewer tell of paths at which one looks in the time of making a process, more of so many that nobody
looks at them.
"""
NEAR_SHOWN_MAX = 5
"""Of the paths that may be meant where there is none of that name."""


class BatchQuery:
    """A batch that is asked something. `is_named`: it was asked for by an id, be it an old one.

    `beside` are files, as absolute paths, that stand for no change of the tree, for who asks writes them himself.
    """

    def __init__(self, store: StoreDir, batch: BatchDir, *, is_named: bool, note: Note) -> None:
        self.store = store
        self.batch = batch
        self.is_named = is_named
        self.note = note
        self.beside: tuple[bytes, ...] = ()
        self.tell_phase: TellPhase = ignore_phase
        self._ahead: BackgroundFork[Changes | None] | None = None
        self._apart: SecondaryFiles | None = None
        self._numbers: FileNumbers | None = None

    @cached_property
    def records(self) -> BatchRecords:
        """Its records."""
        from codebatch.query.sources.records import BatchRecords

        return BatchRecords(self.store, self.batch, self.note)

    @property
    def records_asked(self) -> BatchRecords | None:
        """Its records, None where nothing has been asked of them."""
        records: BatchRecords | None = vars(self).get("records")
        return records

    @property
    def apart(self) -> SecondaryFiles:
        """Which of its files stand apart: of a batch that is merged read once. Raises StoreCorrupt."""
        if self._apart is None or not self.records.source.is_done:
            from codebatch.query.secondary_files import SecondaryFiles

            kept = self.find_numbers()
            self._apart = SecondaryFiles(_read_apart(self.records) if kept is None else kept.apart)
        return self._apart

    def find_numbers(self, *, are_made: bool = False) -> FileNumbers | None:
        """What is kept of its files; where nothing is None, unless it is made. Raises StoreCorrupt."""
        if self._numbers is None:
            from codebatch.query.answers.file_numbers import keep_numbers, kept_numbers

            self._numbers = kept_numbers(self.records) or (keep_numbers(self.records) if are_made else None)
        return self._numbers

    @cached_property
    def catalogue(self) -> TaskCatalogue:
        """What the installed tasks give. Own tasks are not loaded for a question: they may give any kind."""
        from codebatch.plugins.isolated_tasks import isolated_catalogue

        return isolated_catalogue(imports=self.batch.about.imports)

    def look_ahead(self) -> None:
        """Begin to look for `changes` beside what is done here, in a tree of many files: who asks will be told."""
        name = self.batch.about.stat_cache
        if not layout.STAT_CACHE_PATTERN.match(name):
            return
        try:
            found = self.store.files.stat(self.store.root / layout.CACHE / name)
        except StoreError:  # As without one.
            return
        if found is not None and found.st_size in AHEAD_BYTES:
            from codebatch.system.processes.background_fork import BackgroundFork, has_other_processor

            self._ahead = BackgroundFork(self._find_changes) if has_other_processor() else None

    @cached_property
    def changes(self) -> Changes | None:
        """How the tree has changed since; None where that is not known, or the batch is knowingly an old one."""
        if self._ahead is None or self.beside:
            return self._find_changes()
        from codebatch.snapshotting.changes import Changes

        return self._ahead.wait(Changes | None)  # type: ignore[arg-type]

    def _find_changes(self) -> Changes | None:
        from codebatch.snapshotting.staleness import changes_since  # 5 ms that `-q` can do without

        about = self.batch.about
        if self.is_named:
            alike = (each for each in iter_batches(self.store) if each.about.place == about.place)
            if next(alike, self.batch).id != self.batch.id:
                return None
        return changes_since(self.store.files, self.store.root, about.stat_cache, about.snapshot_id, self.beside)

    @cached_property
    def newest_commit(self) -> Head | str:
        """The newest commit of the work tree that the batch was taken of; or why it is not known, for people."""
        from codebatch.operations.history.newest_commit import find_newest_commit

        return find_newest_commit(self.batch.about.sources)

    @property
    def is_stale(self) -> bool | None:
        """Whether the tree has changed since; None where that is not known."""
        return None if self.changes is None else self.changes.is_stale

    def find_batch_of(self, snapshot_id: str | None) -> BatchDir | None:
        """The latest batch over another snapshot of the same place, None where there is none."""
        as_now = (each for each in iter_batches(self.store) if each.about.snapshot_id == snapshot_id)
        return next((each for each in as_now if each.about.place == self.batch.about.place), None)


def _read_apart(records: BatchRecords) -> dict[bytes, Apart]:
    from codebatch.query.sources.parsed_files import files_apart  # 2 ms that none needs where it is kept

    return files_apart(records.files)


class Answer(Generic[Found]):
    """The answer to a question.

    - `found`: the content of the answer.
    - `question`: the question, and the batch that it was asked of.
    - `whole`: whether the answer is complete, and what is missing.

    Example:

        answer = store.batch("latest").impact("shop/prices.py")
        print(answer.is_complete, [each.path for each in answer.found.dependents])
    """

    def __init__(
        self, *, question: BatchQuery, found: Found, whole: Completeness, notes: tuple[str, ...] | None = None
    ) -> None:
        self.question = question
        self.found = found
        self.whole = whole
        self.notes = notes

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        return self.whole.is_complete

    @property
    def progress(self) -> str:
        """If the batch is running, a phrase to append to an answer, for example `of a running batch: 812 of 4,450
        files`.

        Otherwise empty.
        """
        return self.whole.progress

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """The error that describes what is missing, or None if the answer is complete."""
        if self.is_complete:
            return None
        batch, whole = self.question.batch, self.whole
        results = f"{whole.done - whole.failed - whole.lost:,} of {whole.planned:,} results"
        told = f"batch {batch.id} has {whole.percent}% of the data that this query needs ({results})"
        told = ", ".join(filter(None, (whole.progress, told)))
        hint = f"see: codebatch errors --batch {batch.id}"
        if whole.done < whole.planned:
            hint = f"resume it with: codebatch run --batch {batch.id}"
        elif whole.lacks_files:
            told = f"batch {batch.id} is restricted to {', '.join(shown_paths(batch))}, and this query needs all files"
            hint = "analyse all files with: codebatch run PATH"
        elif whole.unfollowed:
            told, _, hint = whole.unfollowed.partition("; ")
        return BatchIncomplete(told, hint=hint)


def ask(
    store: StoreDir, reference: str | None = None, note: Note = ignore_note, passed_over: Note | None = None
) -> BatchQuery:
    """Return a question for a batch, by default the latest that is of a whole project, if there is one.

    `passed_over` gets the notes of newer batches that are not asked; by default `note`. Raises InvalidId,
    UnknownId, AmbiguousId or StoreCorrupt.
    """
    batch = resolve_batch(store, reference, passed_over or note, whole=True)
    is_named = reference is not None and latest_offset(reference) != 0
    return BatchQuery(store, batch, is_named=is_named, note=note)


def check_reference(reference: object) -> None:
    """Raise InvalidInput if a reference to a batch is not text."""
    if not isinstance(reference, str):
        hint = "use the id of a batch, a unique prefix of the id, latest, latest~N or @NAME"
        raise InvalidInput(f"a batch must be given as str, not as {reference!r}", hint=hint)


def find_item(records: BatchRecords, path: str, note: Note) -> tuple[bytes, int]:
    """The item that a path names: as in the snapshot, or as seen from the current directory.

    Raises InvalidInput where it is neither, with the files whose paths end so, or the one whose name is most like it.
    """
    found = try_find_item(records, path, note)
    if found is None:
        raise unknown_path(records, path, "no file")
    return found


def unknown_path(records: BatchRecords, path: str, what: str) -> InvalidInput:
    """Return the error that there is `what` of a path, with the files that may be meant."""
    hint = f"see: codebatch files --batch {records.batch.id}"
    meant = _near([entry.path for entry in records.items], os.path.normpath(os.fsencode(path)))
    if len(meant) == 1:
        hint = f"did you mean {display_path(meant[0])!r}? {hint}"
    elif meant:
        shown = ", ".join(map(display_path, meant[:NEAR_SHOWN_MAX]))
        more = f" and {len(meant) - NEAR_SHOWN_MAX:,} more" if len(meant) > NEAR_SHOWN_MAX else ""
        hint = f"{len(meant):,} files match: {shown}{more}; {hint}"
    of = f", restricted to {', '.join(shown_paths(records.batch))}," if records.batch.about.paths else ""
    return InvalidInput(f"the batch{of} has {what} {path!r}", hint=hint)


def _near(paths: list[bytes], wanted: bytes) -> list[bytes]:
    """The paths that end so; where none does, those that end in the name that is most like the wanted one's."""
    found = [path for path in paths if path.endswith(b"/" + wanted)]
    name = os.path.basename(wanted)
    if found or not name:
        return found
    alike = {os.path.basename(path) for path in paths if os.path.basename(path)[:1] == name[:1]}
    close = closest(display_path(name), [display_path(each) for each in alike])
    found = [path for path in paths if display_path(os.path.basename(path)) == close]
    return sorted(found, key=lambda path: _shared_directories(path, wanted), reverse=True)


def _shared_directories(path: bytes, other: bytes) -> int:
    """How many of the innermost directories of two paths are called alike."""
    pairs = zip(path.split(b"/")[-2::-1], other.split(b"/")[-2::-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def try_find_item(records: BatchRecords, path: str, note: Note) -> tuple[bytes, int] | None:
    """As `find_item`, None where there is none.

    From the current directory first where it begins with `./` or `../`. Where it could be either, a note says which was
    taken. Where there is none of that name, one that people are shown so. Raises InvalidInput for what is no path.
    """
    path_of(path)
    for given in (path, *paths_shown_as(path)):
        items = records.find_items(dict.fromkeys(candidates_of(records, given)))
        if items:
            chosen, *others = items
            if others:
                ignored = display_path(others[0])
                note(f"using {display_path(chosen)} from the project; {ignored} exists too and is ignored")
            return chosen, items[chosen]
    return None


def candidates_of(records: BatchRecords, path: str) -> list[bytes]:
    """What a path may be called in the snapshot, what is meant first."""
    given = os.fsencode(path)
    candidates: list[bytes] = []
    parent, name = os.path.split(os.path.abspath(path))
    absolute = Path(os.path.realpath(parent), name)
    roots = [os.fsdecode(root) for root in records.batch.about.sources]
    for root in [*roots, os.path.commonpath(roots)] if roots else []:
        if absolute == Path(root) and not absolute.is_dir():
            candidates.append(os.fsencode(absolute.name))
        elif absolute.is_relative_to(root):
            candidates.append(os.fsencode(absolute.relative_to(root)))
    if given in (b".", b".."):
        return candidates
    in_snapshot = [given, os.path.normpath(given)]
    return candidates + in_snapshot if given.startswith((b"./", b"../")) else in_snapshot + candidates


def shown_paths(batch: BatchDir) -> tuple[str, ...]:
    """The paths that a batch is restricted to, for people."""
    return tuple(map(display_path, batch.about.paths))
