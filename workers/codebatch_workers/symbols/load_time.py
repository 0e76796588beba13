"""The time at which an import is executed.

An import is executed when its file is loaded, later, or never. It is never executed if its names are only for type
checkers.

TypeScript erases an import if no name of it is used as a value in the file. Compilers that see one file at a time erase
the same imports, so exports of imported names count as uses of values. So do types in classes with decorators, because
decorators can need them when the program runs. A local name that hides an imported name is not recognised as another
name, so its uses count for the import.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.syntax.source import SourceFile

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
# Conditions in Python that are false when the program runs. mypy takes `MYPY` for true.
_TYPE_CHECKING = rb"\(?\s*(?:(?:\w+\.)?TYPE_CHECKING|MYPY|False|0)\s*\)?"
_FALSE_TEST = re.compile(rb"(?!.*\b(?:or|if|not)\b)(?:.*\band\s+)?%s(?:\s+and\b.*)?" % _TYPE_CHECKING, re.DOTALL)
_TRUE_TEST = re.compile(rb"not\s*%s" % _TYPE_CHECKING)
_MAIN_TEST = re.compile(rb"\(?\s*(?:__name__\s*==\s*[\"']__main__[\"']|[\"']__main__[\"']\s*==\s*__name__)\s*\)?")
# Types that TypeScript imports or exports by a form for which the grammar gets other text (syntax/grammar_gaps).
_TYPE_STATEMENT = re.compile(rb"(?:import|export)\s+type\s*(?:\*|[\w$]+\s*=)")
LANGUAGES_WITH_ERASED_IMPORTS = frozenset({"tsx", "typescript"})
_WORD_BYTE = re.compile(rb"[\w$\x80-\xff]")
_VALUE_NODES = frozenset({"identifier", "shorthand_property_identifier"})
# Names that JSX needs, although they are not written in it.
_JSX_NAMES = frozenset((b"React", b"Fragment", b"h", b"jsx", b"preact"))
_NODES_IN_QUERIES = frozenset(
    {"member_expression", "nested_identifier", "subscript_expression", "instantiation_expression"}
)
_CODE_NODES = frozenset({"statement_block", "program"})


def is_deferred_import(node: Node, language: str, utf8: bytes) -> bool:
    """Return whether an import is not yet executed when its file is loaded.

    This is true of imports in functions, of dynamic imports, of Ruby's `autoload`, and of imports in Python that run
    only if the file is the main program.
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
    if language == "python":
        return _is_under_condition(node, utf8, _MAIN_TEST)
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
        return _is_under_condition(node, utf8, _FALSE_TEST, _TRUE_TEST)
    if language not in _JAVASCRIPT_LANGUAGES:
        return False
    statement = node
    while statement.type not in ("import_statement", "export_statement"):
        if statement.parent is None:
            return False
        statement = statement.parent
    if any(child.type in _TYPE_KEYWORDS for child in statement.children):
        return True
    if _TYPE_STATEMENT.match(utf8, statement.start_byte):
        return True
    # In TypeScript, options decide whether such a statement is erased.
    return language == "javascript" and names_are_types(statement)


def _is_under_condition(
    node: Node, utf8: bytes, condition: re.Pattern[bytes], negated: re.Pattern[bytes] | None = None
) -> bool:
    """Return whether a node is in a branch of an `if` in Python that runs only if a test is true.

    The pattern `condition` matches the test of such a branch, and `negated` the test of an `if` whose `else` it is.
    """
    child, above = node, node.parent
    while above is not None:
        if above.type in ("if_statement", "elif_clause") and above.child_by_field_name("consequence") == child:
            if _matches_test(above, utf8, condition):
                return True
        elif negated is not None and child.type == "else_clause" and above.type == "if_statement":
            is_alone = all(part.type != "elif_clause" for part in above.named_children)
            if is_alone and _matches_test(above, utf8, negated):
                return True
        child, above = above, above.parent
    return False


def _matches_test(statement: Node, utf8: bytes, pattern: re.Pattern[bytes]) -> bool:
    test = statement.child_by_field_name("condition")
    return test is not None and pattern.fullmatch(utf8, test.start_byte, test.end_byte) is not None


def names_are_types(statement: Node) -> bool:
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


def erasable_imports(file: SourceFile) -> set[int]:
    """Return the start offsets of the import statements whose names the file uses at most as types."""
    erasable: set[int] = set()
    bound = deque(file.captures.get("bound", ()))
    for statement in file.captures.get("import", ()):
        start, end = statement.start_byte, statement.end_byte
        names: list[bytes] = []
        while bound and bound[0].start_byte < end:
            node = bound.popleft()
            names.append(file.utf8[node.start_byte : node.end_byte])
        if not names and all(child.type != "import_clause" for child in statement.named_children):
            continue  # It imports for its effects.
        if not any(_is_used_as_value(file, name, start, end) for name in names):
            erasable.add(start)
    return erasable


def _is_used_as_value(file: SourceFile, name: bytes, start: int, end: int) -> bool:
    """Return whether a name is used as a value outside the import at [`start`, `end`)."""
    assert file.tree is not None
    if name in _JSX_NAMES and (file.captures.get("element") or b"<>" in file.utf8):
        return True
    node_at = file.tree.root_node.descendant_for_byte_range
    for offset in _iter_offsets(file.utf8, name, start, end):
        node = node_at(offset, offset + len(name))
        if node is not None and node.end_byte == offset + len(name) and _is_value(file, node):
            return True
    return False


def _iter_offsets(utf8: bytes, name: bytes, import_start: int, import_end: int) -> Iterator[int]:
    """Yield the offsets of a name outside an import, first those after it. To find bytes is faster than a pattern."""
    for first, end in ((import_end, len(utf8)), (0, import_start)):
        start = utf8.find(name, first, end)
        while start >= 0:
            if not _WORD_BYTE.match(utf8, start + len(name)) and not _WORD_BYTE.match(utf8, max(0, start - 1), start):
                yield start
            start = utf8.find(name, start + 1, end)


def _is_value(file: SourceFile, node: Node) -> bool:
    if node.type == "type_identifier":
        return _is_in_decorated_class(file, node)
    if node.type not in _VALUE_NODES:
        return False
    above = node.parent
    while above is not None and above.type in _NODES_IN_QUERIES:
        above = above.parent
    if above is not None and above.type in ("nested_type_identifier", "type_query"):
        return _is_in_decorated_class(file, above)
    return above is None or above.type != "import_specifier"


def _is_in_decorated_class(file: SourceFile, node: Node) -> bool:
    """Return whether a type is written in the declarations of a class that has decorators, or of its members."""
    decorators = file.captures.get("decorated", ())
    above = node.parent if decorators else None
    while above is not None and above.type not in _CODE_NODES:
        if above.type == "class_body" and above.parent is not None:
            owner = above.parent.parent or above.parent
            start = owner.start_byte if owner.type == "export_statement" else above.parent.start_byte
            return any(start <= decorator.start_byte < above.end_byte for decorator in decorators)
        above = above.parent
    return False
