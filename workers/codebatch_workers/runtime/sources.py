"""Loading of files of the snapshot as the `SourceFile` objects that file tasks get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry
from codebatch_workers.runtime.results import TaskFailure
from codebatch_workers.syntax.source import SourceFile

# The maximum number and total size of files that are read ahead.
_READ_AHEAD_ITEMS = 32
_READ_AHEAD_BYTES = 1024 * 1024


def load_source(
    entry: Entry, read: Callable[[Entry], bytes], contexts: Mapping[str, bytes]
) -> SourceFile | TaskFailure:
    """Return a file of the snapshot with its content. If the object with its content is missing, return a failure."""
    try:
        content = read(entry)
    except ObjectMissing as error:
        return TaskFailure(reason="object", evidence=error.message)
    return SourceFile(path=entry.path, content=content, executable=entry.executable, contexts=contexts)


def iter_sources(
    entries: Iterable[tuple[Entry, Mapping[str, bytes]]], read: Callable[[Entry], bytes]
) -> Iterator[SourceFile | TaskFailure]:
    """Yield the result of `load_source` for each entry. Files are read in groups.

    A large file can be a group of its own. Groups are faster than single files. Parsing evicts the code that reads
    files from the CPU caches, and a group loads this code only once.
    """
    loaded: list[SourceFile | TaskFailure] = []
    size = 0
    for entry, contexts in entries:
        if loaded and (len(loaded) == _READ_AHEAD_ITEMS or size + entry.size > _READ_AHEAD_BYTES):
            yield from loaded
            loaded, size = [], 0
        loaded.append(load_source(entry, read, contexts))
        size += entry.size
    yield from loaded
