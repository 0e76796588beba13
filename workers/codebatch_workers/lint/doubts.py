"""What ruff finds and a reader of the source would not: these findings are not told.

Each class of them was seen where findings of real trees were judged by reading them (tests/signal/README.md), and can
be known from the file alone. Where a project's own configuration says what is looked for, nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from codebatch.model.record import Diagnostic
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

# What a finding is in: the smallest node there.
_Doubt = Callable[[SourceFile, Diagnostic, "Node"], bool]

_RAISES = re.compile(rb"[Rr]aises|[Ww]arns|suppress")
_EXEC = re.compile(rb"\bexec(?:file)?\s*\(")
_DEFINITIONS = frozenset({"class_definition", "decorated_definition", "function_definition"})
_IMPORTS = ("import_", "future_import_")
_PYTHON_2 = frozenset(
    b"apply basestring buffer cmp execfile file intern long raw_input reduce reload unichr unicode xrange".split()
)
_VERSION = re.compile(rb"version|PY_?[23]", re.IGNORECASE)
# What changes a list, dictionary or set that a name stands for.
_CHANGED = (
    rb"\.(?:add|append|clear|discard|extend|insert|pop|popitem|remove|reverse|setdefault|sort|update)\s*\(",
    rb"\s*\[[^\]\n]*\]\s*(?://|<<|>>|\*\*|[-+*/|&^%@])?=(?!=)",
    rb"\s*[-+|&^*]=",
)


def is_doubtful(file: SourceFile, found: Diagnostic) -> bool:
    """Whether a finding of ruff's is one of a class that is mostly false."""
    doubt = _DOUBTS.get(found.code)
    if doubt is None or file.tree is None:
        return False
    start = _offset(file, found.line, found.column)
    end = _offset(file, found.end_line, found.end_column)
    node = file.tree.root_node.descendant_for_byte_range(start, end)
    return node is not None and doubt(file, found, node)


def _offset(file: SourceFile, line: int, column: int) -> int:
    starts = file.line_starts
    if line > len(starts):
        return len(file.utf8)
    start = starts[line - 1]
    if file.is_ascii:
        return start + column - 1
    end = starts[line] if line < len(starts) else len(file.utf8)
    return start + len(file.utf8[start:end].decode("utf-8")[: column - 1].encode("utf-8"))


def _around(node: Node) -> Iterator[Node]:
    """A node and all that it is in, the innermost first, up to the function or class."""
    at: Node | None = node
    while at is not None:
        yield at
        if at.type in ("function_definition", "class_definition", "lambda"):
            return
        at = at.parent


def _is_export(file: SourceFile, found: Diagnostic, _node: Node) -> bool:
    """An import that is there for others: of a package, of a module of compatibility, or to see whether it can be."""
    name = file.path.rpartition(b"/")[2]
    return name == b"__init__.py" or b"compat" in name or "find_spec" in found.message


def _is_literal_text(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A text in `Literal[…]`: a value, where a project takes `Literal` from a module of its own."""
    if not any(each.type == "string" for each in _around(node)):
        return False
    for each in _around(node):
        named = each.child_by_field_name("value") if each.type == "subscript" else None
        if each.type == "generic_type":
            named = each.child(0)
        if named is not None and file.utf8[named.start_byte : named.end_byte].endswith(b"Literal"):
            return True
    return False


def _is_given(file: SourceFile, found: Diagnostic, node: Node) -> bool:
    """A name that somebody else gives: to a text in `Literal[…]`, to configuration that is run, to an older Python."""
    return _is_literal_text(file, found, node) or _is_of_python_2(file, node) or _is_of_who_runs_it(file, node)


def _is_of_who_runs_it(file: SourceFile, node: Node) -> bool:
    """A name in a module that runs another one itself, or that imports and defines nothing and fills what it names."""
    defines, runs = file.derived(_defines_and_runs)
    name = re.escape(file.utf8[node.start_byte : node.end_byte])
    return runs or (not defines and bool(re.search(rb"(?m)^%s\s*[.\[][^\n=]*=(?!=)" % name, file.utf8)))


def _defines_and_runs(file: SourceFile) -> tuple[bool, bool]:
    """Whether a module imports or defines something at its top, and whether it calls `exec` there."""
    assert file.tree is not None
    top = [(each.type in _DEFINITIONS, each) for each in file.tree.root_node.named_children]
    runs = any(_EXEC.search(file.utf8, each.start_byte, each.end_byte) for is_one, each in top if not is_one)
    return any(is_one or each.type.startswith(_IMPORTS) for is_one, each in top), runs


def _is_of_python_2(file: SourceFile, node: Node) -> bool:
    """A builtin of Python 2's where the version of Python was asked, or in `try`."""
    if file.utf8[node.start_byte : node.end_byte] not in _PYTHON_2:
        return False
    for each in _around(node):
        condition = each.child_by_field_name("condition") if each.type == "if_statement" else None
        if condition is not None and _VERSION.search(file.utf8, condition.start_byte, condition.end_byte):
            return True
        if each.type == "try_statement":
            return True
    return False


def _is_tried(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """An expression that is there for what it raises, or for what reading an attribute or an element does."""
    said = node
    while said.parent is not None and said.parent.type == "expression_statement":
        said = said.parent
    expression = said.child(0) if said.type == "expression_statement" else node
    if expression is not None and expression.type in ("attribute", "subscript"):
        return True
    if file.utf8[node.start_byte : node.end_byte].replace(b" ", b"").endswith(b"/0"):
        return True
    inner = said
    for each in _around(said):
        if each.type == "try_statement" and each.child_by_field_name("body") == inner:
            return True
        if each.type == "with_statement":
            head = file.utf8[each.start_byte : inner.start_byte]
            if _RAISES.search(head):
                return True
        inner = each
    return False


def _is_wanted_debugger(_file: SourceFile, found: Diagnostic, node: Node) -> bool:
    """A debugger that something asks for: one that is imported is not yet called, one below an `if` was wanted."""
    return found.message.startswith("Import ") or any(each.type == "if_statement" for each in _around(node))


def _is_exact(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A number that is no other in binary: `Decimal(1.25)` loses nothing."""
    text = file.utf8[node.start_byte : node.end_byte].decode("utf-8", "replace")
    try:
        return Fraction(text) == Fraction(float(text))
    except (ValueError, OverflowError):
        return False


def _is_never_changed(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A default that the function only reads: that all calls share it shows nowhere."""
    name: bytes | None = None
    for each in _around(node):
        if each.type in ("default_parameter", "typed_default_parameter") and name is None:
            named = each.child_by_field_name("name")
            name = file.utf8[named.start_byte : named.end_byte] if named is not None else None
        body = each.child_by_field_name("body") if each.type in ("function_definition", "lambda") else None
        if body is not None and name is not None:
            changes = rb"(?<![\w.])%s(?:%s)|\bdel\s+%s\s*\[" % (name, b"|".join(_CHANGED), name)
            return not re.search(changes, file.utf8[body.start_byte : body.end_byte])
    return False


_DOUBTS: Mapping[str, _Doubt] = {
    "B006": _is_never_changed,
    "B015": _is_tried,
    "B018": _is_tried,
    "F401": _is_export,
    "F821": _is_given,
    "RUF032": _is_exact,
    "T100": _is_wanted_debugger,
}

DOUBTED = frozenset(_DOUBTS)
"""The rules of which not all is told."""
