"""Exported names in languages whose modules list them."""

from __future__ import annotations

import msgspec

from codebatch_workers.symbols.imported_names import LocalImport

ALL_NAMES = "*"
DEFAULT_NAME = "default"
WHOLE_MODULE = "="
"""The exported name for `export = x` and `module.exports = x`."""


class ModuleExport(msgspec.Struct, frozen=True):
    """A name that a module exports: from a local name, or from the name `member` of another module.

    If the name is ALL_NAMES, the module exports all names of another module, or unknown names if `module` is empty. If
    the member is ALL_NAMES, the name is the other module itself. If neither a local name nor a module is set, the value
    is unknown.
    """

    name: str
    local: str = ""
    module: str = ""
    member: str = ""


class FileExports(msgspec.Struct, frozen=True):
    """The imports of a file in text order, and its exports."""

    imports: tuple[LocalImport, ...] = ()
    exports: tuple[ModuleExport, ...] = ()
