"""What a module of Python exports: imports that are for others, and names in `__all__`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.injected_names import around
from codebatch_workers.lint.python.intended_patterns import is_taken_by_pytest
from codebatch_workers.syntax.classification.migrations import is_migration
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

_COMMENTED_TYPE = re.compile(rb"#\s*type:(?!\s*ignore)([^\n]*)")
_QUOTED_NAME = re.compile(rb"[\"'](\w+)[\"']")
# White space, a comment, a docstring, an import from a module.
_OF_IMPORTS = re.compile(
    rb"\s+|#[^\n]*|[rRuU]?(?:\"\"\".*?\"\"\"|'''.*?''')|"
    rb"from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n#;(\\]*(?:\\\r?\n[^\n#;(\\]*)*)",
    re.DOTALL,
)
# Nodes that are no text. A name may stand for one, and is mostly the thing itself, by mistake.
_NO_TEXT = frozenset({"false", "float", "identifier", "integer", "list", "none", "true", "tuple"})
_BYTES = frozenset({b"b'", b'b"', b"br", b"rb"})
# Changes of `__all__` that ruff does not read: by a method but `remove`, of a part, by an expression.
_ALL_CHANGED = re.compile(rb"\b__all__\s*(?:\.\s*(?!remove\b)\w|\[|(?:\+|:[^=\n]*)?=[^\n]*(?:\*|\bif\b|\bfor\b|\w\())")


_EFFECTIVE = re.compile(
    r"`(?:mpl_toolkits\.mplot3d\.Axes3D|sklearn\.experimental\.enable_\w+|readline|this|antigravity)`"
)
"""What is imported for what the import does: it registers a projection, turns a feature on, prints a poem."""


def is_export(file: SourceFile, found: Diagnostic, text: bytes) -> bool:
    """Return whether an import is for others, tests whether it is possible, or is used by pytest or in a text."""
    if "find_spec" in found.message or _EFFECTIVE.match(found.message) or is_for_others(file):
        return True
    names = [each for each in re.findall(rb"\w+", text) if each != b"as"]
    return any(each in file.derived(_names_in_texts) or is_taken_by_pytest(file, each) for each in names[-1:])


def is_for_others(file: SourceFile) -> bool:
    """Return whether a file imports for others: a package, a module of compatibility, one that only imports.

    So does a migration, whose imports a program wrote.
    """
    directory, _, name = file.path.rpartition(b"/")
    is_named_so = name == b"__init__.py" or b"compat" in name or b"/compat" in b"/" + directory
    return is_named_so or is_migration(file.path, file.utf8, file.language) or file.derived(_only_imports)


def _names_in_texts(file: SourceFile) -> frozenset[bytes]:
    """The names in comments that are types, and those that stand alone in a text.

    The latter count where types are imported apart, or where `__all__` is changed in a way that ruff does not follow.
    """
    has_quoted = b"TYPE_CHECKING" in file.utf8 or (b"__all__" in file.utf8 and _ALL_CHANGED.search(file.utf8))
    quoted = _QUOTED_NAME.findall(file.utf8) if has_quoted else []
    return frozenset((*quoted, *re.findall(rb"\w+", b" ".join(_COMMENTED_TYPE.findall(file.utf8)))))


def _only_imports(file: SourceFile) -> bool:
    """Whether a module does nothing but import from others. Told without its tree: such findings are many."""
    at, has_imports = 0, False
    while at < len(file.utf8):
        said = _OF_IMPORTS.match(file.utf8, at)
        if said is None:
            return False
        has_imports = has_imports or said[0].startswith(b"from")
        at = said.end()
    return has_imports


def may_be_names(file: SourceFile, node: Node) -> bool:
    """Return whether all that a module has in `__all__` may be text: in part unpacked, called or computed."""
    statement = next((each for each in around(node) if each.type in ("assignment", "augmented_assignment")), node)
    if b"*" in file.utf8[statement.start_byte : statement.end_byte]:
        return True
    names = statement.child_by_field_name("right")
    return names is not None and not any(
        each.type in _NO_TEXT or (each.text or b"")[:2].lower() in _BYTES for each in names.named_children
    )
