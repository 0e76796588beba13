"""The time at which an import in Python is executed."""

from __future__ import annotations

import re

from tree_sitter import Node

# Conditions in Python that are false when the program runs. mypy takes `MYPY` for true.
_TYPE_CHECKING = rb"\(?\s*(?:(?:\w+\.)?TYPE_CHECKING|MYPY|False|0)\s*\)?"
_FALSE_TEST = re.compile(rb"(?!.*\b(?:or|if|not)\b)(?:.*\band\s+)?%s(?:\s+and\b.*)?" % _TYPE_CHECKING, re.DOTALL)
_TRUE_TEST = re.compile(rb"not\s*%s" % _TYPE_CHECKING)
_MAIN_TEST = re.compile(rb"\(?\s*(?:__name__\s*==\s*[\"']__main__[\"']|[\"']__main__[\"']\s*==\s*__name__)\s*\)?")


def is_for_main_program(node: Node, utf8: bytes) -> bool:
    """Return whether an import runs only if its file is the main program."""
    return _is_under_condition(node, utf8, _MAIN_TEST)


def is_for_type_checker(node: Node, utf8: bytes) -> bool:
    """Return whether an import is never executed, because a condition is true only for type checkers."""
    return _is_under_condition(node, utf8, _FALSE_TEST, _TRUE_TEST)


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
