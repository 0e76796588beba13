"""Names in Python code that runs later than its position suggests: in functions, lambdas and generators.

ruff assumes that code runs in text order, which is not always true. If an `except` clause calls a function, this
function can use the name that the clause gives to the exception. A generator can use all names that are bound before it
is consumed.
"""

from __future__ import annotations

import re
from itertools import takewhile

from tree_sitter import Node

from codebatch_workers.lint.python.injected_names import enclosing_nodes
from codebatch_workers.syntax.source import SourceFile

_FUNCTION_NODES = frozenset({"function_definition", "lambda"})
_DEFERRED_NODES = _FUNCTION_NODES | {"generator_expression"}
_BINDING_NODES = frozenset({"as_pattern_target", "global_statement", "lambda_parameters", "parameters"})
_EXCEPT_CLAUSE = re.compile(rb"([ \t]*)except\b")
# Builtins that consume a generator before they return.
_GENERATOR_CONSUMERS = frozenset(b"all any bytes dict frozenset list max min next set sorted sum tuple".split())


def is_bound_later(file: SourceFile, node: Node) -> bool:
    """Return whether a name for which ruff finds no binding can be bound when the code around the name runs."""
    name = file.utf8[node.start_byte : node.end_byte]
    ancestors = list(enclosing_nodes(node, through_functions=True))
    function = next((index for index, ancestor in enumerate(ancestors) if ancestor.type in _FUNCTION_NODES), None)
    if function is not None and _is_bound_around(file, name, ancestors[function], ancestors[function + 1 :]):
        return True
    generator = next((ancestor for ancestor in ancestors if ancestor.type == "generator_expression"), None)
    if generator is None or _is_in_first_iterable(node, generator) or _is_generator_consumed(file, generator):
        return False
    classes = (ancestor.child_by_field_name("name") for ancestor in ancestors if ancestor.type == "class_definition")
    if any(ancestor is not None and file.utf8[ancestor.start_byte : ancestor.end_byte] == name for ancestor in classes):
        return True
    return _binding_pattern(name).search(file.utf8, generator.end_byte) is not None


def may_be_bound_later(file: SourceFile, name: bytes) -> bool:
    """Return whether the text of a file contains a statement, at any place, that binds or deletes a name."""
    if _binding_pattern(name).search(file.utf8) is not None:
        return True
    return re.search(rb"\b(?:as|del\b[^\n]*)[ \t(]%s\b" % re.escape(name), file.utf8) is not None


def may_be_read_later(file: SourceFile, end: int, name: bytes) -> bool:
    """Return whether the name of an exception occurs again in its `except` clause, after the offset `end`."""
    start = file.utf8.rfind(b"\n", 0, end) + 1
    head = _EXCEPT_CLAUSE.match(file.utf8, start)
    if head is None:
        return False
    outside = re.compile(rb"\n(?![ \t]{%d}|[ \t\r]*(?:#|\n))" % (len(head[1]) + 1)).search(file.utf8, end)
    body = file.utf8[end : outside.start() if outside else len(file.utf8)]
    return re.search(rb"\b%s\b" % re.escape(name), body) is not None


def is_read_later(file: SourceFile, node: Node) -> bool:
    """Return whether deferred code in an `except` clause reads the name of the clause's exception."""
    name = file.utf8[node.start_byte : node.end_byte]
    clause = next((ancestor for ancestor in enclosing_nodes(node) if ancestor.type.startswith("except_")), None)
    return clause is not None and _reads_name_deferred(file, name, clause)


def _is_bound_around(file: SourceFile, name: bytes, function: Node, ancestors: list[Node]) -> bool:
    """Return whether an `except` clause around `function` binds a name, or later code deletes the name.

    `ancestors` are the nodes around `function`. Only deletions after `function` and in the same scope count.
    """
    for ancestor in ancestors:
        if ancestor.type.startswith("except_"):
            alias = next((child for child in ancestor.named_children if child.type == "as_pattern"), None)
            target = alias.child_by_field_name("alias") if alias is not None else None
            if target is not None and file.utf8[target.start_byte : target.end_byte] == name:
                return True
    scope = next((ancestor for ancestor in ancestors if ancestor.type in _FUNCTION_NODES), None)
    scope_end = scope.end_byte if scope is not None else len(file.utf8)
    deleted = re.compile(rb"(?m)^[ \t]*del\b[^\n#]*(?<![\w.])%s\b" % re.escape(name))
    return deleted.search(file.utf8, function.end_byte, scope_end) is not None


def _is_in_first_iterable(node: Node, generator: Node) -> bool:
    """Return whether a name is in the first iterable of a generator.

    Python evaluates this iterable when the generator is created.
    """
    clause = next((child for child in generator.named_children if child.type == "for_in_clause"), None)
    right = clause.child_by_field_name("right") if clause is not None else None
    return right is not None and right.start_byte <= node.start_byte < right.end_byte


def _is_generator_consumed(file: SourceFile, generator: Node) -> bool:
    """Return whether a generator is consumed where it is created: `any(x for x in y)`."""
    parent = generator.parent
    while parent is not None and parent.type in ("argument_list", "parenthesized_expression"):
        parent = parent.parent
    if parent is None or parent.type in ("for_statement", "for_in_clause", "list_splat"):
        return True
    called = parent.child_by_field_name("function") if parent.type == "call" else None
    if called is None:
        return False
    text = file.utf8[called.start_byte : called.end_byte]
    return text in _GENERATOR_CONSUMERS or text.endswith(b".join")


def _binding_pattern(name: bytes) -> re.Pattern[bytes]:
    """Return a pattern for statements that bind `name`."""
    return re.compile(
        rb"(?m)^[ \t]*(?:(?:async[ \t]+)?(?:def|class)[ \t]+%(name)s\b|%(name)s[ \t]*(?::[^=\n]*)?=(?!=)"
        rb"|(?:from[ \t][^\n]*)?import\b[^\n]*\b%(name)s\b)" % {b"name": re.escape(name)}
    )


def _reads_name_deferred(file: SourceFile, name: bytes, clause: Node) -> bool:
    """Return whether deferred code in a clause reads `name`."""
    word = re.compile(rb"\b%s\b" % re.escape(name))
    for match in word.finditer(file.utf8[clause.start_byte : clause.end_byte]):
        start, end = clause.start_byte + match.start(), clause.start_byte + match.end()
        node = clause.descendant_for_byte_range(start, end)
        if node is None or node.type != "identifier" or not _is_read_access(node):
            continue
        inner = takewhile(lambda ancestor: ancestor != clause, enclosing_nodes(node, through_functions=True))
        deferred = [ancestor for ancestor in inner if ancestor.type in _DEFERRED_NODES]
        parameters = [ancestor.child_by_field_name("parameters") for ancestor in deferred]
        if deferred and not any(ancestor is not None and word.search(ancestor.text or b"") for ancestor in parameters):
            return True
    return False


def _is_read_access(node: Node) -> bool:
    """Return whether an identifier is read.

    Attributes, keywords of arguments, parameters and assigned names are not read.
    """
    parent = node.parent
    if parent is None or parent.type in _BINDING_NODES:
        return False
    return all(parent.child_by_field_name(field) != node for field in ("attribute", "name", "left"))
