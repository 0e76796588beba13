"""Filters for findings of ruff that the rest of the file shows to be false positives.

A finding that matches a filter is not reported. Each filter is based on reviewed findings in real projects
(tests/signal/README.md), and uses only the file itself. If ruff uses a project's own configuration, no filter applies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from tree_sitter import Node

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.deferred_names import (
    is_bound_later,
    is_read_later,
    may_be_bound_later,
    may_be_read_later,
)
from codebatch_workers.lint.python.exports import has_reexports, is_export, may_hold_names
from codebatch_workers.lint.python.injected_names import (
    enclosing_nodes,
    is_bound_in_previous_iteration,
    is_defined_elsewhere,
    is_provided_by_runner,
    is_textually_defined,
)
from codebatch_workers.lint.python.intended_patterns import (
    formats_with_namespace,
    has_width_argument,
    is_conditional_except,
    is_dataclass_field,
    is_exception_handler,
    is_foreign_logger,
    is_ignored_for_type_checker,
    is_increment_lookalike,
    is_never_read,
    is_pytest_fixture,
    is_python_2_except,
    is_read_between,
    is_reexport_or_alternative,
    is_repeated_export,
    is_replaced_by_itself,
    is_safe_loader,
    is_set_by_class,
)
from codebatch_workers.lint.python.runner_names import is_runner_name
from codebatch_workers.lint.python.statements import node_in_function, node_in_statement
from codebatch_workers.syntax.source import SourceFile

# A filter that needs the smallest syntax node around the finding.
_NodeFilter = Callable[[SourceFile, Diagnostic, "Node"], bool]
# A filter that needs the text of the finding. It returns None if the text does not suffice for a decision.
_TextFilter = Callable[[SourceFile, Diagnostic, bytes], "bool | None"]

# Longer lines are not searched. They are generated, and every finding in such a line would search it again.
_LINES_BYTES_MAX = 10_000
# Suppression comments of pylint, bandit, LGTM and PyCharm, and those that only ruff versions newer than the pinned one
# understand. The pinned ruff applies its own suppression comments itself.
_SUPPRESSION_COMMENT = re.compile(rb"#\s*(?:pylint:\s*disable\s*=|nosec\b|lgtm\b|noinspection\b|ruff:\s*ignore\[)")
_EXPECTED_EXCEPTION = re.compile(rb"[Rr]aises|[Ww]arns|suppress")
_READ_NODES = ("identifier", "attribute", "subscript")
_BYTES_LITERAL = re.compile(rb"[rR]?[bB][rR]?[\"']")
_THROWAWAY_NAMES = frozenset({b"", b"dummy", b"ignore", b"ignored", b"junk", b"none", b"unused"})
# One name or attribute, or several separated by commas.
_NAME_PATTERN = rb"(?!(?:None|True|False)\b)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_NAMES_PATTERN = re.compile(rb"%s(?:,[ \t]*%s)*,?" % (_NAME_PATTERN, _NAME_PATTERN))
# Names of parameters whose default value is shared by all calls on purpose. The patterns below recognize other caches:
# default values that the function searches and fills.
_CACHE_NAME = re.compile(rb"^_|cache|memo", re.IGNORECASE)
_MEMBERSHIP_TEST = re.compile(rb"\bin\s+(\w+)\b(?!\s*[.\[(])")
_ITEM_ASSIGNMENT = re.compile(rb"(?<![\w.])(?=(\w+)\[[^\]\n]{0,200}\]\s*=(?!=))")
# Statements that change a named list, dictionary or set.
_COLLECTION_CHANGE = re.compile(
    rb"(?<![\w.])(?=(\w+)(?:"
    rb"\.(?:add|append|clear|discard|extend|insert|pop|popitem|remove|reverse|setdefault|sort|update)\s*\(|"
    rb"\s*\[[^\]\n]{0,200}\]\s*(?://|<<|>>|\*\*|[-+*/|&^%@])?=(?!=)|"
    rb"\s*[-+|&^*]=))|\bdel\s+(\w+)\s*\["
)


def is_doubtful_finding(file: SourceFile, finding: Diagnostic) -> bool:
    """Return whether a finding of ruff is probably false, or a comment for another linter suppresses it."""
    lines = _finding_lines(file, finding)
    if len(lines) > _LINES_BYTES_MAX:
        return False
    if _SUPPRESSION_COMMENT.search(lines):
        return True
    by_tree = _NODE_FILTERS.get(finding.code)
    by_text = _TEXT_FILTERS.get(finding.code)
    if by_tree is None and by_text is None:
        return False
    start, end = _finding_offsets(file, finding)
    answer = None if by_text is None else by_text(file, finding, file.utf8[start:end])
    if answer is not None:
        return answer
    if by_tree is None or not file.is_parsed:
        return False
    node = _spanning_node(file, finding.code, start, end)
    return node is not None and by_tree(file, finding, node)


def _spanning_node(file: SourceFile, code: str, start: int, end: int) -> Node | None:
    """Return the smallest node that spans the bytes [start, end), for a finding with the code `code`.

    If the code permits it, only the function or statement around these bytes is parsed.
    """
    node = None if code in _CODES_BEYOND_FUNCTIONS else node_in_function(file, start, end)
    if node is None and code not in _FILE_LEVEL_CODES:
        node = node_in_statement(file, start, end)
    if node is None and file.tree is not None:
        node = file.tree.root_node.descendant_for_byte_range(start, end)
    return node


def has_suppression_comment(file: SourceFile, finding: Diagnostic) -> bool:
    """Return whether a comment for another linter than ruff suppresses a finding."""
    lines = _finding_lines(file, finding)
    return len(lines) <= _LINES_BYTES_MAX and _SUPPRESSION_COMMENT.search(lines) is not None


def is_doubtful_by_file(file: SourceFile, finding: Diagnostic) -> bool:
    """Return whether a finding is doubtful because of the name or the whole content of its file.

    The line of the finding does not matter.
    """
    start, end = _finding_offsets(file, finding)
    match finding.code:
        case "F401":
            return has_reexports(file)
        case "F821":
            name = file.utf8[start:end]
            return is_runner_name(file, name) or is_provided_by_runner(file, name)
        case code if code in _FILE_LEVEL_CODES and file.tree is not None:
            return len([node for node in file.tree.root_node.named_children if node.type != "comment"]) == 1
    return False


def _finding_offsets(file: SourceFile, finding: Diagnostic) -> tuple[int, int]:
    return _byte_offset(file, finding.line, finding.column), _byte_offset(file, finding.end_line, finding.end_column)


def _finding_lines(file: SourceFile, finding: Diagnostic) -> bytes:
    """Return the first and the last line of a finding. Each is cut after _LINES_BYTES_MAX + 1 bytes."""
    first = _line_start(file, finding.line)
    return first if finding.end_line == finding.line else first + _line_start(file, finding.end_line)


def _line_start(file: SourceFile, line: int) -> bytes:
    starts = file.line_starts
    if line > len(starts):
        return b""
    start = starts[line - 1]
    end = starts[line] if line < len(starts) else len(file.utf8)
    return file.utf8[start : min(end, start + _LINES_BYTES_MAX + 1)]


def _byte_offset(file: SourceFile, line: int, column: int) -> int:
    starts = file.line_starts
    if line > len(starts):
        return len(file.utf8)
    start = starts[line - 1]
    if file.is_ascii:
        return start + column - 1
    end = starts[line] if line < len(starts) else len(file.utf8)
    return start + len(file.utf8[start:end].decode("utf-8")[: column - 1].encode("utf-8"))


def _is_plainly_read(_file: SourceFile, _finding: Diagnostic, text: bytes) -> bool | None:
    return True if _NAMES_PATTERN.fullmatch(text) else None


def _is_provided_by_text(file: SourceFile, finding: Diagnostic, text: bytes) -> bool | None:
    is_plain = is_ignored_for_type_checker(file, finding) or is_textually_defined(file, text)
    return None if is_plain is False and may_be_bound_later(file, text) else is_plain


def _is_in_exception_test(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether an expression statement is intended.

    Its purpose can be an exception, a side effect, or to mark names as used.
    """
    statement = node
    while statement.parent is not None and statement.parent.type == "expression_statement":
        statement = statement.parent
    expression = next(iter(statement.children), None) if statement.type == "expression_statement" else node
    if expression is not None and _is_read_expression(expression):
        return True
    if file.utf8[node.start_byte : node.end_byte].replace(b" ", b"").endswith(b"/0"):
        return True
    if (
        statement.parent is not None
        and statement.parent.type == "module"
        and _is_dunder_all(statement, statement.parent)
    ):
        return True
    inner = statement
    for ancestor in enclosing_nodes(statement):
        if ancestor.type == "try_statement" and ancestor.child_by_field_name("body") == inner:
            return True
        if ancestor.type == "with_statement":
            head = file.utf8[ancestor.start_byte : inner.start_byte]
            if _EXPECTED_EXCEPTION.search(head):
                return True
        inner = ancestor
    return False


def _is_read_expression(expression: Node) -> bool:
    """Return whether an expression only reads names, attributes or elements.

    If the expression is a list with plain names, the result is false.
    """
    if expression.type == "list":
        return all(child.type in _READ_NODES[1:] for child in expression.named_children)
    is_several = expression.type in ("expression_list", "tuple")
    return all(child.type in _READ_NODES for child in (expression.named_children if is_several else [expression]))


def _is_dunder_all(node: Node, parent: Node) -> bool:
    """Return whether `node` is the only statement of the module `parent`. Such a file is data in Python syntax."""
    return all(child == node or child.type == "comment" for child in parent.named_children)


def _is_provided_name(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    return is_defined_elsewhere(file, node) or is_bound_later(file, node)


def _may_be_unread(file: SourceFile, finding: Diagnostic, text: bytes) -> bool | None:
    return None if may_be_read_later(file, _finding_offsets(file, finding)[1], text) else False


def _is_read_later(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    return is_read_later(file, node)


def _is_interface_method(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether a method without `self` belongs to an interface of zope.

    Either the name of a base class contains `Interface`, or most methods of the class have no `self`.
    """
    body = next((ancestor.parent for ancestor in enclosing_nodes(node) if ancestor.type == "function_definition"), None)
    if body is not None and body.type == "decorated_definition":
        body = body.parent
    owner = body.parent if body is not None else None
    bases = owner.child_by_field_name("superclasses") if owner is not None else None
    if bases is not None and b"Interface" in file.utf8[bases.start_byte : bases.end_byte]:
        return True
    with_self, without_self = 0, 0
    for member in body.named_children if body is not None else ():
        parameters = member.child_by_field_name("parameters")
        if parameters is not None:
            first = next(iter(parameters.named_children), None)
            text = file.utf8[first.start_byte : first.end_byte] if first is not None else b""
            is_bound = text.partition(b":")[0].strip() in (b"self", b"cls", b"*args")
            with_self, without_self = with_self + is_bound, without_self + (not is_bound)
    return without_self > max(1, with_self)


def _is_negotiated(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether the protocol is `SSLv23`. Despite the name, this protocol negotiates the newest version."""
    return b"SSLv23" in file.utf8[node.start_byte : node.end_byte]


def _is_throwaway_name(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether a name is usual for values that are not needed, or is never read."""
    name = file.utf8[node.start_byte : node.end_byte]
    return len(name) == 1 or name.strip(b"_").lower() in _THROWAWAY_NAMES or is_never_read(file, node)


def _may_hold_names(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    return may_hold_names(file, node)


def _is_bytes_literal(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether a message is bytes. Python displays such a message with the prefix `b`."""
    return bool(_BYTES_LITERAL.match(file.utf8, node.start_byte))


def _is_bound_on_purpose(file: SourceFile, finding: Diagnostic, node: Node) -> bool:
    """Return whether a name is redefined on purpose.

    This is true if `except … as` binds it, or if it is a parameter that receives a pytest fixture.
    """
    return any(ancestor.type == "as_pattern_target" for ancestor in enclosing_nodes(node)) or is_pytest_fixture(
        file, finding, node
    )


def _is_call_result(_file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether the assigned value is a call. Two equal calls can return different values, as `object()` does."""
    assignment = next((ancestor for ancestor in enclosing_nodes(node) if ancestor.type == "assignment"), None)
    value = assignment.child_by_field_name("right") if assignment is not None else None
    return value is not None and value.type == "call"


def _is_intended_debugger(_file: SourceFile, finding: Diagnostic, node: Node) -> bool:
    """Return whether a debugger is only imported, or starts only if a condition is true."""
    return finding.message.startswith("Import ") or any(
        ancestor.type == "if_statement" for ancestor in enclosing_nodes(node)
    )


def _is_exact_comparison(_file: SourceFile, _finding: Diagnostic, text: bytes) -> bool | None:
    """Return whether a number is exact in binary. For example, `Decimal(1.25)` loses no precision."""
    # `Decimal` is used because it accepts any exponent, but `Fraction` does not.

    try:
        return Decimal(text.decode()) == Decimal(float(text))
    except (ValueError, ArithmeticError):
        return False


def _is_from_previous_iteration(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    return is_bound_in_previous_iteration(file, node)


def _is_cache_or_read_only(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether a mutable default value is harmless.

    This is true if the value is a cache that all calls are meant to share, or if the function only reads the value.
    """
    name: bytes | None = None
    for ancestor in enclosing_nodes(node):
        if ancestor.type in ("default_parameter", "typed_default_parameter") and name is None:
            name_node = ancestor.child_by_field_name("name")
            name = file.utf8[name_node.start_byte : name_node.end_byte] if name_node is not None else None
        body = ancestor.child_by_field_name("body") if ancestor.type in ("function_definition", "lambda") else None
        if body is not None and name is not None:
            text = file.utf8[body.start_byte : body.end_byte]
            looked_up = next((match for match in _MEMBERSHIP_TEST.finditer(text) if match[1] == name), None)
            filled = _ITEM_ASSIGNMENT.finditer(text, looked_up.end()) if looked_up else ()
            if _CACHE_NAME.search(name) or any(match[1] == name for match in filled):
                return True
            return not any(name in match.groups() for match in _COLLECTION_CHANGE.finditer(text))
    return False


_NODE_FILTERS: Mapping[str, _NodeFilter] = {
    "B006": _is_cache_or_read_only,
    "B015": _is_in_exception_test,
    "B018": _is_in_exception_test,
    "F811": _is_bound_on_purpose,
    "F821": _is_provided_name,
    "F823": _is_from_previous_iteration,
    "F841": _is_read_later,
    "LOG014": is_exception_handler,
    "PIE794": is_read_between,
    "PIE796": _is_call_result,
    "PLE0237": is_set_by_class,
    "PLE0302": _is_interface_method,
    "PLE0604": _may_hold_names,
    "PLW0127": is_reexport_or_alternative,
    "PLW0128": _is_throwaway_name,
    "RUF040": _is_bytes_literal,
    "S503": _is_negotiated,
    "T100": _is_intended_debugger,
}

_TEXT_FILTERS: Mapping[str, _TextFilter] = {
    "B002": is_increment_lookalike,
    "B018": _is_plainly_read,
    "B025": is_python_2_except,
    "B030": is_conditional_except,
    "F401": is_export,
    "F507": formats_with_namespace,
    "F811": is_replaced_by_itself,
    "F821": _is_provided_by_text,
    "F822": is_repeated_export,
    "F841": _may_be_unread,
    "G010": is_foreign_logger,
    "PLE1205": is_foreign_logger,
    "PLE1206": is_foreign_logger,
    "PLE1307": has_width_argument,
    "RUF009": is_dataclass_field,
    "RUF032": _is_exact_comparison,
    "S506": is_safe_loader,
}
"""Filters that do not need the tree.

Findings arrive after the tree was released, so a tree would have to be parsed again.
"""

_FILE_LEVEL_CODES = frozenset({"B015", "B018"})
"""Rules whose filters also need the other top-level statements of the file.

The filters of all other rules need only the nodes around the finding.
"""

_CODES_BEYOND_FUNCTIONS = frozenset({"F821", "PLE0237", "PLE0302"})
"""Rules whose filters need code outside the function that contains the finding."""
