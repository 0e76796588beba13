"""Files and directories that a question is restricted to, as a command line names them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from codebatch.model.text.displayed_paths import paths_shown_as
from codebatch.operations import Note
from codebatch.operations.queries.batch_query import candidates_of, try_find_item, unknown_path
from codebatch.query.filters.paths import is_pattern, text_of_path
from codebatch.query.sources.records import BatchRecords


def find_paths(records: BatchRecords, given: Sequence[str], note: Note) -> tuple[str, ...]:
    """Return what asks for the files and directories that are named, as PathFilter takes it.

    A path is seen from the current directory, or is as the project has it, as in `find_item`. A pattern that names no
    file stays as it is. Raises InvalidInput for a path at and below which the batch has no file.
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
    """Return the first directory with files that a path may name; that of the whole project is empty."""
    files = [entry.path for entry in records.items]
    for given in (path, *paths_shown_as(path)):
        for candidate in candidates_of(records, given):
            directory = b"" if candidate == b"." else candidate.rstrip(b"/")
            top = directory + b"/" if directory else b""
            at = bisect_left(files, top)
            if at < len(files) and files[at].startswith(top):
                return directory
    return None
