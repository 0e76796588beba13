"""Queries of a batch. They select the batch, return the completeness of answers, and detect changes of the source tree.

Every answer is an `Answer`, which has the content and its completeness. Code that displays an answer must display both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.text.displayed_paths import paths_displayed_as
from codebatch.model.text.suggestions import closest_word
from codebatch.operations import NoteCallback, PhaseCallback, ignore_note, ignore_phase
from codebatch.query.filters.arguments import path_argument
from codebatch.store.batches.batch_directory import BatchDir, iter_batches
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import latest_offset

if TYPE_CHECKING:
    from codebatch.git.history import HeadCommit
    from codebatch.plugins.catalogue import TaskCatalogue
    from codebatch.query.answers.search_coverage import SearchCoverage
    from codebatch.query.answers.unparsed_files import DoubtfulFile, WordMatches
    from codebatch.query.completeness import Completeness
    from codebatch.query.secondary_files import SecondaryFiles
    from codebatch.query.sources.records import BatchRecords
    from codebatch.snapshotting.changes import Changes

Found = TypeVar("Found", covariant=True)

SIMILAR_PATHS_SHOWN_MAX = 5
"""Maximum number of similar paths in the hint for an unknown path."""


class BatchQuery:
    """A query of one batch. `is_named` is set if the caller selected the batch by ID, so newer batches may exist.

    `ignored_paths` are absolute paths of files that the caller itself writes. Changes of these files do not make the
    batch stale.
    """

    def __init__(self, store: StoreDir, batch: BatchDir, *, is_named: bool, note: NoteCallback) -> None:
        self.store = store
        self.batch = batch
        self.is_named = is_named
        self.note = note
        self.ignored_paths: tuple[bytes, ...] = ()
        self.on_phase: PhaseCallback = ignore_phase
        self._secondary_files: SecondaryFiles | None = None

    @cached_property
    def records(self) -> BatchRecords:
        """The records of the batch."""
        from codebatch.query.sources.records import BatchRecords

        return BatchRecords(self.store, self.batch, self.note)

    @property
    def records_if_read(self) -> BatchRecords | None:
        """The records of the batch if they have already been opened, otherwise None."""
        records: BatchRecords | None = vars(self).get("records")
        return records

    @property
    def non_production_files(self) -> SecondaryFiles:
        """The batch's files that are not production code, by category. Raises StoreCorrupt.

        The result is cached if the outputs of the batch are merged.
        """
        if self._secondary_files is None or not self.records.source.is_done:
            from codebatch.query.secondary_files import SecondaryFiles
            from codebatch.query.sources.parsed_files import secondary_categories

            self._secondary_files = SecondaryFiles(secondary_categories(self.records.files))
        return self._secondary_files

    @property
    def secondary_files(self) -> SecondaryFiles:
        """The files that rankings leave out: the non-production files, or none if the project has only such files.

        Raises StoreCorrupt.
        """
        from codebatch.query.secondary_files import SecondaryFiles
        from codebatch.query.sources.parsed_files import file_states

        return self.non_production_files if file_states(self.records.files).plain else SecondaryFiles({})

    @cached_property
    def catalogue(self) -> TaskCatalogue:
        """The catalogue of the installed tasks.

        Custom tasks are not loaded for a query, so they may produce any record type.
        """
        from codebatch.plugins.isolated_tasks import isolated_catalogue

        return isolated_catalogue(imports=self.batch.about.imports)

    @cached_property
    def is_newest(self) -> bool:
        """Whether the question is about the present tree: the caller did not select an older batch by its ID."""
        if not self.is_named:
            return True
        place = self.batch.about.sources_and_paths
        batches = (batch for batch in iter_batches(self.store) if batch.about.sources_and_paths == place)
        return next(batches, self.batch).id == self.batch.id

    @cached_property
    def changes(self) -> Changes | None:
        """The changes of the source tree since the batch was made.

        None if they are unknown, or if the caller selected the batch by ID and a newer batch exists.
        """
        from codebatch.snapshotting.staleness import changes_since  # Deferred: not needed with `-q`.

        if not self.is_newest:
            return None
        about = self.batch.about
        return changes_since(self.store.files, self.store.root, about.stat_cache, about.snapshot_id, self.ignored_paths)

    @cached_property
    def newest_commit(self) -> HeadCommit | str:
        """The commit at HEAD of the batch's work tree, or the reason why it is unknown, as text for people."""
        from codebatch.operations.history.newest_commit import find_newest_commit

        return find_newest_commit(self.batch.about.sources)

    def read_coverage(
        self,
        words: Sequence[str],
        *,
        is_wanted: Callable[[bytes], bool] = lambda _: True,
        covered: Mapping[bytes, int] | None = None,
        matches: WordMatches | None = None,
    ) -> SearchCoverage:
        """Return the coverage of a search for some words that has no result. Raises StoreCorrupt.

        The arguments are those of SearchScope. Ignored files are searched, unless the caller selected an older batch.
        """
        # Deferred: answers with results need it not.
        from codebatch.query.answers.search_coverage import SearchScope, read_coverage

        scope = SearchScope(is_current=self.is_newest, is_wanted=is_wanted, covered=covered or {}, matches=matches)
        return read_coverage(self.records, words, scope)

    @property
    def is_stale(self) -> bool | None:
        """Whether the source tree has changed since the batch was made; None if unknown."""
        return None if self.changes is None else self.changes.is_stale

    def find_snapshot_batch(self, snapshot_id: str | None) -> BatchDir | None:
        """Return the latest batch of a snapshot that has the sources and paths of this batch, or None."""
        batches = (batch for batch in iter_batches(self.store) if batch.about.snapshot_id == snapshot_id)
        return next(
            (batch for batch in batches if batch.about.sources_and_paths == self.batch.about.sources_and_paths), None
        )


class Answer(Generic[Found]):
    """The answer to a query of a batch.

    - `result`: the requested data.
    - `question`: the query that was answered. `question.batch` is the batch.
    - `completeness`: how complete the answer is, and what is missing.
    - `notes`: for some queries, notes about files that were not analysed completely.
    - `coverage`: if a name or file has no result, the files that were searched, and evidence that it may have some.
    - `not_searched`: files in which the name may have further results, because they were not parsed completely.

    Example:

        answer = store.batch("latest").impact("shop/prices.py")
        print(answer.is_complete, [each.path for each in answer.result.dependents])
    """

    def __init__(
        self,
        *,
        question: BatchQuery,
        result: Found,
        completeness: Completeness,
        notes: tuple[str, ...] | None = None,
        coverage: SearchCoverage | None = None,
        not_searched: tuple[DoubtfulFile, ...] = (),
    ) -> None:
        self.question = question
        self.result = result
        self.completeness = completeness if coverage is None else completeness.with_doubt(coverage.doubt)
        self.notes = notes
        self.coverage = coverage
        self.not_searched = not_searched if coverage is None else coverage.doubtful

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        return self.completeness.is_complete

    @property
    def progress(self) -> str:
        """If the batch is running or was stopped, a phrase such as `812 of 4,450 files done`.

        Empty if the batch has ended or all needed results exist.
        """
        return self.completeness.progress

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """The error that describes what is missing, or None if the answer is complete."""
        if self.is_complete:
            return None
        batch, completeness = self.question.batch, self.completeness
        results = f"{completeness.done - completeness.failed - completeness.lost:,} of {completeness.planned:,} results"
        message = f"batch {batch.id} has {completeness.percent}% of the data that this query needs ({results})"
        message = ", ".join(filter(None, (completeness.progress, message)))
        hint = f"see: codebatch errors --batch {batch.id}"
        if completeness.done < completeness.planned:
            hint = f"resume it with: codebatch resume --batch {batch.id}"
        elif completeness.lacks_files:
            restriction = ", ".join(displayed_restriction(batch))
            message = f"batch {batch.id} is restricted to {restriction}, and this query needs all files"
            hint = "analyse all files with: codebatch run PATH"
        elif completeness.unfollowed:
            message, _, hint = completeness.unfollowed.partition("; ")
        elif completeness.doubt:
            message, hint = completeness.doubt, "the members `coverage` and `not_searched` of the answer have details"
        return BatchIncomplete(message, hint=hint)


def open_batch_query(
    store: StoreDir,
    reference: str | None = None,
    note: NoteCallback = ignore_note,
    on_skipped: NoteCallback | None = None,
) -> BatchQuery:
    """Return a query of a batch. The default is the latest batch that covers the whole project, if there is one.

    `on_skipped` receives notes about newer batches that are skipped; by default `note` receives them. Raises
    InvalidId, UnknownId, AmbiguousId or StoreCorrupt.
    """
    batch = resolve_batch(store, reference, on_skipped or note, is_unrestricted=True)
    is_named = reference is not None and latest_offset(reference) != 0
    return BatchQuery(store, batch, is_named=is_named, note=note)


def check_reference(reference: object) -> None:
    """Raise InvalidInput if a reference to a batch is not text."""
    if not isinstance(reference, str):
        hint = "use the id of a batch, a unique prefix of the id, latest, latest~N or @NAME"
        raise InvalidInput(f"a batch must be given as str, not as {reference!r}", hint=hint)


def find_item(records: BatchRecords, path: str, note: NoteCallback) -> tuple[bytes, int]:
    """Return the path and number of the item that `path` names, relative to the project or the current directory.

    If there is no such item, raises InvalidInput. The hint suggests files whose paths end with `path`, or with the most
    similar file name.
    """
    found_item = try_find_item(records, path, note)
    if found_item is None:
        raise unknown_path_error(records, path, "no file")
    return found_item


def unknown_path_error(records: BatchRecords, path: str, noun: str) -> InvalidInput:
    """Return the error for a path that the batch does not have, with similar paths as a hint.

    `noun` is the beginning of the message, for example "no file".
    """
    hint = f"see: codebatch files --batch {records.batch.id}"
    similar = _similar_paths([entry.path for entry in records.items], os.path.normpath(os.fsencode(path)))
    if len(similar) == 1:
        hint = f"did you mean {display_path(similar[0])!r}? {hint}"
    elif similar:
        similar_text = ", ".join(map(display_path, similar[:SIMILAR_PATHS_SHOWN_MAX]))
        more = f" and {len(similar) - SIMILAR_PATHS_SHOWN_MAX:,} more" if len(similar) > SIMILAR_PATHS_SHOWN_MAX else ""
        hint = f"{len(similar):,} files match: {similar_text}{more}; {hint}"
    restriction = (
        f", restricted to {', '.join(displayed_restriction(records.batch))}," if records.batch.about.paths else ""
    )
    return InvalidInput(f"the batch{restriction} has {noun} {path!r}", hint=hint)


def refuse_unknown_path(records: BatchRecords, name: str, noun: str, *, is_defined: bool = True) -> None:
    """Raise the error for an unknown path if a text can only be a path. The batch does not have this path.

    A text with the ending of a file counts as a path unless a definition has this name.
    """
    ending = os.path.splitext(name)[1]
    is_path = not name or "/" in name or any(character.isspace() for character in name)
    has_ending = not is_defined and any(entry.path.endswith(os.fsencode(ending)) for entry in records.items if ending)
    if is_path or has_ending:
        raise unknown_path_error(records, name, noun)


def _similar_paths(paths: list[bytes], target: bytes) -> list[bytes]:
    """Return the paths that end with `target`.

    If there are none, return the paths with the file name most similar to it.
    """
    similar = [path for path in paths if path.endswith(b"/" + target)]
    name = os.path.basename(target)
    if similar or not name:
        return similar
    names = {os.path.basename(path) for path in paths if os.path.basename(path)[:1] == name[:1]}
    closest_name = closest_word(display_path(name), [display_path(name) for name in names])
    similar = [path for path in paths if display_path(os.path.basename(path)) == closest_name]
    return sorted(similar, key=lambda path: _shared_directories(path, target), reverse=True)


def _shared_directories(path: bytes, other: bytes) -> int:
    """Return how many directory names two paths share, counted from their file names upwards."""
    pairs = zip(path.split(b"/")[-2::-1], other.split(b"/")[-2::-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def try_find_item(records: BatchRecords, path: str, note: NoteCallback) -> tuple[bytes, int] | None:
    """Like `find_item`, but return None if no item matches.

    A path that starts with `./` or `../` is first taken as relative to the user's directory, any other path as relative
    to the project. If both exist, a note names the chosen one. Paths in display form match too. Raises
    InvalidInput if the text is not a valid path.
    """
    path_argument(path)
    for spelling in (path, *paths_displayed_as(path)):
        items = records.find_items(dict.fromkeys(path_candidates(records, spelling)))
        if items:
            chosen, *other_items = items
            if other_items:
                ignored = display_path(other_items[0])
                note(f"the path matches several files: using {display_path(chosen)}, ignoring {ignored}")
            return chosen, items[chosen]
    return None


def path_candidates(records: BatchRecords, path: str) -> list[bytes]:
    """Return the paths in the snapshot to which a given path may refer, the most likely first."""
    path_bytes = os.fsencode(path)
    candidates: list[bytes] = []
    parent, name = os.path.split(os.path.abspath(os.path.join(records.store.user_directory, path)))
    absolute = Path(os.path.realpath(parent), name)
    roots = [os.fsdecode(root) for root in records.batch.about.sources]
    for root in [*roots, os.path.commonpath(roots)] if roots else []:
        if absolute == Path(root) and not absolute.is_dir():
            candidates.append(os.fsencode(absolute.name))
        elif absolute.is_relative_to(root):
            candidates.append(os.fsencode(absolute.relative_to(root)))
    if path_bytes in (b".", b".."):
        return candidates
    in_snapshot = [path_bytes, os.path.normpath(path_bytes)]
    return candidates + in_snapshot if path_bytes.startswith((b"./", b"../")) else in_snapshot + candidates


def displayed_restriction(batch: BatchDir) -> tuple[str, ...]:
    """Return the paths that a batch is restricted to, in display form."""
    return tuple(map(display_path, batch.about.paths))
