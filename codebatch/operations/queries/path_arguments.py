"""Conversion of path arguments of the command line to paths of the project."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from codebatch.model.text.displayed_paths import paths_shown_as
from codebatch.operations import Note
from codebatch.operations.queries.batch_query import candidates_of, try_find_item, unknown_path
from codebatch.query.filters.paths import is_pattern, text_of_path
from codebatch.query.sources.records import BatchRecords


def find_paths(records: BatchRecords, given: Sequence[str], note: Note) -> tuple[str, ...]:
    """Return path filters that select the named files and directories.

    A path is relative to the current directory or to the project, as in `find_item`. A pattern that names no file is
    returned unchanged. Raises InvalidInput for a path if the batch has no file at or below it.
    """
    return tuple(_find_path(records, path, note) for path in given)


def _find_path(records: BatchRecords, path: str, note: Note) -> str:
    file = try_find_item(records, path, note)
    if file is not None:
        return text_of_path(file[0])
    directory = _find_directory(records, path)
    if directory is not None:
        return text_of_path(directory)
    if is_pattern(path):
        return path
    raise unknown_path(records, path, "no file in")


def _find_directory(records: BatchRecords, path: str) -> bytes | None:
    """Return the first existing directory that a path may mean, or None. The project directory is an empty path."""
    files = [entry.path for entry in records.items]
    for given in (path, *paths_shown_as(path)):
        for candidate in candidates_of(records, given):
            directory = b"" if candidate == b"." else candidate.rstrip(b"/")
            top = directory + b"/" if directory else b""
            index = bisect_left(files, top)
            if index < len(files) and files[index].startswith(top):
                return directory
    return None
