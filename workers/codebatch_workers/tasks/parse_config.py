"""The configuration `[tasks.parse]`."""

from __future__ import annotations

import msgspec


class ParseConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of `parse`.

    If `emit_ast` is set, the syntax tree of each file is stored as an object, about 50 times as large as the source.
    """

    emit_ast: bool = False
