"""Targets of `#include` and `#import` in C and C++."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.symbols.imported_names import ImportedName, literal_text, node_text

_INCLUDED_FILE = re.compile(rb'\s*(?:/\*.*?\*/\s*)*(?:"([^"\n]+)"|<([^>\n]+)>)', re.DOTALL)


def read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the path between the quotes or brackets of an `#include`.

    If a macro is in place of the path, return the macro. The grammar does not parse the argument of `#import`, so the
    path is searched in its text.
    """
    if node.type == "preproc_call":
        argument = node.child_by_field_name("argument")
        match = None if argument is None else _INCLUDED_FILE.match(utf8, argument.start_byte, argument.end_byte)
        if argument is None or match is None:
            return []
        return [ImportedName((match[1] or match[2]).decode("utf-8", "replace"), argument, None)]
    path = node.child_by_field_name("path")
    if path is None:
        return []
    is_literal = path.type in ("string_literal", "system_lib_string")
    return [ImportedName(literal_text(path, utf8) if is_literal else node_text(path, utf8), path, None)]
