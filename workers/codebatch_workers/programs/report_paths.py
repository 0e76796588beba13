"""Mapping of paths and URIs in reports to files of a snapshot. A path outside the source tree is mapped to no file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from urllib.parse import unquote_to_bytes

from codebatch.model.text.displayed_paths import paths_displayed_as

_URI_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FILE_URI = re.compile(r"file:(?://(?:localhost)?(?=/))?", re.IGNORECASE)


class ReportedPaths:
    """The files of a snapshot by path, and the directory of the source tree on the machine that made the report.

    The directory is empty if it is unknown.
    """

    def __init__(self, known: Collection[bytes], root: bytes) -> None:
        self._known = known
        self._root = posixpath.normpath(root).rstrip(b"/") + b"/" if root else b""
        self._cache: dict[tuple[str | bytes, bool], bytes | None] = {}

    def find(self, written: str | bytes, *, is_uri: bool) -> bytes | None:
        """Return the path of the file that a path or URI denotes, or None if the snapshot does not have it."""
        key = written, is_uri
        if key not in self._cache:
            candidates = [written] if isinstance(written, bytes) else _candidate_paths(written, is_uri=is_uri)
            relative_paths = filter(None, map(self._relative_path, candidates))
            self._cache[key] = next((path for path in relative_paths if path in self._known), None)
        return self._cache[key]

    def _relative_path(self, path: bytes) -> bytes | None:
        """Return a path relative to the source tree. For an absolute path outside the tree, return None."""
        path = posixpath.normpath(path)
        if not path.startswith(b"/"):
            return path
        path = b"/" + path.lstrip(b"/")
        return path[len(self._root) :] if self._root and path.startswith(self._root) else None


def _candidate_paths(written: str, *, is_uri: bool) -> Iterator[bytes]:
    """Yield the paths that `written` may denote, the most likely first."""
    if _FILE_URI.match(written):
        yield unquote_to_bytes(_FILE_URI.sub("", written, count=1).partition("#")[0])
        return
    if is_uri:
        if _URI_SCHEME.match(written):
            return
        yield unquote_to_bytes(written)
    yield _encode_path(written)
    yield from map(_encode_path, paths_displayed_as(written))
    if "\\" in written:
        yield _encode_path(written.replace("\\", "/"))


def _encode_path(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
