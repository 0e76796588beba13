"""Which file of a snapshot another program means by a path or a URI. What leads out of the tree means none."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from urllib.parse import unquote_to_bytes

from codebatch.model.text.displayed_paths import paths_shown_as

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FILE_URI = re.compile(r"file:(?://(?:localhost)?(?=/))?", re.IGNORECASE)


class Paths:
    """The files that are known, and where their tree lay for the program, empty where that is not known."""

    def __init__(self, known: Collection[bytes], root: bytes) -> None:
        self._known = known
        self._root = posixpath.normpath(root).rstrip(b"/") + b"/" if root else b""
        self._found: dict[tuple[str | bytes, bool], bytes | None] = {}

    def find(self, written: str | bytes, *, is_uri: bool) -> bytes | None:
        """The file that is meant, None where there is none."""
        key = written, is_uri
        if key not in self._found:
            given = [written] if isinstance(written, bytes) else _candidates(written, is_uri=is_uri)
            below = filter(None, map(self._below, given))
            self._found[key] = next((path for path in below if path in self._known), None)
        return self._found[key]

    def _below(self, path: bytes) -> bytes | None:
        """A path as the snapshot has it; None where it lies outside of the tree."""
        path = posixpath.normpath(path)
        if not path.startswith(b"/"):
            return path
        path = b"/" + path.lstrip(b"/")
        return path[len(self._root) :] if self._root and path.startswith(self._root) else None


def _candidates(written: str, *, is_uri: bool) -> Iterator[bytes]:
    """The paths that a text may stand for, the likeliest first."""
    if _FILE_URI.match(written):
        yield unquote_to_bytes(_FILE_URI.sub("", written, count=1).partition("#")[0])
        return
    if is_uri:
        if _SCHEME.match(written):
            return
        yield unquote_to_bytes(written)
    yield _bytes(written)
    yield from map(_bytes, paths_shown_as(written))
    if "\\" in written:
        yield _bytes(written.replace("\\", "/"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
