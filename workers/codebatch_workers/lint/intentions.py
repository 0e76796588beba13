"""What is written on purpose, or holds for a reason that stands elsewhere in the file: doubts.py does not tell it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.given_names import around
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

# What looks like another language's: two signs and what could be counted up or down.
_COUNTED = re.compile(rb"(?:--|\+\+)[A-Za-z_][\w.]*(?:\[[^\]\n]*\])?")
_MAPPING = re.compile(rb"%\s*\(?\s*(?:locals|globals|vars)\s*\(")
_SETS_NAMES = re.compile(rb"\bglobals\(\)|\bsys\.modules\b|^def __getattr__\(|^(?:vars|locals)\(\)", re.MULTILINE)
_EXCEPT_OF_PYTHON_2 = re.compile(rb"[ \t]*except\b[^:#\n]+,[ \t]*[a-z_]\w*[ \t]*:")
_FIELD = re.compile(rb"[\w.]*\.field\s*\(")
_LOADER = re.compile(r"loader `(?:\w+\.)*(\w+)`")
_UNSAFE_LOADER = re.compile(r"C?(?:Full|Unsafe)?Loader")
_OTHER_LOGGERS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(?:eliot|logbook|loguru|structlog|twisted)\b", re.MULTILINE)

# A longer scope is not looked through for each finding in it.
_SCOPE_BYTES_MAX = 262_144


def is_twice_negated(_file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    """`-(-x)`, or the sign of what is no variable: nobody takes that for a decrement."""
    return _COUNTED.fullmatch(text) is None


def is_mapping(_file: SourceFile, _found: Diagnostic, text: bytes) -> bool | None:
    """Names by their values: of a text without placeholders nothing is asked."""
    return _MAPPING.search(text) is not None


def sets_names_of_module(file: SourceFile, _found: Diagnostic, _text: bytes) -> bool | None:
    """A module that sets its names by text, or makes them when they are asked for."""
    return file.derived(_sets_names)


def _sets_names(file: SourceFile) -> bool:
    return _SETS_NAMES.search(file.utf8) is not None


def is_except_of_python_2(file: SourceFile, found: Diagnostic, _text: bytes) -> bool | None:
    """`except A, e:`, which Python 3.14 reads, as two exceptions."""
    return _EXCEPT_OF_PYTHON_2.match(file.utf8, file.line_starts[found.line - 1]) is not None


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
