"""Exports of Python modules: imports that other modules use, and names in `__all__`."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.injected_names import enclosing_nodes
from codebatch_workers.lint.python.intended_patterns import is_pytest_parameter
from codebatch_workers.syntax.classification.migrations import is_migration
from codebatch_workers.syntax.source import SourceFile

_TYPE_COMMENT = re.compile(rb"#\s*type:(?!\s*ignore)([^\n]*)")
_QUOTED_NAME = re.compile(rb"[\"'](\w+)[\"']")
# White space, a comment, a docstring, or a `from … import` statement.
_IMPORT_STATEMENT = re.compile(
    rb"\s+|#[^\n]*|[rRuU]?(?:\"\"\".*?\"\"\"|'''.*?''')|"
    rb"from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n#;(\\]*(?:\\\r?\n[^\n#;(\\]*)*)",
    re.DOTALL,
)
# Types of nodes that are not strings if they are elements of `__all__`. An identifier counts as one of these. It could
# be bound to a string, but usually names the exported object by mistake.
_NODES_WITHOUT_TEXT = frozenset({"false", "float", "identifier", "integer", "list", "none", "true", "tuple"})
_BYTES_PREFIXES = frozenset({b"b'", b'b"', b"br", b"rb"})
# Statements that change `__all__` in ways that ruff does not follow: a call of a method other than `remove`, an
# assignment to an element, or an assignment of a computed value.
_CHANGE_OF_ALL = re.compile(
    rb"\b__all__\s*(?:\.\s*(?!remove\b)\w|\[|(?:\+|:[^=\n]*)?=[^\n]*(?:\*|\bif\b|\bfor\b|\w\())"
)


_SIDE_EFFECT_IMPORT = re.compile(
    r"`(?:mpl_toolkits\.mplot3d\.Axes3D|sklearn\.experimental\.enable_\w+|readline|this|antigravity)`"
)
"""Imports with a side effect: they register a projection of a plot, enable a feature, or print a poem."""


def is_export(file: SourceFile, finding: Diagnostic, text: bytes) -> bool:
    """Return whether an import that ruff reports as unused is needed.

    This applies to four kinds of imports: re-exports, tests whether a module is available, imports with side effects,
    and names that pytest or a string uses.
    """
    if "find_spec" in finding.message or _SIDE_EFFECT_IMPORT.match(finding.message) or has_reexports(file):
        return True
    names = [name for name in re.findall(rb"\w+", text) if name != b"as"]
    return any(name in file.derived(_names_in_texts) or is_pytest_parameter(file, name) for name in names[-1:])


def has_reexports(file: SourceFile) -> bool:
    """Return whether the names that a file imports are probably meant for other modules.

    This applies to packages, compatibility modules, modules that contain only imports, and migrations, whose imports
    are written by programs.
    """
    directory, _, name = file.path.rpartition(b"/")
    is_named_so = name == b"__init__.py" or b"compat" in name or b"/compat" in b"/" + directory
    return is_named_so or is_migration(file.path, file.utf8, file.language) or file.derived(_has_only_imports)


def _names_in_texts(file: SourceFile) -> frozenset[bytes]:
    """Return the names in type comments, and the names that are the whole text of a string literal.

    String literals count only if the module uses TYPE_CHECKING, or changes `__all__` in a way that ruff does not
    follow.
    """
    has_quoted = b"TYPE_CHECKING" in file.utf8 or (b"__all__" in file.utf8 and _CHANGE_OF_ALL.search(file.utf8))
    quoted = _QUOTED_NAME.findall(file.utf8) if has_quoted else []
    return frozenset((*quoted, *re.findall(rb"\w+", b" ".join(_TYPE_COMMENT.findall(file.utf8)))))


def _has_only_imports(file: SourceFile) -> bool:
    """Return whether a module consists only of `from … import` statements, comments and docstrings.

    A pattern decides this, because findings about unused imports are frequent, and parsing is slow.
    """
    offset, has_imports = 0, False
    while offset < len(file.utf8):
        match = _IMPORT_STATEMENT.match(file.utf8, offset)
        if match is None:
            return False
        has_imports = has_imports or match[0].startswith(b"from")
        offset = match.end()
    return has_imports


def may_hold_names(file: SourceFile, node: Node) -> bool:
    """Return whether all elements of `__all__` can be strings.

    Elements that are unpacked, called or computed can be strings.
    """
    statement = next(
        (outer for outer in enclosing_nodes(node) if outer.type in ("assignment", "augmented_assignment")), node
    )
    if b"*" in file.utf8[statement.start_byte : statement.end_byte]:
        return True
    names = statement.child_by_field_name("right")
    return names is not None and not any(
        name.type in _NODES_WITHOUT_TEXT or (name.text or b"")[:2].lower() in _BYTES_PREFIXES
        for name in names.named_children
    )
