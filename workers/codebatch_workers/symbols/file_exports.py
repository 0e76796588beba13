"""The types of imported and exported names in languages whose modules declare both."""

from __future__ import annotations

import msgspec

ALL_NAMES = "*"
DEFAULT_NAME = "default"
WHOLE_MODULE = "="
"""The exported name for `export = x` and `module.exports = x`."""


class ModuleImport(msgspec.Struct, frozen=True):
    """A local name that an import binds at the offset `start`.

    `member` is the name in the module, ALL_NAMES for the module itself, or DEFAULT_NAME. If `module` is empty, `member`
    is a chain of names in the same file: `import a = b.c`.
    """

    local: str
    module: str
    member: str
    line: int
    start: int


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

    imports: tuple[ModuleImport, ...] = ()
    exports: tuple[ModuleExport, ...] = ()
