"""What `[tasks.parse]` may say."""

from __future__ import annotations

import msgspec


class ParseConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`emit_ast` stores every file's syntax tree as an object: some fifty times the bytes of the source."""

    emit_ast: bool = False
