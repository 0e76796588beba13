"""Names of Python that a file does not define and that are no mistake: who runs the file gives them.

Configuration is run by `exec` with names in it, code for two versions of Python names builtins of the other one, and a
text in `Literal[…]` is no name where a project takes `Literal` from a module of its own, nor one in `Mapped[…]`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codebatch_workers.lint.python.runner_names import is_given_by_runner
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

_EXEC = re.compile(rb"\bexec(?:file)?\s*\(")
# What stands between brackets is short, so that one without an end costs no more.
_SETS_NAMES = re.compile(rb"\bglobals\(\)\s*(?:\[[^\]\n]{0,200}\]\s*=(?!=)|\.update\b)")
_FILLED = re.compile(rb"(?m)^(\w+)[ \t]*[.\[][^\n=]*=(?!=)")
_AT_TOP = re.compile(rb"^(?:import|from|def|class|async[ \t]+def|@)\b", re.MULTILINE)
_DEFINITIONS = frozenset({"class_definition", "decorated_definition", "function_definition"})
_IMPORTS = ("import_", "future_import_")
_TARGETS = re.compile(rb"^[ \t]+((?:\w+[ \t]*,[ \t]*)*\w+)[ \t]*=(?!=)", re.MULTILINE)
_PYTHON_2 = frozenset(
    b"apply basestring buffer cmp execfile file intern long raw_input reduce reload unichr unicode xrange".split()
)
# What `gettext.install` and IPython put among the builtins.
_BUILTIN = frozenset({b"_", b"get_ipython"})
# What a program puts in, as `__LIB_FOLDERS__`: Python's own names are no such ones.
_PLACEHOLDER = re.compile(rb"__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__")
_DELETED = re.compile(rb"^del[ \t]+(.+)", re.MULTILINE)
_VERSION = re.compile(rb"version|PY_?[23]", re.IGNORECASE)


def around(node: Node, *, through_functions: bool = False) -> Iterator[Node]:
    """A node and all that it is in, the innermost first, up to the function or class."""
    at: Node | None = node
    while at is not None:
        yield at
        if not through_functions and at.type in ("function_definition", "class_definition", "lambda"):
            return
        at = at.parent


def _is_text_of_others(file: SourceFile, node: Node) -> bool:
    """A text in `Literal[…]`: a value, where a project takes `Literal` from a module of its own; or in `Mapped[…]`.

    The latter is SQLAlchemy's, which looks for the class among those of all modules.
    """
    if not any(each.type == "string" for each in around(node)):
        return False
    for each in around(node):
        named = each.child_by_field_name("value") if each.type == "subscript" else None
        if each.type == "generic_type":
            named = next(iter(each.children), None)
        if named is not None and file.utf8[named.start_byte : named.end_byte].endswith((b"Literal", b"Mapped")):
            return True
    return False


def is_given(file: SourceFile, node: Node) -> bool:
    """Whether a name that a file does not define is given by somebody else, or is none."""
    return (
        _is_text_of_others(file, node)
        or _is_of_python_2(file, node)
        or is_bound_in_previous_iteration(file, node)
        or is_provided_by_runner(file, file.utf8[node.start_byte : node.end_byte])
    )


def is_plainly_given(file: SourceFile, name: bytes) -> bool | None:
    """As `is_given` says, where a file's text tells; None where its tree has to."""
    if name in _BUILTIN or _PLACEHOLDER.fullmatch(name) or name in file.derived(_deleted):
        return True
    if is_given_by_runner(file, name):
        return True
    if file.derived(_may_run) or file.derived(_has_texts_in_types) or (name in _PYTHON_2 and file.derived(_may_choose)):
        return None
    if name in file.derived(_bound):
        return None
    return _sets_or_fills(file, name)


def _deleted(file: SourceFile) -> frozenset[bytes]:
    """The names that a module has and takes away at its top: ruff does not find them where an annotation uses them."""
    return frozenset(name.strip(b" \t()") for said in _DELETED.findall(file.utf8) for name in said.split(b","))


def _has_texts_in_types(file: SourceFile) -> bool:
    """Whether a text in a type may be no name of this module."""
    return b"Literal" in file.utf8 or b"Mapped" in file.utf8


def _may_run(file: SourceFile) -> bool:
    """Whether a module may run another one."""
    return b"exec" in file.utf8 and _EXEC.search(file.utf8) is not None


def _may_choose(file: SourceFile) -> bool:
    """Whether a module may choose by the version of Python."""
    return b"try" in file.utf8 or _VERSION.search(file.utf8) is not None


def _sets_names(file: SourceFile) -> bool:
    return b"globals()" in file.utf8 and _SETS_NAMES.search(file.utf8) is not None


def _defines(file: SourceFile) -> bool:
    """Whether a module imports or defines at its top, as its text says."""
    return _AT_TOP.search(file.utf8) is not None


def _sets_or_fills(file: SourceFile, name: bytes) -> bool:
    return file.derived(_sets_names) or (not file.derived(_defines) and name in file.derived(_filled))


def is_provided_by_runner(file: SourceFile, name: bytes) -> bool:
    """A name in a module that sets names by text or runs another one, or that only fills what others define."""
    if not file.derived(_may_run):
        return _sets_or_fills(file, name)
    defines, runs = file.derived(_defines_and_runs)
    return runs or (not defines and name in file.derived(_filled))


def _filled(file: SourceFile) -> frozenset[bytes]:
    """The names of which attributes or elements are set at the top of a module."""
    return frozenset(_FILLED.findall(file.utf8))


def _defines_and_runs(file: SourceFile) -> tuple[bool, bool]:
    """Whether a module imports or defines at its top; whether it calls `exec` there, or sets names by text."""
    assert file.tree is not None
    top = [(each.type in _DEFINITIONS, each) for each in file.tree.root_node.named_children]
    runs = bool(_SETS_NAMES.search(file.utf8)) or any(
        _EXEC.search(file.utf8, each.start_byte, each.end_byte) for is_one, each in top if not is_one
    )
    return any(is_one or each.type.startswith(_IMPORTS) for is_one, each in top), runs


def is_bound_in_previous_iteration(file: SourceFile, node: Node) -> bool:
    """A name that the loop around binds further down, for its next turn."""
    loop = None
    for each in around(node):
        if each.type in ("for_statement", "while_statement"):
            loop = each
    bound = file.derived(_bound).get(file.utf8[node.start_byte : node.end_byte], [])
    behind = bisect_left(bound, node.end_byte)
    return loop is not None and behind < len(bound) and bound[behind] < loop.end_byte


def _bound(file: SourceFile) -> dict[bytes, list[int]]:
    """Where names are given a value in blocks: a line begins with them, and `=` follows."""
    found: dict[bytes, list[int]] = {}
    for match in _TARGETS.finditer(file.utf8):
        for name in match[1].split(b","):
            found.setdefault(name.strip(), []).append(match.start())
    return found


def _is_of_python_2(file: SourceFile, node: Node) -> bool:
    """A builtin of Python 2's where the version of Python was asked, or in `try`."""
    if file.utf8[node.start_byte : node.end_byte] not in _PYTHON_2:
        return False
    for each in around(node, through_functions=True):
        condition = each.child_by_field_name("condition") if each.type == "if_statement" else None
        if each.type == "conditional_expression" and each.named_child_count > 1:
            condition = each.named_children[1]
        if condition is not None and _VERSION.search(file.utf8, condition.start_byte, condition.end_byte):
            return True
        if each.type == "try_statement":
            return True
    return False
