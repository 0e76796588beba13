"""The type of the outline of a file."""

from __future__ import annotations

import msgspec

from codebatch.model.record import Edge, Symbol


class FileOutline(msgspec.Struct, frozen=True):
    """The symbols of a file and its edges, each sorted by position."""

    symbols: list[Symbol]
    edges: list[Edge]
