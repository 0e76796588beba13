"""Code patterns that ruff reports, although they are intended or the rest of the file justifies them.

false_positives.py uses them as filters.
"""

from __future__ import annotations

import re
from collections import Counter

from tree_sitter import Node

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.injected_names import enclosing_nodes
from codebatch_workers.syntax.source import SourceFile

# Two signs before a variable: `--i`. Readers could take them for the decrement or increment of other languages.
_INCREMENT_LOOKALIKE = re.compile(rb"(?:--|\+\+)[A-Za-z_][\w.]*(?:\[[^\]\n]*\])?")
_WIDTH_PLACEHOLDER = re.compile(rb"%[-+ #0]*(?:\*|\d+\.\*)")
_NAMESPACE_MAPPING = re.compile(rb"%\s*\(?\s*(?:locals|globals|vars)\s*\(")
_GLOBALS_ASSIGNMENT = re.compile(
    rb"\bglobals\(\)|\bsys\.modules\b|^def __getattr__\(|^(?:vars|locals)\(\)", re.MULTILINE
)
_PYTHON_2_EXCEPT = re.compile(rb"[ \t]*except\b[^:#\n]+,[ \t]*[a-z_]\w*[ \t]*:")
_FIELD_CALL = re.compile(rb"[\w.]*\.field\s*\(")
_LOADER_NAME = re.compile(r"loader `(?:\w+\.)*(\w+)`")
_UNSAFE_LOADER = re.compile(r"C?(?:Full|Unsafe)?Loader")
_FIRST_LINE_IN_MESSAGE = re.compile(r"from line (\d+)")
_ELSE_KEYWORD = re.compile(rb"\belse\b")
_QUOTED_NAME = re.compile(rb"['\"](\w+)['\"]")
# Names or annotations of parameters that receive an exception.
_EXCEPTION_PARAMETER = re.compile(rb"(?<![\w.])(?:e|ex|exc\w*|err|error|exception)\b|\b\w*(?:Exception|Error)\b")
_TYPE_CHECKER_COMMENT = re.compile(
    rb"\b(?:ty:\s*ignore\[[^\]\n]{0,200}unresolved-reference|type:\s*ignore\[[^\]\n]{0,200}name-defined|"
    rb"pyright:\s*ignore\[[^\]\n]{0,200}reportUndefinedVariable)"
)
_OTHER_LOGGER_IMPORT = re.compile(
    rb"^[ \t]*(?:from|import)[ \t]+(?:eliot|logbook|loguru|structlog|twisted)\b", re.MULTILINE
)

_TEST_PARAMETERS = re.compile(
    rb"(?:\bdef[ \t]+test\w*[ \t]*|@[\w.]*fixture\b[^\n]*\n[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*)\(([^)]{0,2000})\)"
)

# Larger scopes are not searched, because every finding in a scope would search it again.
_SCOPE_BYTES_MAX = 262_144


def is_increment_lookalike(_file: SourceFile, _finding: Diagnostic, text: bytes) -> bool | None:
    """Return whether the code cannot be mistaken for a decrement.

    This is true of `-(-x)`, and of two signs before something else than a variable.
    """
    return _INCREMENT_LOOKALIKE.fullmatch(text) is None


def formats_with_namespace(_file: SourceFile, _finding: Diagnostic, text: bytes) -> bool | None:
    """Return whether the arguments of a format are all names of a scope, such as `locals()`.

    Unused ones are then normal.
    """
    return _NAMESPACE_MAPPING.search(text) is not None


def _sets_global_names(file: SourceFile) -> bool:
    return _GLOBALS_ASSIGNMENT.search(file.utf8) is not None


def is_python_2_except(file: SourceFile, finding: Diagnostic, _text: bytes) -> bool | None:
    """Return whether the code is Python 2's `except A, e:`, which Python 3.14 parses as a tuple of two exceptions."""
    return _PYTHON_2_EXCEPT.match(file.utf8, file.line_starts[finding.line - 1]) is not None


def is_conditional_except(file: SourceFile, finding: Diagnostic, text: bytes) -> bool | None:
    """Return whether an `except` clause computes its exception type by a condition, or has the syntax of Python 2."""
    return True if _ELSE_KEYWORD.search(text) else is_python_2_except(file, finding, text)


def is_replaced_by_itself(_file: SourceFile, finding: Diagnostic, _text: bytes) -> bool | None:
    """Return whether a function replaces itself when it is called.

    In this case, the definition that ruff calls the first one is below the reported one.
    """
    first = _FIRST_LINE_IN_MESSAGE.search(finding.message)
    return True if first is not None and int(first[1]) > finding.line else None


def is_pytest_fixture(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether a node is a parameter with a name that pytest passes to a test or fixture in this file."""
    is_parameter = any(ancestor.type == "parameters" for ancestor in enclosing_nodes(node))
    return is_parameter and is_pytest_parameter(file, file.utf8[node.start_byte : node.end_byte])


def is_pytest_parameter(file: SourceFile, name: bytes) -> bool:
    """Return whether a name is a parameter of a pytest test or fixture. pytest passes the fixture of this name."""
    return name in file.derived(_pytest_parameters)


def _pytest_parameters(file: SourceFile) -> frozenset[bytes]:
    if b"test" not in file.utf8 and b"fixture" not in file.utf8:
        return frozenset()
    return frozenset(re.findall(rb"\w+", b" ".join(_TEST_PARAMETERS.findall(file.utf8))))


def has_width_argument(_file: SourceFile, _finding: Diagnostic, text: bytes) -> bool | None:
    """Return whether the width in a format is taken from an argument: `%*d`. ruff does not count this argument."""
    return _WIDTH_PLACEHOLDER.search(text) is not None


def is_repeated_export(file: SourceFile, _finding: Diagnostic, text: bytes) -> bool | None:
    """Return whether a name in `__all__` may exist, although ruff finds no definition.

    This is true if the module sets names dynamically, or if the name occurs in another string.
    """
    return file.derived(_sets_global_names) or file.derived(_quoted_names)[text.strip(b"'\"")] > 1


def _quoted_names(file: SourceFile) -> Counter[bytes]:
    return Counter(_QUOTED_NAME.findall(file.utf8))


def is_ignored_for_type_checker(file: SourceFile, finding: Diagnostic) -> bool:
    """Return whether a comment makes a type checker ignore an undefined name."""
    start = file.line_starts[finding.line - 1]
    end = file.utf8.find(b"\n", start)
    return _TYPE_CHECKER_COMMENT.search(file.utf8, start, end if end >= 0 else len(file.utf8)) is not None


def is_reexport_or_alternative(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether an assignment such as `x = x` is intended.

    It is if it re-exports a name at class or module level, or if it is one of several assignments in one statement.
    """
    assignment = next((ancestor for ancestor in enclosing_nodes(node) if ancestor.type == "assignment"), None)
    if assignment is None:
        return False
    targets, values = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    if targets is None or values is None or values.type == "assignment":
        return False
    if values.type in ("expression_list", "tuple"):
        left, right = (file.utf8[side.start_byte : side.end_byte] for side in (targets, values))
        return re.sub(rb"[\s()]", b"", left) != re.sub(rb"[\s()]", b"", right)
    *_, scope = enclosing_nodes(node)
    return scope.type not in ("function_definition", "lambda")


def is_exception_handler(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether the enclosing function has a parameter for an exception.

    Such a function is called while the exception is handled.
    """
    *_, function = enclosing_nodes(node)
    parameters = function.child_by_field_name("parameters")
    return (
        parameters is not None
        and _EXCEPTION_PARAMETER.search(file.utf8, parameters.start_byte, parameters.end_byte) is not None
    )


def is_dataclass_field(_file: SourceFile, _finding: Diagnostic, text: bytes) -> bool | None:
    """Return whether the code calls a function named `field`, which may be the one of `dataclasses`."""
    return _FIELD_CALL.match(text) is not None


def is_safe_loader(_file: SourceFile, finding: Diagnostic, _text: bytes) -> bool | None:
    """Return whether a YAML loader is not one of PyYAML's unsafe ones. A project's own loader is assumed to be safe."""
    loader = _LOADER_NAME.search(finding.message)
    return loader is not None and _UNSAFE_LOADER.fullmatch(loader[1]) is None


def is_foreign_logger(file: SourceFile, _finding: Diagnostic, _text: bytes) -> bool | None:
    """Return whether the file imports a logging library other than `logging`.

    Its methods and placeholders are different.
    """
    return file.derived(_has_foreign_loggers)


def _has_foreign_loggers(file: SourceFile) -> bool:
    return _OTHER_LOGGER_IMPORT.search(file.utf8) is not None


def is_read_between(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether the second definition of a class field is justified.

    This is true if the first definition is only an annotation, or if the class reads the first value before the second
    definition.
    """
    owner = next((ancestor for ancestor in enclosing_nodes(node) if ancestor.type == "class_definition"), None)
    name = re.match(rb"\w+", file.utf8[node.start_byte : node.end_byte])
    if owner is None or name is None or node.start_byte - owner.start_byte > _SCOPE_BYTES_MAX:
        return False
    text_before = file.utf8[owner.start_byte : node.start_byte]
    if re.search(rb"(?m)^[ \t]*%s[ \t]*:[^=\n]+$" % name[0], text_before):
        return True
    return re.search(rb"(?<![\w.'\"])%s\b(?![ \t]*[:=])" % name[0], text_before) is not None


def is_never_read(file: SourceFile, node: Node) -> bool:
    """Return whether a name is one of several targets of an assignment, and other code never uses the name.

    The searched code is the enclosing function, or the whole file for an assignment at top level.
    """
    *_, scope = enclosing_nodes(node)
    start, end = (0, len(file.utf8)) if scope.parent is None else (scope.start_byte, scope.end_byte)
    assignment = next(
        (ancestor for ancestor in enclosing_nodes(node) if ancestor.type in ("assignment", "for_statement")), None
    )
    targets = assignment.child_by_field_name("left") if assignment is not None else None
    if targets is None or targets.type not in ("pattern_list", "tuple_pattern") or end - start > _SCOPE_BYTES_MAX:
        return False
    name = re.compile(rb"\b%s\b" % re.escape(file.utf8[node.start_byte : node.end_byte]))
    if name.search(file.utf8, targets.end_byte, end):
        return False
    return name.search(file.utf8, start, targets.start_byte) is None


def is_set_by_class(file: SourceFile, _finding: Diagnostic, node: Node) -> bool:
    """Return whether a class can set an attribute that is not in its `__slots__`.

    This is true if the class has a metaclass, or a method with the name of the attribute.
    """
    name = file.utf8[node.start_byte : node.end_byte].rpartition(b".")[2]
    for ancestor in enclosing_nodes(node, through_functions=True):
        if ancestor.type == "class_definition":
            if ancestor.end_byte - ancestor.start_byte > _SCOPE_BYTES_MAX:
                return False
            text = file.utf8[ancestor.start_byte : ancestor.end_byte]
            return b"metaclass" in text.partition(b"\n")[0] or bool(re.search(rb"\bdef\s+%s\b" % re.escape(name), text))
    return False
