"""The types of imported and exported names in languages whose modules declare both."""

from __future__ import annotations

import msgspec

ALL_NAMES = "*"
DEFAULT_NAME = "default"
WHOLE_MODULE = "="
"""The exported name for `export = x` and `module.exports = x`."""


class LocalImport(msgspec.Struct, frozen=True):
    """A name that an import binds. `target` is the target of the import as written, as in `imports` edges.

    `local` is empty if all names of the target are imported. It is a chain for Python's `import a.b`. `member` is the
    name that the import takes from the module `target`. It is `*` for the module itself, and empty if the target can be
    a module or a name in a module. In JavaScript, it is a name that the module exports (`ModuleExport`), or
    a chain of names in the same file if there is no target. `start` is the offset of the local name.
    """

    local: str
    target: str
    member: str
    line: int
    start: int = -1


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
