"""Imports in Ruby, Lua and PHP. Files in these languages load other files by path or name."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.symbols.imported_names import PREFIX_CHARS_MAX, ImportedName, literal_text, node_text


def _call_arguments(node: Node) -> list[Node]:
    """Return the arguments of a call, without comments."""
    arguments = node.child_by_field_name("arguments")
    return [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []


_RUBY_FILE_DIRECTORY = r"(?:__dir__|File\.dirname\s*\(?\s*__FILE__\s*\)?)"
# Patterns for expressions that are a path relative to the directory of the source file. The group is this path.
_RUBY_FILES = (
    re.compile(rf'"#\{{\s*{_RUBY_FILE_DIRECTORY}\s*\}}/([^"#]+)"'),
    re.compile(rf'{_RUBY_FILE_DIRECTORY}\s*\+\s*["\']/([^"\'#]+)["\']'),
    re.compile(rf'File\.expand_path\s*\(?\s*["\']([^"\'#]+)["\']\s*,\s*{_RUBY_FILE_DIRECTORY}\s*\)?'),
    re.compile(r'File\.expand_path\s*\(?\s*["\']\.\./([^"\'#]+)["\']\s*,\s*__FILE__\s*\)?'),
)
_RUBY_JOINED = re.compile(rf'File\.join\s*\(?\s*{_RUBY_FILE_DIRECTORY}((?:\s*,\s*(?:"[^"#]*"|\'[^\']*\'))+)\s*\)?')
_RUBY_PART = re.compile(r'"([^"]*)"|\'([^\']*)\'')
_RUBY_FILE_BYTES_MAX = 1024


def ruby_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the path in Ruby's `require`, `load` or `autoload` if the path is a plain string.

    For `require_relative`, the returned path begins with `./`. The same applies to a path that is built from the source
    file's own directory (`__dir__`, `__FILE__`).
    """
    method = node.child_by_field_name("method")
    if method is None:
        return []
    arguments = _call_arguments(node)
    path_nodes = arguments[1:2] if node_text(method, utf8) == "autoload" else arguments[:1]
    if not path_nodes:
        return []
    if path_nodes[0].type != "string" or [child.type for child in path_nodes[0].named_children] != ["string_content"]:
        place = _ruby_place(utf8[path_nodes[0].start_byte : path_nodes[0].end_byte][:_RUBY_FILE_BYTES_MAX])
        return [] if place is None else [ImportedName(f"./{place}", path_nodes[0], None)]
    target = literal_text(path_nodes[0], utf8)
    if node_text(method, utf8) == "require_relative" and not target.startswith((".", "/")):
        target = f"./{target}"
    return [ImportedName(target, path_nodes[0], None)]


def _ruby_place(written: bytes) -> str | None:
    """Return the path in an expression like `File.join(__dir__, "a")`, relative to the file's directory, or None."""
    text = written.decode("utf-8", "replace")
    for pattern in _RUBY_FILES:
        match = pattern.fullmatch(text)
        if match is not None:
            return match[1]
    parts_match = _RUBY_JOINED.fullmatch(text)
    if parts_match is None:
        return None
    parts = (part[1] or part[2] or "" for part in _RUBY_PART.finditer(parts_match[1]))
    return "/".join(part.strip("/") for part in parts)


# Functions that call their first argument: `pcall(require, "a")`. The value is the number of arguments before those
# that are passed on.
_LUA_CALLERS = {"pcall": 1, "xpcall": 2}


def lua_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the module in Lua's `require "a.b"` or `pcall(require, "a.b")` if the module is a plain string."""
    name = node.child_by_field_name("name")
    path_nodes = _call_arguments(node)
    skipped = _LUA_CALLERS.get("" if name is None else node_text(name, utf8), 0)
    if skipped and (not path_nodes or node_text(path_nodes[0], utf8) != "require"):
        return []
    path_nodes = path_nodes[skipped : skipped + 1]
    content = path_nodes[0].child_by_field_name("content") if path_nodes and path_nodes[0].type == "string" else None
    return [] if content is None else [ImportedName(node_text(content, utf8), content, None)]


_PHP_FILE_BYTES_MAX = 1024
# `plugin_dir_path(__FILE__)` is WordPress's function for the directory of the file. Like `trailingslashit`, it returns
# a trailing slash.
_PHP_FILE = re.compile(
    rb"""\w+[\s(]*(?:((?:(?:dirname|trailingslashit|plugin_dir_path)[\s(]*)*)(__DIR__|__FILE__)((?:\s*(?:,\s*\d\s*)?\))*)\s*\.)?\s*(["'])/?([^"'$\\]+)\4[\s)]*\Z""",
    re.IGNORECASE,
)


def _php_file(text: bytes) -> str | None:
    """Return the path in the argument of a PHP `require`, or None.

    If the path is built from the source file's directory, the returned path begins with `./`.
    """
    match = _PHP_FILE.match(text)
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


def php_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    r"""Return the targets of a PHP import.

    They are `A\B` and `A\C` for `use A\{B, C as D}`, and `a.php` for `require "a.php"`. With `__DIR__`, the target is
    `./a.php`. Only an alias (`as`) is bound: any other name is the last one of its target.
    """
    if node.type != "namespace_use_declaration":
        file = _php_file(_strip_comments(node, utf8, _PHP_FILE_BYTES_MAX))
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
