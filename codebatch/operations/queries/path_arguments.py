"""Conversion of path arguments of the command line to paths of the project."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from codebatch.model.text.displayed_paths import paths_displayed_as
from codebatch.operations import NoteCallback
from codebatch.operations.queries.batch_query import path_candidates, try_find_item, unknown_path_error
from codebatch.query.filters.paths import exact_path_pattern, is_pattern
from codebatch.query.sources.records import BatchRecords


def find_paths(records: BatchRecords, arguments: Sequence[str], note: NoteCallback) -> tuple[str, ...]:
    """Return path filters that select the named files and directories.

    A path is relative to the current directory or to the project, as in `find_item`. A pattern that names no file is
    returned unchanged. Raises InvalidInput for a path if the batch has no file at or below it.
    """
    return tuple(_find_path(records, path, note) for path in arguments)


def _find_path(records: BatchRecords, path: str, note: NoteCallback) -> str:
    file = try_find_item(records, path, note)
    if file is not None:
        return exact_path_pattern(file[0])
    directory = _find_directory(records, path)
    if directory is not None:
        return exact_path_pattern(directory)
    if is_pattern(path):
        return path
    raise unknown_path_error(records, path, "no file in")


def _find_directory(records: BatchRecords, path: str) -> bytes | None:
    """Return the first existing directory to which a path may refer, or None.

    The project directory is an empty path.
    """
    files = [entry.path for entry in records.items]
    for spelling in (path, *paths_displayed_as(path)):
        for candidate in path_candidates(records, spelling):
            directory = b"" if candidate == b"." else candidate.rstrip(b"/")
            top = directory + b"/" if directory else b""
            index = bisect_left(files, top)
            if index < len(files) and files[index].startswith(top):
                return directory
    return None
