"""Definitions and names of C#."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.languages.csharp.names import read_names
from codebatch_workers.languages.csharp.type_declarations import type_declarations
from codebatch_workers.symbols.imported_names import ImportedName, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules
from codebatch_workers.symbols.occurrences.inner_names import is_marked_name
from codebatch_workers.syntax.names import strip_generics

_PLAIN_USING = re.compile(rb"using ([A-Za-z_][\w.]*);")


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target of a C# `using`: `N` for `using N`, and `N.T` for `using static N.T` and `using A = N.T<int>`.

    An alias binds its name. `global using N` binds `N`, because it applies to the whole project.
    """
    plain = _PLAIN_USING.match(utf8, node.start_byte, node.end_byte)
    if plain is not None:
        return [ImportedName(plain[1].decode("utf-8", "replace"), node, None)]
    children = [child for child in node.named_children if child.type != "comment"]
    if not children or children[-1].type not in (
        "identifier",
        "qualified_name",
        "generic_name",
        "alias_qualified_name",
    ):
        return []
    target = children[-1]
    name = strip_generics(node_text(target, utf8).encode()).decode().removeprefix("global::")
    is_global = any(child.type == "global" for child in node.children)
    alias = node.child_by_field_name("name")
    return [ImportedName(name, target, alias or (target if is_global else None))]


# Marks that only describe a definition.
_DESCRIPTIONS = frozenset(
    b"allownull attributeusage conditional debuggerdisplay debuggerstepthrough editorbrowsable "
    b"excludefromcodecoverage flags maybenull methodimpl notnull notnullwhen obsolete pure serializable "
    b"structlayout suppressmessage".split()
)
SYMBOLS = {
    "csharp": LanguageSymbols(
        marks=MarkRules(descriptions=_DESCRIPTIONS),
        type_declarations=type_declarations,
        imports=_read_imports,
        inner_names={"identifier": is_marked_name},
        used_names=read_names,
    ),
}
