"""The time at which an import is executed.

An import is executed when its file is loaded, later, or never. It is never executed if its names are only for type
checkers.
"""

from __future__ import annotations

import re

from tree_sitter import Node

_JAVASCRIPT_FUNCTIONS = frozenset(
    [
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "generator_function",
        "generator_function_declaration",
    ]
)
# Nodes whose code runs only when they are called. In languages without an entry, imports are resolved before any code
# runs.
_FUNCTION_NODES = {
    "bash": frozenset({"function_definition"}),
    "javascript": _JAVASCRIPT_FUNCTIONS,
    "lua": frozenset({"function_declaration", "function_definition"}),
    "php": frozenset({"function_definition", "method_declaration", "anonymous_function", "arrow_function"}),
    "python": frozenset({"function_definition"}),
    "ruby": frozenset({"method", "singleton_method"}),
    "tsx": _JAVASCRIPT_FUNCTIONS,
    "typescript": _JAVASCRIPT_FUNCTIONS,
    "zsh": frozenset({"function_definition"}),
}
# Nodes that can be between a function and its immediate call, as in `(function () {}).call(this)`.
_NODES_AROUND_CALLED = frozenset({"parenthesized_expression", "member_expression"})
_JAVASCRIPT_LANGUAGES = frozenset({"javascript", "tsx", "typescript"})
_TYPE_KEYWORDS = frozenset({"type", "typeof"})
_DECLARATION_ENDINGS = (b".pyi", b".d.ts", b".d.mts", b".d.cts")
_TYPE_CHECKING_TEST = re.compile(rb"\(?\s*(?:\w+\.)?TYPE_CHECKING\s*\)?")


def is_deferred_import(node: Node, language: str, utf8: bytes) -> bool:
    """Return whether an import is not yet executed when its file is loaded.

    This is true of imports in functions, of dynamic imports, and of Ruby's `autoload`.
    """
    functions = _FUNCTION_NODES.get(language)
    if functions is None or _is_php_use(node):
        return False
    above = node.parent
    awaited = False
    while above is not None:
        if above.type in functions and not _is_called_at_once(above):
            return True
        awaited = awaited or above.type == "await_expression"
        above = above.parent
    if language in _JAVASCRIPT_LANGUAGES:
        # The promise of `import()` resolves after the file has run, unless the file awaits it.
        return not awaited and _is_dynamic_import(node)
    return language == "ruby" and _is_autoload_call(node, utf8)


def _is_php_use(node: Node) -> bool:
    return node.type == "namespace_use_declaration"


def _is_called_at_once(function: Node) -> bool:
    child, above = function, function.parent
    while above is not None and above.type in _NODES_AROUND_CALLED:
        child, above = above, above.parent
    return above is not None and above.type == "call_expression" and above.child_by_field_name("function") == child


def _is_dynamic_import(node: Node) -> bool:
    call = node.parent.parent if node.parent is not None else None
    function = call.child_by_field_name("function") if call is not None else None
    return function is not None and function.type == "import"


def _is_autoload_call(node: Node, utf8: bytes) -> bool:
    method = node.child_by_field_name("method")
    return method is not None and utf8[method.start_byte : method.end_byte] == b"autoload"


def is_type_only_import(node: Node, language: str, utf8: bytes) -> bool:
    """Return whether an import is never executed, because its names are only for a type checker."""
    if language == "python":
        return _is_for_type_checker(node, utf8)
    if language not in _JAVASCRIPT_LANGUAGES:
        return False
    statement = node
    while statement.type not in ("import_statement", "export_statement"):
        if statement.parent is None:
            return False
        statement = statement.parent
    return any(child.type in _TYPE_KEYWORDS for child in statement.children) or _names_are_types(statement)


def _is_for_type_checker(node: Node, utf8: bytes) -> bool:
    child, above = node, node.parent
    while above is not None:
        if above.type in ("if_statement", "elif_clause") and above.child_by_field_name("consequence") == child:
            condition = above.child_by_field_name("condition")
            if condition is not None and _TYPE_CHECKING_TEST.fullmatch(utf8, condition.start_byte, condition.end_byte):
                return True
        child, above = above, above.parent
    return False


def _names_are_types(statement: Node) -> bool:
    """Return whether each imported name is marked as a type: `import { type A, type B } from "./c"`."""
    clause = next(
        (child for child in statement.named_children if child.type in ("import_clause", "export_clause")), None
    )
    if clause is None:
        return False
    names = clause.named_children
    if clause.type == "import_clause":
        if len(names) != 1 or names[0].type != "named_imports":
            return False
        names = names[0].named_children
    specifiers = [name for name in names if name.type.endswith("_specifier")]
    return bool(specifiers) and all(name.children[0].type in _TYPE_KEYWORDS for name in specifiers)


def is_declaration_file(path: bytes) -> bool:
    """Return whether a file has the extension of type declarations (`.d.ts`), which are never executed."""
    return path.endswith(_DECLARATION_ENDINGS)
