"""Names that are only a part of a token in the tree: `:name` in Ruby, `{name}` in Rust's format strings, quoted names.

Each rule applies to one node type of one language. macros.py finds names in macro bodies of C and C++.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

# A function that returns whether a part of a token is a name. The arguments are the node of the token, the text of the
# file, and the start and end of the part.
_InnerNameRule = Callable[["Node", bytes, int, int], bool]

_SYMBOL_MARKS = b":?!="
_CLOSING_QUOTES = {b"`": b"`", b'"': b'"', b"[": b"]", b"@": b"", b"r#": b""}
# Formatting macros of Rust's standard library, with the number of arguments before the format string.
_FORMAT_ARGUMENT_INDEX = {
    **dict.fromkeys(
        (b"eprint", b"eprintln", b"format", b"format_args", b"panic", b"print", b"println", b"todo", b"unimplemented"),
        0,
    ),
    **dict.fromkeys((b"assert", b"debug_assert", b"unreachable", b"write", b"writeln"), 1),
    **dict.fromkeys((b"assert_eq", b"assert_ne", b"debug_assert_eq", b"debug_assert_ne"), 2),
    b"unreachable": 0,
}
_MACROS_WITHOUT_FORMAT = frozenset(
    b"cfg compile_error concat env include include_bytes include_str option_env vec".split()
)
# Attributes with format strings from thiserror, derive_more, displaydoc and snafu.
_FORMATTING_ATTRIBUTES = frozenset({b"display", b"error", b"snafu"})
_FORMAT_PLACE = re.compile(rb"\{\{|\{(\w+)(?::[^{}]*)?\}")
_FORMAT_WIDTH = re.compile(rb"\b(\w+)\$")
# Shell commands that take names of functions or variables as arguments.
_NAMING_COMMANDS = frozenset(
    b"command compgen complete eval export hash let mapfile printf read readarray trap type typeset unset".split()
)
_WORD_CHARACTER = re.compile(rb"[\w./-]")
_PRAGMAS_WITH_NAMES = frozenset({b"acc", b"omp", b"redefine_extname", b"weak"})
_NAME_AFTER_OPTION = {b"printf": b"-v", b"complete": b"-F", b"compgen": b"-F", b"mapfile": None, b"readarray": None}


def is_inner_name(language: str, node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether a part of a token is a name. `node` is the smallest node that contains the part."""
    rule = _INNER_NAME_RULES.get((language, node.type))
    return rule is not None and rule(node, utf8, start, end)


def _is_ruby_symbol(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is the name in Ruby's `:name`, `:name=` or `name:`.

    `name:` is a key, or short for `name: name`.
    """
    return utf8[node.start_byte : node.end_byte].strip(_SYMBOL_MARKS) == utf8[start:end].strip(_SYMBOL_MARKS)


def _is_listed_ruby_symbol(node: Node, _utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is the whole text of a Ruby symbol: in `%i[…]` or in quotes."""
    parent = node.parent
    is_whole = (node.start_byte, node.end_byte) == (start, end)
    return is_whole and parent is not None and parent.type in ("bare_symbol", "delimited_symbol")


def _is_marked_name(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is a name in quotes, or a name after a mark for reserved words, such as `@` or `r#`."""
    opening, closing = utf8[node.start_byte : start], utf8[end : node.end_byte]
    return _CLOSING_QUOTES.get(opening) == closing


def _is_interpolated_name(node: Node, utf8: bytes, start: int, _end: int) -> bool:
    """Return whether the part is `name` in Kotlin's `"$name"`.

    At the start of a string, the grammar parses this as text.
    """
    return start > node.start_byte - 1 and utf8[start - 1 : start] == b"$" and utf8[start - 2 : start - 1] not in b"\\$"


def _is_in_format(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is a name in a format string of Rust: `{name}`, `{name:?}` or `{:name$}`."""
    literal = node.parent
    if literal is None or not _is_format_string(literal, utf8):
        return False
    for match in _FORMAT_PLACE.finditer(utf8, node.start_byte, node.end_byte):
        if match.start() < start < match.end():
            return match.span(1) == (start, end) or any(
                width.span(1) == (start, end) for width in _FORMAT_WIDTH.finditer(utf8, *match.span())
            )
    # The pattern does not match `{:width$}`, which has no name before the colon.
    before = utf8.rfind(b"{", node.start_byte, start)
    is_width = utf8[end : end + 1] == b"$" and utf8[before : before + 2] == b"{:"
    return before >= 0 and is_width and b"}" not in utf8[before:start]


def _is_format_string(literal: Node, utf8: bytes) -> bool:
    tree = literal.parent
    if tree is None or tree.type != "token_tree" or tree.parent is None:
        return False
    owner = tree.parent
    name_node = (
        owner.child_by_field_name("macro") if owner.type == "macro_invocation" else next(iter(owner.children), None)
    )
    name = utf8[name_node.start_byte : name_node.end_byte].rpartition(b"::")[2] if name_node is not None else b""
    if owner.type == "attribute":
        return name in _FORMATTING_ATTRIBUTES
    if owner.type != "macro_invocation" or name in _MACROS_WITHOUT_FORMAT:
        return False
    position = _FORMAT_ARGUMENT_INDEX.get(name)
    before = [child for child in tree.children if child.end_byte <= literal.start_byte]
    return position is None or sum(child.type == "," for child in before) == position


def _is_argument(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether a shell word is an argument that names a function or variable.

    Examples: `trap NAME EXIT`, `read NAME`, `[[ -v NAME ]]`.
    """
    command = node.parent
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


def _is_in_directive(node: Node, _utf8: bytes, _start: int, _end: int) -> bool:
    """Return whether the part is a name in `#undef NAME`, `#pragma weak NAME` or `#pragma omp … NAME`."""
    directive = node.prev_sibling
    if directive is None or directive.type != "preproc_directive":
        return False
    text = b"".join((directive.text or b"").split())
    return text == b"#undef" or (text == b"#pragma" and (node.text or b"").split()[0] in _PRAGMAS_WITH_NAMES)


_INNER_NAME_RULES: Mapping[tuple[str, str], _InnerNameRule] = {
    ("bash", "raw_string"): _is_in_command,
    ("bash", "string_content"): _is_in_command,
    ("bash", "word"): _is_argument,
    ("c", "preproc_arg"): _is_in_directive,
    ("cpp", "preproc_arg"): _is_in_directive,
    ("csharp", "identifier"): _is_marked_name,
    ("kotlin", "identifier"): _is_marked_name,
    ("kotlin", "string_content"): _is_interpolated_name,
    ("ruby", "hash_key_symbol"): _is_ruby_symbol,
    ("ruby", "simple_symbol"): _is_ruby_symbol,
    ("ruby", "string_content"): _is_listed_ruby_symbol,
    ("rust", "identifier"): _is_marked_name,
    ("rust", "string_content"): _is_in_format,
    ("scala", "identifier"): _is_marked_name,
    ("sql", "identifier"): _is_marked_name,
    ("swift", "simple_identifier"): _is_marked_name,
    ("zsh", "raw_string"): _is_in_command,
    ("zsh", "string_content"): _is_in_command,
    ("zsh", "word"): _is_argument,
}
