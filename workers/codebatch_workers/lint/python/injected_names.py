"""Python names that a file uses but does not define, although they are valid.

Three kinds are recognized:

- A program runs the file by `exec` and predefines the names. Configuration files are an example.
- Code for Python 2 and 3 uses builtins that only one of them has.
- A string in `Literal[…]` or `Mapped[…]` is not a name at all. `Literal` can also be the project's own.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.lint.python.runner_names import is_runner_name
from codebatch_workers.syntax.source import SourceFile

_EXEC_CALL = re.compile(rb"\bexec(?:file)?\s*\(")
# The length of text between brackets is bounded, so that a search from an unclosed bracket ends early.
_GLOBALS_ASSIGNMENT = re.compile(rb"\bglobals\(\)\s*(?:\[[^\]\n]{0,200}\]\s*=(?!=)|\.update\b)")
_FILLED_NAME = re.compile(rb"(?m)^(\w+)[ \t]*[.\[][^\n=]*=(?!=)")
_TOP_LEVEL_STATEMENT = re.compile(rb"^(?:import|from|def|class|async[ \t]+def|@)\b", re.MULTILINE)
_DEFINITION_NODES = frozenset({"class_definition", "decorated_definition", "function_definition"})
_IMPORT_NODE_PREFIXES = ("import_", "future_import_")
_ASSIGNMENT_TARGETS = re.compile(rb"^[ \t]+((?:\w+[ \t]*,[ \t]*)*\w+)[ \t]*=(?!=)", re.MULTILINE)
_PYTHON_2_BUILTINS = frozenset(
    b"apply basestring buffer cmp execfile file intern long raw_input reduce reload unichr unicode xrange".split()
)
# Names that `gettext.install` and IPython add to the builtins.
_INSTALLED_BUILTINS = frozenset({b"_", b"get_ipython"})
# Placeholders such as `__LIB_FOLDERS__`, which a program replaces. Python's own names of this form are in lower case.
_PLACEHOLDER_NAME = re.compile(rb"__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__")
_DEL_STATEMENT = re.compile(rb"^del[ \t]+(.+)", re.MULTILINE)
_VERSION_TEST = re.compile(rb"version|PY_?[23]", re.IGNORECASE)


def enclosing_nodes(node: Node, *, through_functions: bool = False) -> Iterator[Node]:
    """Yield a node and its ancestors, innermost first, up to the enclosing function or class.

    If `through_functions` is set, continue up to the root of the tree.
    """
    current: Node | None = node
    while current is not None:
        yield current
        if not through_functions and current.type in ("function_definition", "class_definition", "lambda"):
            return
        current = current.parent


def _is_string_in_foreign_type(file: SourceFile, node: Node) -> bool:
    """Return whether a node is in a string within `Literal[…]` or `Mapped[…]`.

    In `Literal[…]`, even if `Literal` is the project's own, a string is a value. In SQLAlchemy's `Mapped[…]`, a string
    names a class, which SQLAlchemy searches in all modules.
    """
    if not any(ancestor.type == "string" for ancestor in enclosing_nodes(node)):
        return False
    for ancestor in enclosing_nodes(node):
        value = ancestor.child_by_field_name("value") if ancestor.type == "subscript" else None
        if ancestor.type == "generic_type":
            value = next(iter(ancestor.children), None)
        if value is not None and file.utf8[value.start_byte : value.end_byte].endswith((b"Literal", b"Mapped")):
            return True
    return False


def is_defined_elsewhere(file: SourceFile, node: Node) -> bool:
    """Return whether a name that a file does not define is nevertheless valid.

    Such a name is defined by Python 2, by an earlier iteration, or by the program that runs the file. Or the node is a
    string that is not a name.
    """
    return (
        _is_string_in_foreign_type(file, node)
        or _is_python_2_name(file, node)
        or is_bound_in_previous_iteration(file, node)
        or is_provided_by_runner(file, file.utf8[node.start_byte : node.end_byte])
    )


def is_textually_defined(file: SourceFile, name: bytes) -> bool | None:
    """Return whether a name is defined elsewhere, as `is_defined_elsewhere` does, if the text of the file decides this.

    Return None if the tree is needed.
    """
    if name in _INSTALLED_BUILTINS or _PLACEHOLDER_NAME.fullmatch(name) or name in file.derived(_deleted_names):
        return True
    if is_runner_name(file, name):
        return True
    if (
        file.derived(_may_execute_code)
        or file.derived(_has_texts_in_types)
        or (name in _PYTHON_2_BUILTINS and file.derived(_may_choose_version))
    ):
        return None
    if name in file.derived(_bound_names):
        return None
    return _sets_or_fills_name(file, name)


def _deleted_names(file: SourceFile) -> frozenset[bytes]:
    """Return the names that a module deletes at top level.

    If an annotation uses a deleted name, ruff reports the name as undefined.
    """
    return frozenset(name.strip(b" \t()") for names in _DEL_STATEMENT.findall(file.utf8) for name in names.split(b","))


def _has_texts_in_types(file: SourceFile) -> bool:
    """Return whether a file may contain `Literal[…]` or `Mapped[…]`, whose strings are not names of this module."""
    return b"Literal" in file.utf8 or b"Mapped" in file.utf8


def _may_execute_code(file: SourceFile) -> bool:
    """Return whether a module can execute other code by `exec`."""
    return b"exec" in file.utf8 and _EXEC_CALL.search(file.utf8) is not None


def _may_choose_version(file: SourceFile) -> bool:
    """Return whether a module may test the version of Python.

    Its code for one version can then use other builtins.
    """
    return b"try" in file.utf8 or _VERSION_TEST.search(file.utf8) is not None


def _sets_global_names(file: SourceFile) -> bool:
    return b"globals()" in file.utf8 and _GLOBALS_ASSIGNMENT.search(file.utf8) is not None


def _has_top_level_definition(file: SourceFile) -> bool:
    """Return whether a module has an import or a definition at top level, according to its text."""
    return _TOP_LEVEL_STATEMENT.search(file.utf8) is not None


def _sets_or_fills_name(file: SourceFile, name: bytes) -> bool:
    return file.derived(_sets_global_names) or (
        not file.derived(_has_top_level_definition) and name in file.derived(_filled_names)
    )


def is_provided_by_runner(file: SourceFile, name: bytes) -> bool:
    """Return whether a name can be defined by the program that runs the module.

    There are three cases. The module sets names by `globals()`. The module executes other code by `exec`. The module
    has no imports and definitions, and sets attributes or elements of the name.
    """
    if not file.derived(_may_execute_code):
        return _sets_or_fills_name(file, name)
    defines, runs = file.derived(_defines_and_runs)
    return runs or (not defines and name in file.derived(_filled_names))


def _filled_names(file: SourceFile) -> frozenset[bytes]:
    """Return the names of objects whose attributes or elements a module sets at top level: `c` for `c.port = 80`."""
    return frozenset(_FILLED_NAME.findall(file.utf8))


def _defines_and_runs(file: SourceFile) -> tuple[bool, bool]:
    """Return whether a module has imports or definitions at top level, and whether it can set names dynamically.

    The second flag is true if the module calls `exec` at top level, or sets names by `globals()`.
    """
    assert file.tree is not None
    top = [(statement.type in _DEFINITION_NODES, statement) for statement in file.tree.root_node.named_children]
    runs = bool(_GLOBALS_ASSIGNMENT.search(file.utf8)) or any(
        _EXEC_CALL.search(file.utf8, statement.start_byte, statement.end_byte)
        for is_definition, statement in top
        if not is_definition
    )
    return any(
        is_definition or statement.type.startswith(_IMPORT_NODE_PREFIXES) for is_definition, statement in top
    ), runs


def is_bound_in_previous_iteration(file: SourceFile, node: Node) -> bool:
    """Return whether the loop around a node binds the name later in its body.

    The next iteration can use the name.
    """
    loop = None
    for ancestor in enclosing_nodes(node):
        if ancestor.type in ("for_statement", "while_statement"):
            loop = ancestor
    starts = file.derived(_bound_names).get(file.utf8[node.start_byte : node.end_byte], [])
    index = bisect_left(starts, node.end_byte)
    return loop is not None and index < len(starts) and starts[index] < loop.end_byte


def _bound_names(file: SourceFile) -> dict[bytes, list[int]]:
    """Map each name to the offsets of assignments to it. Only assignments in indented lines count."""
    starts: dict[bytes, list[int]] = {}
    for match in _ASSIGNMENT_TARGETS.finditer(file.utf8):
        for name in match[1].split(b","):
            starts.setdefault(name.strip(), []).append(match.start())
    return starts


def _is_python_2_name(file: SourceFile, node: Node) -> bool:
    """Return whether a name is a builtin of Python 2, and its use depends on the version of Python.

    The use must be in a `try` statement, or under a condition about Python's version.
    """
    if file.utf8[node.start_byte : node.end_byte] not in _PYTHON_2_BUILTINS:
        return False
    for ancestor in enclosing_nodes(node, through_functions=True):
        condition = ancestor.child_by_field_name("condition") if ancestor.type == "if_statement" else None
        if ancestor.type == "conditional_expression" and ancestor.named_child_count > 1:
            condition = ancestor.named_children[1]
        if condition is not None and _VERSION_TEST.search(file.utf8, condition.start_byte, condition.end_byte):
            return True
        if ancestor.type == "try_statement":
            return True
    return False
