"""What is written on purpose, or holds for a reason that stands elsewhere in the file: doubts.py does not tell it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.injected_names import around
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

# What looks like another language's: two signs and what could be counted up or down.
_COUNTED = re.compile(rb"(?:--|\+\+)[A-Za-z_][\w.]*(?:\[[^\]\n]*\])?")
_WIDTH_GIVEN = re.compile(rb"%[-+ #0]*(?:\*|\d+\.\*)")
_MAPPING = re.compile(rb"%\s*\(?\s*(?:locals|globals|vars)\s*\(")
_SETS_NAMES = re.compile(rb"\bglobals\(\)|\bsys\.modules\b|^def __getattr__\(|^(?:vars|locals)\(\)", re.MULTILINE)
_EXCEPT_OF_PYTHON_2 = re.compile(rb"[ \t]*except\b[^:#\n]+,[ \t]*[a-z_]\w*[ \t]*:")
_FIELD = re.compile(rb"[\w.]*\.field\s*\(")
_LOADER = re.compile(r"loader `(?:\w+\.)*(\w+)`")
_UNSAFE_LOADER = re.compile(r"C?(?:Full|Unsafe)?Loader")
_FIRST_LINE = re.compile(r"from line (\d+)")
_ELSE = re.compile(rb"\belse\b")
_QUOTED = re.compile(rb"['\"](\w+)['\"]")
# How a parameter is named or annotated that holds an exception.
_EXCEPTION = re.compile(rb"(?<![\w.])(?:e|ex|exc\w*|err|error|exception)\b|\b\w*(?:Exception|Error)\b")
_MARK_OF_TYPES = re.compile(
    rb"\b(?:ty:\s*ignore\[[^\]\n]{0,200}unresolved-reference|type:\s*ignore\[[^\]\n]{0,200}name-defined|"
    rb"pyright:\s*ignore\[[^\]\n]{0,200}reportUndefinedVariable)"
)
_OTHER_LOGGERS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(?:eliot|logbook|loguru|structlog|twisted)\b", re.MULTILINE)

_PARAMETERS_OF_TEST = re.compile(
    rb"(?:\bdef[ \t]+test\w*[ \t]*|@[\w.]*fixture\b[^\n]*\n[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*)\(([^)]{0,2000})\)"
)

# A longer scope is not looked through for each finding in it.
_SCOPE_BYTES_MAX = 262_144


def is_twice_negated(_file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    """`-(-x)`, or the sign of what is no variable: nobody takes that for a decrement."""
    return _COUNTED.fullmatch(text) is None


def is_mapping(_file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    """Names by their values: of a text without placeholders nothing is asked."""
    return _MAPPING.search(text) is not None


def _sets_names(file: SourceFile) -> bool:
    return _SETS_NAMES.search(file.utf8) is not None


def is_except_of_python_2(file: SourceFile, found: Diagnostic, _text: bytes) -> bool | None:
    """`except A, e:`, which Python 3.14 reads, as two exceptions."""
    return _EXCEPT_OF_PYTHON_2.match(file.utf8, file.line_starts[found.line - 1]) is not None


def is_of_except_by_condition(file: SourceFile, found: Diagnostic, text: bytes) -> bool | None:
    """What `except` takes is chosen by a condition; or it is how Python 2 names an exception."""
    return True if _ELSE.search(text) else is_except_of_python_2(file, found, text)


def is_replaced_by_itself(_file: SourceFile, found: Diagnostic, _text: bytes) -> bool | None:
    """A function that puts another one in its place when it is called: the `first` of that name stands below."""
    first = _FIRST_LINE.search(found.message)
    return True if first is not None and int(first[1]) > found.line else None


def is_fixture(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A parameter in a file whose tests take a fixture by that name."""
    is_parameter = any(each.type == "parameters" for each in around(node))
    return is_parameter and is_taken_by_pytest(file, file.utf8[node.start_byte : node.end_byte])


def is_taken_by_pytest(file: SourceFile, name: bytes) -> bool:
    """Whether a name is that of a parameter of a test or a fixture."""
    return name in file.derived(_taken_by_pytest)


def _taken_by_pytest(file: SourceFile) -> frozenset[bytes]:
    if b"test" not in file.utf8 and b"fixture" not in file.utf8:
        return frozenset()
    return frozenset(re.findall(rb"\w+", b" ".join(_PARAMETERS_OF_TEST.findall(file.utf8))))


def is_width_given(_file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    """A width that is a value, too: ruff counts one too few."""
    return _WIDTH_GIVEN.search(text) is not None


def is_named_again(file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    """A name of `__all__` in a module that sets names by text, or has this one as a text once more: as an alias."""
    return file.derived(_sets_names) or file.derived(_quoted)[text.strip(b"'\"")] > 1


def _quoted(file: SourceFile) -> Counter[bytes]:
    return Counter(_QUOTED.findall(file.utf8))


def is_ignored_for_type_checker(file: SourceFile, found: Diagnostic) -> bool:
    """A name that a checker of types was told not to look for."""
    start = file.line_starts[found.line - 1]
    end = file.utf8.find(b"\n", start)
    return _MARK_OF_TYPES.search(file.utf8, start, end if end >= 0 else len(file.utf8)) is not None


def is_reexport_or_alternative(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A name that a module or class has from elsewhere and gives to others; or one of several that others change."""
    assignment = next((each for each in around(node) if each.type == "assignment"), None)
    if assignment is None:
        return False
    targets, values = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    if targets is None or values is None or values.type == "assignment":
        return False
    if values.type in ("expression_list", "tuple"):
        left, right = (file.utf8[each.start_byte : each.end_byte] for each in (targets, values))
        return re.sub(rb"[\s()]", b"", left) != re.sub(rb"[\s()]", b"", right)
    *_, scope = around(node)
    return scope.type not in ("function_definition", "lambda")


def is_handler(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A function that is given an exception, and is called while that is handled."""
    *_, function = around(node)
    parameters = function.child_by_field_name("parameters")
    return (
        parameters is not None and _EXCEPTION.search(file.utf8, parameters.start_byte, parameters.end_byte) is not None
    )


def is_field(_file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    """A function that makes a field, named as that of `dataclasses`."""
    return _FIELD.match(text) is not None


def is_safe_loader(_file: SourceFile, found: Diagnostic, _text: bytes) -> bool | None:
    """A loader of YAML that is none of its own unsafe ones: what it is made of is said elsewhere."""
    loader = _LOADER.search(found.message)
    return loader is not None and _UNSAFE_LOADER.fullmatch(loader[1]) is None


def is_other_logger(file: SourceFile, _found: Diagnostic, _text: bytes) -> bool | None:
    """What logs here is no `logging`: it has other methods, and other placeholders."""
    return file.derived(_has_other_loggers)


def _has_other_loggers(file: SourceFile) -> bool:
    return _OTHER_LOGGERS.search(file.utf8) is not None


def is_read_between(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """A field that is only annotated before, or whose first value the class reads before it has the second."""
    owner = next((each for each in around(node) if each.type == "class_definition"), None)
    name = re.match(rb"\w+", file.utf8[node.start_byte : node.end_byte])
    if owner is None or name is None or node.start_byte - owner.start_byte > _SCOPE_BYTES_MAX:
        return False
    above = file.utf8[owner.start_byte : node.start_byte]
    if re.search(rb"(?m)^[ \t]*%s[ \t]*:[^=\n]+$" % name[0], above):
        return True
    return re.search(rb"(?<![\w.'\"])%s\b(?![ \t]*[:=])" % name[0], above) is not None


def is_unread(file: SourceFile, node: Node) -> bool:
    """One of several names of an assignment, which nothing reads in its function; at the top, in the file."""
    *_, scope = around(node)
    start, end = (0, len(file.utf8)) if scope.parent is None else (scope.start_byte, scope.end_byte)
    assignment = next((each for each in around(node) if each.type in ("assignment", "for_statement")), None)
    targets = assignment.child_by_field_name("left") if assignment is not None else None
    if targets is None or targets.type not in ("pattern_list", "tuple_pattern") or end - start > _SCOPE_BYTES_MAX:
        return False
    name = re.compile(rb"\b%s\b" % re.escape(file.utf8[node.start_byte : node.end_byte]))
    if name.search(file.utf8, targets.end_byte, end):
        return False
    return name.search(file.utf8, start, targets.start_byte) is None


def is_set_by_class(file: SourceFile, _found: Diagnostic, node: Node) -> bool:
    """An attribute that is no slot, where a metaclass or a descriptor of that name may take it."""
    name = file.utf8[node.start_byte : node.end_byte].rpartition(b".")[2]
    for each in around(node, through_functions=True):
        if each.type == "class_definition":
            if each.end_byte - each.start_byte > _SCOPE_BYTES_MAX:
                return False
            text = file.utf8[each.start_byte : each.end_byte]
            return b"metaclass" in text.partition(b"\n")[0] or bool(re.search(rb"\bdef\s+%s\b" % re.escape(name), text))
    return False
