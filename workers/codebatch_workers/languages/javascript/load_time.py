"""The time at which an import in JavaScript or TypeScript is executed.

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

from codebatch_workers.syntax.nodes import ancestors, innermost
from codebatch_workers.syntax.source import SourceFile

_FUNCTION_NODES = frozenset(
    [
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "generator_function",
        "generator_function_declaration",
    ]
)
# Nodes that can be between a function and its immediate call, as in `(function () {}).call(this)`.
_NODES_AROUND_CALLED = frozenset({"parenthesized_expression", "member_expression"})
_TYPE_KEYWORDS = frozenset({"type", "typeof"})
# Types that TypeScript imports or exports by a form for which the grammar gets other text (syntax/grammar_gaps).
_TYPE_STATEMENT = re.compile(rb"(?:import|export)\s+type\s*(?:\*|[\w$]+\s*=)")
_WORD_BYTE = re.compile(rb"[\w$\x80-\xff]")
_VALUE_NODES = frozenset({"identifier", "shorthand_property_identifier"})
# Names that JSX needs, although they are not written in it.
_JSX_NAMES = frozenset((b"React", b"Fragment", b"h", b"jsx", b"preact"))
_NODES_IN_QUERIES = frozenset(
    {"member_expression", "nested_identifier", "subscript_expression", "instantiation_expression"}
)
_CODE_NODES = frozenset({"statement_block", "program"})
_MODULE_STATEMENTS = frozenset({"export_statement", "import_statement"})


def is_deferred(node: Node, _utf8: bytes) -> bool:
    """Return whether an import is in a function, or is dynamic and not awaited.

    The promise of `import()` resolves after the file has run, unless the file awaits it.
    """
    is_awaited = False
    for above in ancestors(node):
        if above.type in _FUNCTION_NODES and not _is_called_at_once(above):
            return True
        is_awaited = is_awaited or above.type == "await_expression"
    return not is_awaited and _is_dynamic_import(node)


def _is_called_at_once(function: Node) -> bool:
    child, above = function, function.parent
    while above is not None and above.type in _NODES_AROUND_CALLED:
        child, above = above, above.parent
    return above is not None and above.type == "call_expression" and above.child_by_field_name("function") == child


def _is_dynamic_import(node: Node) -> bool:
    call = node.parent.parent if node.parent is not None else None
    function = call.child_by_field_name("function") if call is not None else None
    return function is not None and function.type == "import"


def is_type_only(node: Node, utf8: bytes) -> bool:
    """Return whether a statement in TypeScript imports, exports or augments only types: `declare module "./m" {…}`."""
    if node.parent is not None and node.parent.type == "module":
        return True
    statement = innermost(node, _MODULE_STATEMENTS)
    if statement is None:
        return False
    if any(child.type in _TYPE_KEYWORDS for child in statement.children):
        return True
    return _TYPE_STATEMENT.match(utf8, statement.start_byte) is not None


def is_flow_type_only(node: Node, utf8: bytes) -> bool:
    """Return whether a statement in JavaScript imports or exports only types.

    In TypeScript, options decide whether a statement is erased in which each name is marked as a type.
    """
    statement = innermost(node, _MODULE_STATEMENTS)
    return statement is not None and (is_type_only(statement, utf8) or _names_are_types(statement))


def is_erasable(file: SourceFile, node: Node) -> bool:
    """Return whether TypeScript erases the import or export that contains a node, if no option prevents this."""
    statement = innermost(node, _MODULE_STATEMENTS)
    if statement is None:
        return False
    if statement.type == "export_statement":
        return _names_are_types(statement)
    return statement.start_byte in file.derived(_erasable_imports)


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


def _erasable_imports(file: SourceFile) -> set[int]:
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
