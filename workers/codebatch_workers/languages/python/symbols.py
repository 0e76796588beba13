"""Definitions and names of Python."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.python.load_time import is_for_main_program, is_for_type_checker
from codebatch_workers.symbols.imported_names import ImportedName, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime, MarkRules, ParameterRules


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the targets and bound names of a Python import.

    `import a.b` has the target `a.b` and binds `a`. `from ..a import b as c` has the target `..a.b` and binds `c`.
    """
    module = node.child_by_field_name("module_name")
    prefix = ""
    if node.type == "future_import_statement":
        prefix = "__future__."
    elif module is not None:
        written = node_text(module, utf8)
        prefix = written if written.endswith(".") else f"{written}."
    names = []
    for name in node.children_by_field_name("name"):
        dotted, bound = name, name
        if name.type == "aliased_import":
            dotted = name.child_by_field_name("name") or name
            bound = name.child_by_field_name("alias") or name
        elif not prefix:
            bound = name.named_children[0] if name.named_child_count else name
        target = prefix + node_text(dotted, utf8)
        names.append(ImportedName(target, dotted, bound, is_module=not prefix and "." in target))
    if module is not None and not names:
        names.extend(
            ImportedName(f"{prefix}*", child, None) for child in node.named_children if child.type == "wildcard_import"
        )
    return names


def _is_init(name: str, _class_name: str) -> bool:
    return name == "__init__"


def _visibility_by_underscore(name: str, symbol_type: SymbolType, _around: str) -> Visibility:
    return "private" if name[0] == "_" and symbol_type != "import" and not name.endswith("__") else "public"


# Marks that only describe a definition.
_DESCRIPTIONS = frozenset(
    b"abstractmethod asynccontextmanager cache cached_property classmethod contextmanager dataclass define "
    b"deleter deprecated final frozen getter lru_cache no_type_check overload override property reify "
    b"runtime_checkable setter staticmethod total_ordering unique wraps".split()
)
SYMBOLS = {
    "python": LanguageSymbols(
        marks=MarkRules(descriptions=_DESCRIPTIONS),
        is_constructor=_is_init,
        parameters=ParameterRules(leading_name=re.compile(rb"\*{0,2}[\w\x80-\xff]+")),
        visibility=_visibility_by_underscore,
        rejects_reserved_names=True,
        capitals_are_constants=True,
        trailing_marks=b";\\",
        imports=_read_imports,
        has_imports_without_calls=True,
        load_time=LoadTime(
            function_nodes=frozenset({"function_definition"}),
            is_deferred=is_for_main_program,
            is_type_only=is_for_type_checker,
            declaration_endings=(b".pyi",),
        ),
    ),
}
