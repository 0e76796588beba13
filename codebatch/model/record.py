"""Records: the lines of output, with a frozen type for each kind, tagged by `kind` (SPEC.md "Records", schemas/).

A record contains no time, batch id, absolute path or machine name. Lines and columns are 1-based, columns count code
points, `end_line` and `end_column` are exclusive. Exactly one of `path` and `path_b64` is set (model/entry.py). If you
change the meaning of a member, the format changes: then increase RECORD_SCHEMA (SPEC.md "Versioning").
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.change import Gate
from codebatch.model.entry import PathMembers

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

# Reasons why a command failed: its exit status, a signal, a limit, no output for too long, its check; it could not be
# started; the changes of two tasks that it needs conflict; its worker or the machine died while it ran; a rate limit of
# a service. Or why an attempt was cancelled: its
# worker was abandoned or asked to end before it began the leased attempt.
CommandReason = Literal[
    "exit",
    "signal",
    "timeout",
    "memory",
    "stall",
    "start",
    "check",
    "conflict",
    "interrupted",
    "limited",
    "unbegun",
    "unneeded",
    "when",
    "unchanged",
]

OmittedPart = Literal["lines", "findings", "values"]

EdgeType = Literal["imports", "inherits", "calls", "depends"]

# Certainty of an import's target: the language's rule names the file; one file matches; several match; none matches.
Resolution = Literal["exact", "file", "name", "external"]

# Code that can see a name: any code, subclasses, its package or crate, its file or class.
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

ANONYMOUS = "<anonymous>"
"""The last part of the qualified name of an anonymous function in metrics, and of an anonymous class in edges."""


class BaseRecord(PathMembers, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    """Base of all records: the file that the record describes."""


class File(BaseRecord, frozen=True, kw_only=True, tag="file"):
    """The properties of a file. `lang` is the detected language. `encoding` is an IANA name, empty for binary files."""

    lang: str
    encoding: str
    lines: int
    class_: FileClass = msgspec.field(name="class")
    parse: ParseState


class Diagnostic(BaseRecord, frozen=True, kw_only=True, tag="diagnostic"):
    """A finding.

    `tool` is `codebatch` for built-in checks and `ruff` for rules of ruff. For a custom task, it is the name of the
    task, unless the task sets another `tool`. `also` names the tasks that report the same finding; stored records have
    none. In a notebook, `cell` is the number of the cell and `cell_line` the line
    in the cell.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    severity: Severity
    code: str
    message: str
    tool: str
    also: tuple[str, ...] = ()
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


class Metric(BaseRecord, frozen=True, kw_only=True, tag="metric"):
    """A number about a file or, if `symbol` is set, about a function. `symbol` is the qualified name of the function.

    `line` is the line of the function's name, if the function has a name. A function without a name has no symbol
    record. Therefore, `end_line` is set in the record of its complexity. In a notebook, `cell` is the number of the
    cell, and `cell_line` is the line in the cell.
    """

    metric: str
    value: int
    symbol: str = ""
    line: int = 1
    end_line: int | UnsetType = UNSET
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


class Symbol(BaseRecord, frozen=True, kw_only=True, tag="symbol"):
    """A definition or an import. `scope` is the qualified name of the enclosing definition, or empty at top level.

    `parameters` and `decorators` are names in source order. In a notebook, `cell` is the number of the cell, and
    `cell_line` is the line in the cell.

    For types in C#:

    - `type_parameters`: their number. Types with different numbers can have the same name.
    - `is_partial`: it is declared `partial`, so that other files can declare further parts.
    - `is_conditional`: it is in a branch of `#if`.
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
    type_parameters: int = 0
    is_partial: bool = False
    is_conditional: bool = False
    visibility: Visibility = "public"
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


class Edge(BaseRecord, frozen=True, kw_only=True, tag="edge"):
    """A relation between code at `source` and the name `target`, such as an import or a call.

    `source` is a qualified name, or empty for the file itself. `target` is the name as written in the source, except in
    edges of type `depends`. In these edges, an import is resolved to a file:

    - `target`: the path of the imported file. If `resolution` is `external`, it is a name outside the project.
    - `imported`: the name as written in the source.
    - `implicit`: there is no import. The language makes the name visible, for example because the files belong to the
      same package.

    For imports:

    - `is_module`: the whole name is the name of a module, as in Python's `import a.b` and Rust's `mod a;`. If unset,
      `a.b` could also be the name `b` in the module `a`.
    - `module_file`: the path in the attribute `#[path]` of Rust's `mod a;`. If the path begins with `./`, it is
      relative to the directory of the file, otherwise to the directory of the file's module.
    - `type_only`: the import is only for type checkers and is never executed.
    - `deferred`: the import is executed after the file was loaded, for example in a function.
    - `erasable`: the file uses the names at most as types, so TypeScript erases the import unless an option prevents
      this.

    In a notebook, `cell` is the number of the cell, and `cell_line` is the line in the cell.
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
    erasable: bool = False
    implicit: bool = False
    cell: int | UnsetType = UNSET
    cell_line: int | UnsetType = UNSET


class Names(BaseRecord, frozen=True, kw_only=True, tag="names"):
    """The names that a file uses without an import, if its language makes names of other files visible.

    `names` are as written, such as `Price` or `shop.Price`. `lines` has the line of the first use of each name. Names
    in `local` are also names of local variables or parameters somewhere in the file.

    If the language looks names up in enclosing definitions as written, `scopes` has these definitions for each name.
    Then a name occurs once for each of its scopes. In Ruby, a scope is the names of classes and modules, separated by
    blanks, outermost first. If the innermost one has a superclass or includes a module, `<` follows.

    `declared` has the functions that a header in C or C++ declares without a body.
    """

    names: tuple[str, ...]
    lines: tuple[int, ...]
    local: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()


class Failure(BaseRecord, frozen=True, kw_only=True, tag="failure"):
    """A file that a task could not process.

    Evidence, such as a traceback, can differ between runs. Therefore, it is not in the record but in the journal of the
    batch, and `codebatch errors` prints it.
    """

    task: str
    reason: FailureReason


class Ast(BaseRecord, frozen=True, kw_only=True, tag="ast"):
    """A syntax tree that `--emit-ast` stored. `object` is the digest of the stored bytes, and `format` is the name of
    their format.
    """

    object: str
    format: str


class FileChange(BaseRecord, frozen=True, kw_only=True, tag="change"):
    """A change of its file that a task proposes (SPEC.md "Records"). The file itself is not changed.

    - `before`: the digest of the file's content, which is an object of the snapshot.
    - `after`: the digest of the new content, which is an object too. None: the file is deleted.
    - `executable`: whether the file is executable after the change.
    - `added`, `removed`: the numbers of lines that the change adds and removes.
    - `refused_by`: the gate that refuses the change (SPEC.md "Changes"). `evidence` has the reason.
    """

    before: str
    after: str | None
    executable: bool = False
    added: int
    removed: int
    refused_by: Gate | UnsetType = UNSET
    evidence: str = ""


class Fingerprints(BaseRecord, frozen=True, kw_only=True, tag="fingerprints"):
    """Hashes of the code of a file, used to find duplicate blocks. All values are base64.

    - `hashes`: 4 bytes for each window of code lines.
    - `gaps`: one byte for each window: the number of code lines since the previous window.
    - `comments`: lengths in bytes, 4 bytes for each number: of the code before the first comment, of this comment, of
      the code before the next comment, and so on. Imports and other text that is left out count as comments.

    The file workers/TASKS.md, section "Duplicates", defines the hashes.
    """

    hashes: bytes
    gaps: bytes
    comments: bytes = b""


class Duplicate(BaseRecord, frozen=True, kw_only=True, tag="duplicate"):
    """A location of a duplicate block of `lines` code lines. The block occurs `copies` times, including this location.

    `end_line` is the line after the last line. Blocks of the same `group` have the same code lines. The first other
    location of the block is in `other_path` at `other_line`.
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


class Omission(BaseRecord, frozen=True, kw_only=True, tag="omission"):
    """A part of the output of a program that is in no finding of its task, or not as the program wrote it.

    `count` is the number of such lines, findings or values, and `sample` the text of the first one. If the output names
    no file, the record belongs to a file of the call.

    - `part` is `lines`: lines that are not in the format of the task and may report problems.
    - `findings`: findings that are not at a place in a file of the call.
    - `values`: values of findings that are unknown, such as a severity. The findings have a default instead.
    """

    task: str
    part: OmittedPart
    count: int
    sample: str


Record = (
    File
    | Diagnostic
    | Metric
    | Symbol
    | Edge
    | Failure
    | Ast
    | FileChange
    | Fingerprints
    | Duplicate
    | Names
    | Omission
)
RECORD_TYPES: tuple[type[Record], ...] = (
    File,
    Diagnostic,
    Metric,
    Symbol,
    Edge,
    Failure,
    Ast,
    FileChange,
    Fingerprints,
    Duplicate,
    Names,
    Omission,
)
TAG_BY_TYPE: dict[type[Record], str] = {type_: str(type_.__struct_config__.tag) for type_ in RECORD_TYPES}
RECORD_KINDS: tuple[str, ...] = tuple(TAG_BY_TYPE.values())

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info", "hint")

NON_PRODUCTION_CLASSES: frozenset[FileClass] = frozenset(
    ("generated", "minified", "vendored", "documentation", "fixture", "test", "example", "template")
)
"""Classes of non-production files: findings in them have a lower weight and are listed last."""
