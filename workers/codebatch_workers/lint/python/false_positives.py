"""What ruff finds and a reader of the source would not: these findings are not told.

Each class of them was seen where findings of real trees were judged by reading them (tests/signal/README.md), and can
be known from the file alone. Where a project's own configuration says what is looked for, nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.deferred_names import (
    is_bound_later,
    is_read_later,
    may_be_bound_later,
    may_be_read_later,
)
from codebatch_workers.lint.python.exports import is_export, is_for_others, may_be_names
from codebatch_workers.lint.python.injected_names import (
    around,
    is_bound_in_previous_iteration,
    is_given,
    is_plainly_given,
    is_provided_by_runner,
)
from codebatch_workers.lint.python.intended_patterns import (
    is_except_of_python_2,
    is_field,
    is_fixture,
    is_handler,
    is_ignored_for_type_checker,
    is_mapping,
    is_named_again,
    is_of_except_by_condition,
    is_other_logger,
    is_read_between,
    is_reexport_or_alternative,
    is_replaced_by_itself,
    is_safe_loader,
    is_set_by_class,
    is_twice_negated,
    is_unread,
    is_width_given,
)
from codebatch_workers.lint.python.runner_names import is_given_by_runner
from codebatch_workers.lint.python.statements import node_in_function, node_in_statement
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

# What a finding is in: the smallest node there.
_Doubt = Callable[[SourceFile, Diagnostic, "Node"], bool]
# What is written where a finding is; None where that does not tell.
_DoubtByText = Callable[[SourceFile, Diagnostic, bytes], "bool | None"]

# Whoever writes longer lines is a program, and the longest would be looked at for each of its findings.
_LINES_BYTES_MAX = 10_000
# What says in its line to pylint, bandit, LGTM or PyCharm that this is meant so, or to ruffs newer than the one that is
# pinned; other marks for ruff it heeds itself.
_MARK = re.compile(rb"#\s*(?:pylint:\s*disable\s*=|nosec\b|lgtm\b|noinspection\b|ruff:\s*ignore\[)")
_RAISES = re.compile(rb"[Rr]aises|[Ww]arns|suppress")
_READ = ("identifier", "attribute", "subscript")
_BYTES = re.compile(rb"[rR]?[bB][rR]?[\"']")
_NOT_NEEDED = frozenset({b"", b"dummy", b"ignore", b"ignored", b"junk", b"none", b"unused"})
# Names and attributes, one or several.
_NAME = rb"(?!(?:None|True|False)\b)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_NAMES = re.compile(rb"%s(?:,[ \t]*%s)*,?" % (_NAME, _NAME))
# A default that is kept from call to call on purpose: what is named so, or looked up and filled.
_KEPT = re.compile(rb"^_|cache|memo", re.IGNORECASE)
_LOOKED_UP = re.compile(rb"\bin\s+(\w+)\b(?!\s*[.\[(])")
_FILLED = re.compile(rb"(?<![\w.])(?=(\w+)\[[^\]\n]{0,200}\]\s*=(?!=))")
# What changes a list, dictionary or set that a name stands for.
_CHANGED = re.compile(
    rb"(?<![\w.])(?=(\w+)(?:"
    rb"\.(?:add|append|clear|discard|extend|insert|pop|popitem|remove|reverse|setdefault|sort|update)\s*\(|"
    rb"\s*\[[^\]\n]{0,200}\]\s*(?://|<<|>>|\*\*|[-+*/|&^%@])?=(?!=)|"
    rb"\s*[-+|&^*]=))|\bdel\s+(\w+)\s*\["
)


def is_doubtful(file: SourceFile, found: Diagnostic) -> bool:
    """Whether a finding of ruff's is one of a class that is mostly false, or marked as meant so for another linter."""
    lines = _lines(file, found)
    if len(lines) > _LINES_BYTES_MAX:
        return False
    if _MARK.search(lines):
        return True
    doubt = _DOUBTS.get(found.code)
    by_text = _DOUBTS_BY_TEXT.get(found.code)
    if doubt is None and by_text is None:
        return False
    start, end = _range(file, found)
    told = None if by_text is None else by_text(file, found, file.utf8[start:end])
    if told is not None:
        return told
    if doubt is None or not file.is_parsed:
        return False
    node = _node(file, found.code, start, end)
    return node is not None and doubt(file, found, node)


def _node(file: SourceFile, code: str, start: int, end: int) -> Node | None:
    """The smallest node that spans some bytes, in a tree of as much as a doubt looks at."""
    node = None if code in _BEYOND_FUNCTIONS else node_in_function(file, start, end)
    if node is None and code not in _OF_WHOLE_FILES:
        node = node_in_statement(file, start, end)
    if node is None and file.tree is not None:
        node = file.tree.root_node.descendant_for_byte_range(start, end)
    return node


def is_marked(file: SourceFile, found: Diagnostic) -> bool:
    """Whether a finding is marked as meant so, for another linter than ruff."""
    lines = _lines(file, found)
    return len(lines) <= _LINES_BYTES_MAX and _MARK.search(lines) is not None


def is_doubtful_by_file(file: SourceFile, found: Diagnostic) -> bool:
    """Whether a finding is doubtful for what the whole file is, be it by its name: there its line has no say."""
    start, end = _range(file, found)
    match found.code:
        case "F401":
            return is_for_others(file)
        case "F821":
            name = file.utf8[start:end]
            return is_given_by_runner(file, name) or is_provided_by_runner(file, name)
        case code if code in _OF_WHOLE_FILES and file.tree is not None:
            return len([each for each in file.tree.root_node.named_children if each.type != "comment"]) == 1
    return False


def _range(file: SourceFile, found: Diagnostic) -> tuple[int, int]:
    return _offset(file, found.line, found.column), _offset(file, found.end_line, found.end_column)


def _lines(file: SourceFile, found: Diagnostic) -> bytes:
    """The first line of a finding and its last one, each as far as it is looked at."""
    first = _line(file, found.line)
    return first if found.end_line == found.line else first + _line(file, found.end_line)


def _line(file: SourceFile, line: int) -> bytes:
    starts = file.line_starts
    if line > len(starts):
        return b""
    start = starts[line - 1]
    end = starts[line] if line < len(starts) else len(file.utf8)
    return file.utf8[start : min(end, start + _LINES_BYTES_MAX + 1)]


def _offset(file: SourceFile, line: int, column: int) -> int:
    starts = file.line_starts
    if line > len(starts):
        return len(file.utf8)
    start = starts[line - 1]
    if file.is_ascii:
        return start + column - 1
    end = starts[line] if line < len(starts) else len(file.utf8)
    return start + len(file.utf8[start:end].decode("utf-8")[: column - 1].encode("utf-8"))


def _is_plainly_read(_file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    return True if _NAMES.fullmatch(text) else None


def _is_plainly_given(file: SourceFile, found: Diagnostic, text: bytes) -> bool | None:
    is_plain = is_ignored_for_type_checker(file, found) or is_plainly_given(file, text)
    return None if is_plain is False and may_be_bound_later(file, text) else is_plain


def _is_tried(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """An expression for what it raises, for what reading it does, or names that are told to be used."""
    said = node
    while said.parent is not None and said.parent.type == "expression_statement":
        said = said.parent
    expression = next(iter(said.children), None) if said.type == "expression_statement" else node
    if expression is not None and _is_read(expression):
        return True
    if file.utf8[node.start_byte : node.end_byte].replace(b" ", b"").endswith(b"/0"):
        return True
    if said.parent is not None and said.parent.type == "module" and _is_all(said, said.parent):
        return True
    inner = said
    for each in around(said):
        if each.type == "try_statement" and each.child_by_field_name("body") == inner:
            return True
        if each.type == "with_statement":
            head = file.utf8[each.start_byte : inner.start_byte]
            if _RAISES.search(head):
                return True
        inner = each
    return False


def _is_read(expression: Node) -> bool:
    """A name, an attribute or an element, or several of them; in a list no names, of which nothing is read."""
    if expression.type == "list":
        return all(each.type in _READ[1:] for each in expression.named_children)
    is_several = expression.type in ("expression_list", "tuple")
    return all(each.type in _READ for each in (expression.named_children if is_several else [expression]))


def _is_all(node: Node, parent: Node) -> bool:
    """Whether a module is one expression: data that is written as Python."""
    return all(each == node or each.type == "comment" for each in parent.named_children)


def _is_given_name(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    return is_given(file, node) or is_bound_later(file, node)


def _may_be_unread(file: SourceFile, found: Diagnostic, text: bytes) -> bool | None:
    return None if may_be_read_later(file, _range(file, found)[1], text) else False


def _is_read_later(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    return is_read_later(file, node)


def _is_of_interface(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A method of an interface as zope writes them, without `self`: most of its class have none."""
    body = next((each.parent for each in around(node) if each.type == "function_definition"), None)
    if body is not None and body.type == "decorated_definition":
        body = body.parent
    owner = body.parent if body is not None else None
    bases = owner.child_by_field_name("superclasses") if owner is not None else None
    if bases is not None and b"Interface" in file.utf8[bases.start_byte : bases.end_byte]:
        return True
    with_self, without = 0, 0
    for each in body.named_children if body is not None else ():
        parameters = each.child_by_field_name("parameters")
        if parameters is not None:
            first = next(iter(parameters.named_children), None)
            text = file.utf8[first.start_byte : first.end_byte] if first is not None else b""
            is_bound = text.partition(b":")[0].strip() in (b"self", b"cls", b"*args")
            with_self, without = with_self + is_bound, without + (not is_bound)
    return without > max(1, with_self)


def _is_negotiated(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """`SSLv23` is the old name of what agrees on the newest protocol that both sides know."""
    return b"SSLv23" in file.utf8[node.start_byte : node.end_byte]


def _is_thrown_away(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A name for parts that nobody needs."""
    name = file.utf8[node.start_byte : node.end_byte]
    return len(name) == 1 or name.strip(b"_").lower() in _NOT_NEEDED or is_unread(file, node)


def _may_be_names(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    return may_be_names(file, node)


def _is_bytes(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A message in bytes: it is shown, with a `b` in front."""
    return bool(_BYTES.match(file.utf8, node.start_byte))


def _is_bound_on_purpose(file: SourceFile, found: Diagnostic, node: Node) -> bool:
    """The name of an exception, which each `except` binds anew; or a fixture."""
    return any(each.type == "as_pattern_target" for each in around(node)) or is_fixture(file, found, node)


def _is_made_anew(_file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A value that a call makes: two of them may differ, as `object()` does."""
    assignment = next((each for each in around(node) if each.type == "assignment"), None)
    value = assignment.child_by_field_name("right") if assignment is not None else None
    return value is not None and value.type == "call"


def _is_wanted_debugger(_file: SourceFile, found: Diagnostic, node: Node) -> bool:
    """A debugger that something asks for: one that is imported is not yet called, one below an `if` was wanted."""
    return found.message.startswith("Import ") or any(each.type == "if_statement" for each in around(node))


def _is_exact(_file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    """A number that is no other in binary: `Decimal(1.25)` loses nothing."""
    from decimal import Decimal  # rarely needed; unlike a fraction it holds any exponent as it is written

    try:
        return Decimal(text.decode()) == Decimal(float(text))
    except (ValueError, ArithmeticError):
        return False


def _is_of_turn_before(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    return is_bound_in_previous_iteration(file, node)


def _is_kept_or_read(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A default that is there to be kept, or that the function only reads: that all calls share it shows nowhere."""
    name: bytes | None = None
    for each in around(node):
        if each.type in ("default_parameter", "typed_default_parameter") and name is None:
            named = each.child_by_field_name("name")
            name = file.utf8[named.start_byte : named.end_byte] if named is not None else None
        body = each.child_by_field_name("body") if each.type in ("function_definition", "lambda") else None
        if body is not None and name is not None:
            text = file.utf8[body.start_byte : body.end_byte]
            looked_up = next((each for each in _LOOKED_UP.finditer(text) if each[1] == name), None)
            filled = _FILLED.finditer(text, looked_up.end()) if looked_up else ()
            if _KEPT.search(name) or any(each[1] == name for each in filled):
                return True
            return not any(name in each.groups() for each in _CHANGED.finditer(text))
    return False


_DOUBTS: Mapping[str, _Doubt] = {
    "B006": _is_kept_or_read,
    "B015": _is_tried,
    "B018": _is_tried,
    "F811": _is_bound_on_purpose,
    "F821": _is_given_name,
    "F823": _is_of_turn_before,
    "F841": _is_read_later,
    "LOG014": is_handler,
    "PIE794": is_read_between,
    "PIE796": _is_made_anew,
    "PLE0237": is_set_by_class,
    "PLE0302": _is_of_interface,
    "PLE0604": _may_be_names,
    "PLW0127": is_reexport_or_alternative,
    "PLW0128": _is_thrown_away,
    "RUF040": _is_bytes,
    "S503": _is_negotiated,
    "T100": _is_wanted_debugger,
}

_DOUBTS_BY_TEXT: Mapping[str, _DoubtByText] = {
    "B002": is_twice_negated,
    "B018": _is_plainly_read,
    "B025": is_except_of_python_2,
    "B030": is_of_except_by_condition,
    "F401": is_export,
    "F507": is_mapping,
    "F811": is_replaced_by_itself,
    "F821": _is_plainly_given,
    "F822": is_named_again,
    "F841": _may_be_unread,
    "G010": is_other_logger,
    "PLE1205": is_other_logger,
    "PLE1206": is_other_logger,
    "PLE1307": is_width_given,
    "RUF009": is_field,
    "RUF032": _is_exact,
    "S506": is_safe_loader,
}
"""What is told without the tree, which is no longer there when ruff has spoken: it would have to be made again."""

_OF_WHOLE_FILES = frozenset({"B015", "B018"})
"""Of these it matters what else is at the top of the file, where they are there; of all others what they are in."""

_BEYOND_FUNCTIONS = frozenset({"F821", "PLE0237", "PLE0302"})
"""Of these it matters what the function is in; of all others nothing that is around it."""

DOUBTED = frozenset((*_DOUBTS, *_DOUBTS_BY_TEXT))
"""The rules of which not all is told."""
