"""Files that `require`, `load` and `autoload` load in Ruby."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.symbols.imported_names import ImportedName, call_arguments, literal_text, node_text

_FILE_DIRECTORY = r"(?:__dir__|File\.dirname\s*\(?\s*__FILE__\s*\)?)"
# Patterns for expressions that are a path relative to the directory of the source file. The group is this path.
_FILES = (
    re.compile(rf'"#\{{\s*{_FILE_DIRECTORY}\s*\}}/([^"#]+)"'),
    re.compile(rf'{_FILE_DIRECTORY}\s*\+\s*["\']/([^"\'#]+)["\']'),
    re.compile(rf'File\.expand_path\s*\(?\s*["\']([^"\'#]+)["\']\s*,\s*{_FILE_DIRECTORY}\s*\)?'),
    re.compile(r'File\.expand_path\s*\(?\s*["\']\.\./([^"\'#]+)["\']\s*,\s*__FILE__\s*\)?'),
)
_JOINED = re.compile(rf'File\.join\s*\(?\s*{_FILE_DIRECTORY}((?:\s*,\s*(?:"[^"#]*"|\'[^\']*\'))+)\s*\)?')
_PART = re.compile(r'"([^"]*)"|\'([^\']*)\'')
_FILE_BYTES_MAX = 1024


def read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the path in Ruby's `require`, `load` or `autoload` if the path is a plain string.

    For `require_relative`, the returned path begins with `./`. The same applies to a path that is built from the source
    file's own directory (`__dir__`, `__FILE__`).
    """
    method = node.child_by_field_name("method")
    if method is None:
        return []
    arguments = call_arguments(node)
    path_nodes = arguments[1:2] if node_text(method, utf8) == "autoload" else arguments[:1]
    if not path_nodes:
        return []
    if path_nodes[0].type != "string" or [child.type for child in path_nodes[0].named_children] != ["string_content"]:
        place = _find_place(utf8[path_nodes[0].start_byte : path_nodes[0].end_byte][:_FILE_BYTES_MAX])
        return [] if place is None else [ImportedName(f"./{place}", path_nodes[0], None)]
    target = literal_text(path_nodes[0], utf8)
    if node_text(method, utf8) == "require_relative" and not target.startswith((".", "/")):
        target = f"./{target}"
    return [ImportedName(target, path_nodes[0], None)]


def _find_place(written: bytes) -> str | None:
    """Return the path in an expression like `File.join(__dir__, "a")`, relative to the file's directory, or None."""
    text = written.decode("utf-8", "replace")
    for pattern in _FILES:
        match = pattern.fullmatch(text)
        if match is not None:
            return match[1]
    parts_match = _JOINED.fullmatch(text)
    if parts_match is None:
        return None
    parts = (part[1] or part[2] or "" for part in _PART.finditer(parts_match[1]))
    return "/".join(part.strip("/") for part in parts)
