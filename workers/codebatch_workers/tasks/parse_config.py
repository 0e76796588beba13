"""The configuration `[tasks.parse]`."""

from __future__ import annotations

import msgspec


class ParseConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of `parse`.

    `emit_ast` stores the syntax tree of each file as an object, about 50 times its source.
    """

    emit_ast: bool = False
