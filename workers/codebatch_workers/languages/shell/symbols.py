"""Definitions and names of Bash and Zsh."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime

# Shell commands that take names of functions or variables as arguments.
_NAMING_COMMANDS = frozenset(
    b"command compgen complete eval export hash let mapfile printf read readarray trap type typeset unset".split()
)
_WORD_CHARACTER = re.compile(rb"[\w./-]")
_NAME_AFTER_OPTION = {b"printf": b"-v", b"complete": b"-F", b"compgen": b"-F", b"mapfile": None, b"readarray": None}


def _is_name(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether a word is the name of a command or function, or an argument that names a function or variable.

    Examples of such arguments: `trap NAME EXIT`, `read NAME`, `[[ -v NAME ]]`.
    """
    command = node.parent
    if command is not None and command.type in ("command_name", "function_definition"):
        return (node.start_byte, node.end_byte) == (start, end)
    if (node.start_byte, node.end_byte) != (start, end) and utf8[end : end + 1] != b"=":
        return False
    if command is None:
        return False
    if command.type == "unary_expression":
        operator = command.child_by_field_name("operator")
        return operator is not None and operator.text in (b"-v", b"-R")
    name_node = command.child_by_field_name("name")
    text = name_node.text if name_node is not None and command.type == "command" else None
    if text not in _NAMING_COMMANDS:
        return False
    before = node.prev_sibling
    if option := _NAME_AFTER_OPTION.get(text or b""):
        return before is not None and before.text == option
    return text != b"trap" or before == name_node


def _is_in_command(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether a word is in a text that the shell runs as a command: `trap "NAME 1" EXIT`, `eval 'NAME'`."""
    command = node.parent if node.type == "raw_string" else node.parent and node.parent.parent
    name_node = command.child_by_field_name("name") if command is not None and command.type == "command" else None
    if name_node is None or name_node.text not in (b"eval", b"trap"):
        return False
    return _WORD_CHARACTER.match(utf8, start - 1) is None and _WORD_CHARACTER.match(utf8, end) is None


_SHELL = LanguageSymbols(
    capitals_are_constants=True,
    inner_names={"raw_string": _is_in_command, "string_content": _is_in_command, "word": _is_name},
    load_time=LoadTime(function_nodes=frozenset({"function_definition"})),
)
SYMBOLS = {"bash": _SHELL, "zsh": _SHELL}
