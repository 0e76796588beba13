"""String literals that consist of a name: `getattr(x, "name")`, `run: "pkg.module:name"`, `retry name` in a shell.

The text may have other names before the name, and arguments after it. Then a program that looks the text up can mean
the name. A text in which the name is a word among others does not count.
"""

from __future__ import annotations

import re

from tree_sitter import Node

STRING_LANGUAGES = frozenset({"json", "jsonc", "toml", "yaml"})
"""Languages without names of their own, in which strings can name definitions of other files."""

_LITERAL_BYTES_MAX = 400
_LITERAL_NODE = re.compile(r"string|str_text|literal|scalar|word\Z|attribute_value|quoted")
# The quotes of a literal whose node has them, and names before the name.
_BEFORE_NAME = re.compile(rb"(?:[\w@$]{0,3}#*[\"'`]{1,3}|\[=*\[)?\s*(?:[\w.\\:/#>@-]*[.\\:/#>@])?\Z")
_AFTER_NAME = re.compile(rb"(?:\([^\n]*\))?\s*(?:[\"'`]{1,3}#*|\]=*\])?\Z")
_KEY_OWNERS = frozenset({"block_mapping_pair", "flow_pair", "pair"})


def is_named_by_string(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether a name in a token is the text of a literal. `node` is the smallest node that contains the name."""
    if node.type == "preproc_arg":  # Macro bodies are not parsed.
        return utf8[start - 1 : start] == b'"' == utf8[end : end + 1]
    if not _LITERAL_NODE.search(node.type) or node.end_byte - node.start_byte > _LITERAL_BYTES_MAX:
        return False
    before, after = utf8[node.start_byte : start], utf8[end : node.end_byte]
    return _BEFORE_NAME.match(before) is not None and _AFTER_NAME.match(after) is not None


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
