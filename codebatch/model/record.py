"""Records: the lines of output. One frozen type per kind, tagged by `kind`; SPEC.md "Records" and schemas/ follow them.

A record holds no time, batch id, absolute path or machine name. Lines and columns are 1-based, columns count code
points, `end_line`/`end_column` are exclusive. Exactly one of `path` and `path_b64` is set (model/entry.py).
A changed meaning is a change of format: bump RECORD_SCHEMA (SPEC.md "Versioning").
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.entry import path_from_fields

RECORD_SCHEMA = 1

Severity = Literal["error", "warning", "info", "hint"]

FileClass = Literal[
    "text",
    "binary",
    "huge",
    "generated",
    "minified",
    "vendored",
    "documentation",
    "fixture",
    "test",
    "example",
    "template",
    "migration",
    "empty",
]

ParseState = Literal["ok", "partial", "errors", "skipped", "unsupported"]

FailureReason = Literal["exception", "timeout", "memory", "crash", "object", "needs"]

# Why a command failed: its exit status, a signal, a limit, no byte of output for too long, its check; it could not be
# started; it was running when its worker or the machine died; a service that it uses limits how often (rate limit). Or
# why an attempt was cancelled: its worker, which was left alone or told to end, had leased it and not begun.
CommandReason = Literal[
    "exit", "signal", "timeout", "memory", "stall", "start", "check", "interrupted", "limited", "unbegun"
]

EdgeType = Literal["imports", "inherits", "calls", "depends"]

# How sure it is where an import leads: the language's rule names the file; one file fits; several do; none does.
Resolution = Literal["exact", "file", "name", "external"]

# Who sees a name: everybody, heirs, its package or crate, its file or class.
Visibility = Literal["public", "protected", "internal", "private"]

SymbolType = Literal[
    "module",
    "namespace",
    "class",
    "struct",
    "union",
    "enum",
    "enum_member",
    "interface",
    "trait",
    "type",
    "function",
    "method",
    "constructor",
    "field",
    "property",
    "variable",
    "constant",
    "parameter",
    "macro",
    "import",
]


class Located(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    """What every record has: the file it speaks of."""

    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET

    @property
    def path_bytes(self) -> bytes:
        """The path as the system has it. Raises ValueError unless exactly one of the two is set and sound."""
        return path_from_fields(self.path, self.path_b64)


class File(Located, frozen=True, kw_only=True, tag="file"):
    """The properties of a file. `lang` is the detected language, `encoding` an IANA name (empty for binary files)."""

    lang: str
    encoding: str
    lines: int
    class_: FileClass = msgspec.field(name="class")
    parse: ParseState


class Diagnostic(Located, frozen=True, kw_only=True, tag="diagnostic"):
    """A finding. `tool` is `codebatch` for built-in checks, `ruff` for those of ruff, otherwise the name of the task.

    A custom task may set another `tool`. In a notebook, `cell` is the number of the cell and `cell_line` a line in it.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    severity: Severity
    code: str
    message: str
    tool: str
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


class Metric(Located, frozen=True, kw_only=True, tag="metric"):
    """A number about a file or, if `symbol` is set, about the function of that qualified name at `line`.

    The line is that of the function's name, if it has one. `end_line` is set for the complexity of a function without a
    name, which has no symbol record. `cell` and `cell_line` are those of a diagnostic.
    """

    metric: str
    value: int
    symbol: str = ""
    line: int = 1
    end_line: int | UnsetType = UNSET
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


class Symbol(Located, frozen=True, kw_only=True, tag="symbol"):
    """A definition. `scope` is the qualified name of the enclosing definition (empty at top level).

    `parameters` and `decorators` are names in source order. `cell` and `cell_line` are those of a diagnostic.
    """

    name: str
    symbol_type: SymbolType
    qualified: str
    scope: str
    line: int
    column: int
    end_line: int
    end_column: int
    parameters: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    visibility: Visibility = "public"
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


class Edge(Located, frozen=True, kw_only=True, tag="edge"):
    """A relation as written in the source: `source` (a qualified name, empty for the file) to `target`, unresolved.

    A `depends` edge is resolved: `target` is a path of the snapshot, or the name where `resolution` is `external`;
    `imported` is the name as written. `is_module` says of an import that all of its name is a module's: Python's
    `import a.b`, whose target is as that of `from a import b`, and Rust's `mod a;`. `module_file` is the file that a
    `#[path]` gives the latter: from the directory of the file if it begins with `./`, else from that of the file's
    module. `type_only`: the import is for a type checker alone and is never executed. `deferred`: it is executed after
    the file was loaded, as in a function. `cell` and `cell_line` are as those of a diagnostic.
    """

    edge_type: EdgeType
    source: str
    target: str
    line: int
    resolution: Resolution | UnsetType = UNSET
    imported: str = ""
    is_module: bool = False
    module_file: str = ""
    type_only: bool = False
    deferred: bool = False
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


class Failure(Located, frozen=True, kw_only=True, tag="failure"):
    """A file for which a task failed. The evidence is in the journal, because it differs from run to run."""

    task: str
    reason: FailureReason


class Ast(Located, frozen=True, kw_only=True, tag="ast"):
    """A stored syntax tree (`emit_ast`). `object` is the digest of its bytes, `format` names their format."""

    object: str
    format: str


class Fingerprints(Located, frozen=True, kw_only=True, tag="fingerprints"):
    """Hashes of a file's code, from which duplicate blocks are found (workers/TASKS.md "Duplicates"). All are base64.

    `hashes` has 4 bytes per window of code lines. `gaps` has one byte per window: the number of code lines since the
    window before. `comments` has 4 bytes per number: the distance in bytes to a comment, its length, the distance to
    the next, …
    """

    hashes: bytes
    gaps: bytes
    comments: bytes = b""


class Duplicate(Located, frozen=True, kw_only=True, tag="duplicate"):
    """A block of `lines` code lines that occurs `copies` times, this one included.

    `end_line` is the line after its last.

    Blocks of one `group` have equal code lines. The first of the other locations is `other_path`, line `other_line`.
    """

    line: int
    end_line: int
    lines: int
    copies: int
    group: str
    other_path: str | UnsetType = UNSET
    other_path_b64: str | UnsetType = UNSET
    other_line: int
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


Record = File | Diagnostic | Metric | Symbol | Edge | Failure | Ast | Fingerprints | Duplicate
RECORD_TYPES: tuple[type[Record], ...] = (
    File,
    Diagnostic,
    Metric,
    Symbol,
    Edge,
    Failure,
    Ast,
    Fingerprints,
    Duplicate,
)
TAGS: dict[type[Record], str] = {type_: str(type_.__struct_config__.tag) for type_ in RECORD_TYPES}
KINDS: tuple[str, ...] = tuple(TAGS.values())

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info", "hint")

CLASSES_APART: frozenset[FileClass] = frozenset(
    ("generated", "minified", "vendored", "documentation", "fixture", "test", "example", "template")
)
"""Classes of files that are not the project's own code: findings in them weigh less and are listed last."""
