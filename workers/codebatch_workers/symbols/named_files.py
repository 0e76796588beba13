"""Imports of languages whose files load others by name: Ruby, Lua, PHP."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codebatch_workers.symbols.imported_names import PREFIX_CHARS_MAX, ImportedName, literal_text, node_text

if TYPE_CHECKING:
    from tree_sitter import Node


def _arguments(node: Node) -> list[Node]:
    """Return the arguments of a call, without the comments among them."""
    arguments = node.child_by_field_name("arguments")
    return [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []


_RUBY_HERE = r"(?:__dir__|File\.dirname\s*\(?\s*__FILE__\s*\)?)"
# Groups: what is seen from the directory of the file, or from the file itself as if it were one.
_RUBY_FILES = (
    re.compile(rf'"#\{{\s*{_RUBY_HERE}\s*\}}/([^"#]+)"'),
    re.compile(rf'{_RUBY_HERE}\s*\+\s*["\']/([^"\'#]+)["\']'),
    re.compile(rf'File\.expand_path\s*\(?\s*["\']([^"\'#]+)["\']\s*,\s*{_RUBY_HERE}\s*\)?'),
    re.compile(r'File\.expand_path\s*\(?\s*["\']\.\./([^"\'#]+)["\']\s*,\s*__FILE__\s*\)?'),
)
_RUBY_JOINED = re.compile(rf'File\.join\s*\(?\s*{_RUBY_HERE}((?:\s*,\s*(?:"[^"#]*"|\'[^\']*\'))+)\s*\)?')
_RUBY_PART = re.compile(r'"([^"]*)"|\'([^\']*)\'')
_RUBY_FILE_BYTES_MAX = 1024


def imports_of_ruby(node: Node, utf8: bytes) -> list[ImportedName]:
    """What `require`, `load` and `autoload` name by a plain string; of `require_relative` with `./` before it.

    So too what they name from the file's own directory (`__dir__`, `__FILE__`).
    """
    method = node.child_by_field_name("method")
    if method is None:
        return []
    arguments = _arguments(node)
    named = arguments[1:2] if node_text(method, utf8) == "autoload" else arguments[:1]
    if not named:
        return []
    if named[0].type != "string" or [child.type for child in named[0].named_children] != ["string_content"]:
        place = _ruby_place(utf8[named[0].start_byte : named[0].end_byte][:_RUBY_FILE_BYTES_MAX])
        return [] if place is None else [ImportedName(f"./{place}", named[0], None)]
    target = literal_text(named[0], utf8)
    if node_text(method, utf8) == "require_relative" and not target.startswith((".", "/")):
        target = f"./{target}"
    return [ImportedName(target, named[0], None)]


def _ruby_place(written: bytes) -> str | None:
    """Return what an expression names from the directory of its file, if that is what it does."""
    text = written.decode("utf-8", "replace")
    for pattern in _RUBY_FILES:
        match = pattern.fullmatch(text)
        if match is not None:
            return match[1]
    joined = _RUBY_JOINED.fullmatch(text)
    if joined is None:
        return None
    parts = (part[1] or part[2] or "" for part in _RUBY_PART.finditer(joined[1]))
    return "/".join(part.strip("/") for part in parts)


# Functions that call the one that they are given.
_LUA_CALLERS = {"pcall": 1, "xpcall": 2}


def imports_of_lua(node: Node, utf8: bytes) -> list[ImportedName]:
    """What `require` names by a plain string, be it called by `pcall`."""
    name = node.child_by_field_name("name")
    named = _arguments(node)
    skipped = _LUA_CALLERS.get("" if name is None else node_text(name, utf8), 0)
    if skipped and (not named or node_text(named[0], utf8) != "require"):
        return []
    named = named[skipped : skipped + 1]
    content = named[0].child_by_field_name("content") if named and named[0].type == "string" else None
    return [] if content is None else [ImportedName(node_text(content, utf8), content, None)]


_PHP_FILE_BYTES_MAX = 1024
# WordPress's functions of a directory: they end in a slash. `plugin_dir_path(__FILE__)` is the directory of the file.
_PHP_FILE = re.compile(
    rb"""\w+[\s(]*(?:((?:(?:dirname|trailingslashit|plugin_dir_path)[\s(]*)*)(__DIR__|__FILE__)((?:\s*(?:,\s*\d\s*)?\))*)\s*\.)?\s*(["'])/?([^"'$\\]+)\4[\s)]*\Z""",
    re.IGNORECASE,
)


def _php_file(text: bytes) -> str | None:
    """Return the file that a `require` names: from its own directory with `./` before it."""
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
    # Of several levels at once, each number counts one that is counted already.
    above = levels + sum(int(number) - 1 for number in re.findall(rb"\d", match[3]))
    above -= match[2].upper() == b"__FILE__"
    return None if above < 0 else f"./{'../' * above}{file}"


def _without_comments(node: Node, utf8: bytes, most: int) -> bytes:
    """Return the source of a node without the comments that are its children, at most so many bytes of it."""
    found, start = b"", node.start_byte
    for child in node.children:
        if len(found) > most:
            break
        if child.type == "comment":
            found += utf8[start : child.start_byte] + b" "
            start = child.end_byte
    return (found + utf8[start : node.end_byte])[:most]


def imports_of_php(node: Node, utf8: bytes) -> list[ImportedName]:
    r"""`use A\{B, C as D}` is `A\B` and `A\C`; `require "a.php"` is `a.php`, with `__DIR__` before it `./a.php`."""
    if node.type != "namespace_use_declaration":
        file = _php_file(_without_comments(node, utf8, _PHP_FILE_BYTES_MAX))
        return [] if file is None else [ImportedName(file, node, None)]
    group = node.child_by_field_name("body")
    namespace = next((child for child in node.named_children if child.type == "namespace_name"), None)
    prefix = f"{node_text(namespace, utf8)}\\" if group is not None and namespace is not None else ""
    if len(prefix) > PREFIX_CHARS_MAX:
        return []
    names = [clause.named_children[0] for clause in (group or node).named_children if clause.named_child_count]
    return [
        ImportedName((prefix + node_text(name, utf8)).lstrip("\\"), name, None)
        for name in names
        if name.type in ("name", "qualified_name")
    ]
