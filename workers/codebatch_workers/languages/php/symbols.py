"""Definitions and names of PHP."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch.model.analysis.uses import ANONYMOUS_MARK
from codebatch_workers.languages.php.names import read_names
from codebatch_workers.symbols.imported_names import PREFIX_CHARS_MAX, ImportedName, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime, MarkRules, ParameterRules
from codebatch_workers.symbols.load_time import is_within

_FILE_BYTES_MAX = 1024
# `plugin_dir_path(__FILE__)` is WordPress's function for the directory of the file. Like `trailingslashit`, it returns
# a trailing slash.
_FILE = re.compile(
    rb"""\w+[\s(]*(?:((?:(?:dirname|trailingslashit|plugin_dir_path)[\s(]*)*)(__DIR__|__FILE__)((?:\s*(?:,\s*\d\s*)?\))*)\s*\.)?\s*(["'])/?([^"'$\\]+)\4[\s)]*\Z""",
    re.IGNORECASE,
)


def _required_file(text: bytes) -> str | None:
    """Return the path in the argument of a PHP `require`, or None.

    If the path is built from the source file's directory, the returned path begins with `./`.
    """
    match = _FILE.match(text)
    if match is None:
        return None
    file = match[5].decode("utf-8", "replace")
    if match[2] is None:
        return file
    functions = re.findall(rb"[a-z]\w+", match[1].lower())
    if match[3].count(b")") != len(functions):
        return None
    levels = len(functions) - functions.count(b"trailingslashit")
    # `dirname(x, n)` goes up n levels. One of them is already counted, because each `dirname` counts as one level.
    above = levels + sum(int(number) - 1 for number in re.findall(rb"\d", match[3]))
    above -= match[2].upper() == b"__FILE__"
    return None if above < 0 else f"./{'../' * above}{file}"


def _strip_comments(node: Node, utf8: bytes, bytes_max: int) -> bytes:
    """Return the text of a node without its comments. At most `bytes_max` bytes of the node are read."""
    text, start = b"", node.start_byte
    for child in node.children:
        if len(text) > bytes_max:
            break
        if child.type == "comment":
            text += utf8[start : child.start_byte] + b" "
            start = child.end_byte
    return (text + utf8[start : node.end_byte])[:bytes_max]


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    r"""Return the targets of a PHP import.

    They are `A\B` and `A\C` for `use A\{B, C as D}`, and `a.php` for `require "a.php"`. With `__DIR__`, the target is
    `./a.php`. Only an alias (`as`) is bound: any other name is the last one of its target.
    """
    if node.type != "namespace_use_declaration":
        file = _required_file(_strip_comments(node, utf8, _FILE_BYTES_MAX))
        return [] if file is None else [ImportedName(file, node, None)]
    group = node.child_by_field_name("body")
    namespace = next((child for child in node.named_children if child.type == "namespace_name"), None)
    prefix = f"{node_text(namespace, utf8)}\\" if group is not None and namespace is not None else ""
    if len(prefix) > PREFIX_CHARS_MAX:
        return []
    clauses = [
        (clause.named_children[0], clause.child_by_field_name("alias"))
        for clause in (group or node).named_children
        if clause.named_child_count
    ]
    return [
        ImportedName((prefix + node_text(name, utf8)).lstrip("\\"), name, alias)
        for name, alias in clauses
        if name.type in ("name", "qualified_name")
    ]


_FUNCTION_NODES = frozenset({"function_definition", "method_declaration", "anonymous_function", "arrow_function"})


def _is_deferred(node: Node, _utf8: bytes) -> bool:
    """Return whether an import of a file is in a function. The names in a `use` are resolved before any code runs."""
    return node.type != "namespace_use_declaration" and is_within(node, _FUNCTION_NODES)


def _read_anonymous_class(node: Node) -> Iterator[str]:
    """Yield `new A` for a member of an anonymous class with the base `A`."""
    owner = None if node.parent is None else node.parent.parent
    for clause in owner.named_children if owner is not None and owner.type == "anonymous_class" else ():
        for base in clause.named_children if clause.type in ("base_clause", "class_interface_clause") else ():
            yield f"{ANONYMOUS_MARK}{(base.text or b'').decode('utf-8', 'replace')}"


# Marks that only describe a definition.
_DESCRIPTIONS = frozenset(b"deprecated override pure returntypewillchange".split())
SYMBOLS = {
    "php": LanguageSymbols(
        marks=MarkRules(descriptions=_DESCRIPTIONS, read_around=_read_anonymous_class),
        parameters=ParameterRules(declare_fields=True),
        imports=_read_imports,
        import_calls=frozenset(
            {"include_expression", "include_once_expression", "require_expression", "require_once_expression"}
        ),
        load_time=LoadTime(is_deferred=_is_deferred),
        used_names=read_names,
    ),
}
