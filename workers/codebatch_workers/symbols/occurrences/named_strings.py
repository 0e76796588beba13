"""String literals that name a definition: `getattr(x, "name")`, `run: "pkg.module:name"`, `retry name` in a shell.

A program that looks up the text of a literal can mean a definition if the text consists of the name, with other names
before it and arguments after it, or if the text is code, a type or a template with the name: `"x = name(1)"`,
`"list[name]"`, `'<a @click="name">'`, `"{{ a.name }}"`.

A text in which the name is a word among others does not count, and neither do docstrings.
"""

from __future__ import annotations

import re

from tree_sitter import Node

_LITERAL_BYTES_MAX = 400
_CONTEXT_BYTES = 200
"""Number of bytes before and after the name that decide whether a text is code."""
_LITERAL_NODE = re.compile(r"string|str_text|literal|scalar|word\Z|attribute_value|quoted|heredoc|\Atext\Z")
# The quotes of a literal whose node has them, and names before the name.
_BEFORE_NAME = re.compile(rb"(?:[\w@$]{0,3}#*[\"'`]{1,3}|\[=*\[)?\s*(?:[\w.\\:/#>@$-]*[.\\:/#>@$])?\Z")
_AFTER_NAME = re.compile(rb"(?:\([^\n]*\))?\s*(?:[\"'`]{1,3}#*|\]=*\])?\Z")
# The assembly of a qualified type in .NET, or the extras of an entry point in Python.
_AFTER_QUALIFIED_NAME = re.compile(rb"(?:,\s*[\w.]+|\s*\[\w+\])+[\"']*\Z")
_BEFORE_CODE = re.compile(rb"(?:\A|[=.(\[{;:,&|!<>@+*/\"'`\n-]|\b(?:return|await|yield|new|if|not|else|do))[ \t]*\Z")
# A call in code: the text after its parentheses is none of prose, as in `name() failed` and `2 error(s)`.
_CALL = re.compile(rb"\((?!(?:e?s)?\))[^\n]*\)|\(\)\s*(?:\.\w|[;)\]}+*/<>=&|\"'`-]|\Z)")
_TEMPLATE = re.compile(
    rb"(?:\{\{[^{}\n]*|<%[^%\n]*|\{[\w.\[\]]*\."
    rb"|(?:\bon\w+|[)\]]|[@:*#][\w.:-]+|\b(?:v|x|ng)-[\w:.-]+)\s*=\s*\\?[\"'{][^\"'<>\n]*)\Z"
)
_TYPE_EXPRESSION = re.compile(rb"[\"']?\s*[\w.]+(?:(?:\[|\]?\s*[|,]\s*)[\w.\"']+)*[\]\s\"']*\Z")
_TYPE_OPERATOR = re.compile(rb"[|\[]")
_KEY_OWNERS = frozenset({"block_mapping_pair", "flow_pair", "pair"})


def is_named_by_string(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether a literal names what a name in it means. `node` is the smallest node that contains the name."""
    if node.type == "preproc_arg":  # Macro bodies are not parsed.
        return utf8[start - 1 : start] == b'"' == utf8[end : end + 1]
    if not _LITERAL_NODE.search(node.type):
        return False
    return _consists_of_name(node, utf8, start, end) or (
        _is_in_code(node, utf8, start, end) and not _is_docstring(node)
    )


def _consists_of_name(node: Node, utf8: bytes, start: int, end: int) -> bool:
    if node.end_byte - node.start_byte > _LITERAL_BYTES_MAX:
        return False
    before, after = utf8[node.start_byte : start], utf8[end : node.end_byte]
    is_qualified = before.strip(b"\"'") != b""
    has_end = _AFTER_NAME.match(after) or (is_qualified and _AFTER_QUALIFIED_NAME.match(after))
    return bool(has_end) and _BEFORE_NAME.match(before) is not None


def _is_in_code(node: Node, utf8: bytes, start: int, end: int) -> bool:
    before = utf8[max(node.start_byte, start - _CONTEXT_BYTES) : start]
    after = utf8[end : min(node.end_byte, end + _CONTEXT_BYTES)]
    if _TEMPLATE.search(before) or (_CALL.match(after) and _BEFORE_CODE.search(before)):
        return True
    text = before + b"x" + after
    return _TYPE_EXPRESSION.match(text) is not None and _TYPE_OPERATOR.search(text) is not None


def _is_docstring(node: Node) -> bool:
    statement = node
    while statement.parent is not None and _LITERAL_NODE.search(statement.type):
        statement = statement.parent
    return statement.type == "expression_statement"


def is_key(node: Node) -> bool:
    """Return whether a literal in a file of data is the key of a value."""
    for _ in range(3):
        parent = node.parent
        if parent is None:
            return False
        if parent.type in _KEY_OWNERS:
            first = parent.named_children[0]
            return first.start_byte <= node.start_byte and node.end_byte <= first.end_byte
        node = parent
    return False
