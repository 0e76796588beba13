"""Definitions and names of C and C++."""

from __future__ import annotations

import re

from msgspec.structs import replace
from tree_sitter import Node

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.c.macro_definitions import find_macros, iter_calls, iter_words
from codebatch_workers.languages.c.names import read_names
from codebatch_workers.symbols.imported_names import ImportedName, literal_text, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules, ParameterRules
from codebatch_workers.symbols.macros import MacroRules
from codebatch_workers.symbols.parameters_and_visibility import declaration_text, last_name

_INCLUDED_FILE = re.compile(rb'\s*(?:/\*.*?\*/\s*)*(?:"([^"\n]+)"|<([^>\n]+)>)', re.DOTALL)


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
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


_PRAGMAS_WITH_NAMES = frozenset({b"acc", b"omp", b"redefine_extname", b"weak"})
_PLACEHOLDER = re.compile(rb"void\Z|/[*/]")


def _read_parameter(node: Node, utf8: bytes) -> str:
    """Return the name of a parameter, or its type. Return nothing for `void` and for comments."""
    text = declaration_text(node, utf8)
    if _PLACEHOLDER.match(text):
        return ""
    inner = node.child_by_field_name("declarator")
    while (
        inner is not None
        and (deeper := inner.child_by_field_name("declarator") or _inner_declarator(inner)) is not None
    ):
        inner = deeper
    if inner is None:
        return last_name(text) or text.decode("utf-8", "replace")
    return last_name(declaration_text(inner, utf8)) or utf8[inner.start_byte : inner.end_byte].decode(
        "utf-8", "replace"
    )


def _inner_declarator(node: Node) -> Node | None:
    """Return the inner declarator of a declarator such as `(*f)` or `&x`, in which the grammar has no field for it."""
    return next((child for child in node.named_children if child.type.endswith(("declarator", "identifier"))), None)


def _is_named_like_class(name: str, class_name: str) -> bool:
    return name == class_name.rpartition("::")[2]


def _cpp_visibility(_name: str, _symbol_type: SymbolType, around: str) -> Visibility:
    return "private" if around == "class" else "public"


def _is_in_directive(node: Node, _utf8: bytes, _start: int, _end: int) -> bool:
    """Return whether the part is a name in `#undef NAME`, `#pragma weak NAME` or `#pragma omp … NAME`."""
    directive = node.prev_sibling
    if directive is None or directive.type != "preproc_directive":
        return False
    text = b"".join((directive.text or b"").split())
    return text == b"#undef" or (text == b"#pragma" and (node.text or b"").split()[0] in _PRAGMAS_WITH_NAMES)


def _is_macro_block(node: Node) -> bool:
    """Return whether the only parentheses of a function definition are those around its name."""
    declarator = node.child_by_field_name("declarator")
    return declarator is not None and declarator.type == "parenthesized_declarator"


_INNER_NAMES = {"preproc_arg": _is_in_directive}
_MACROS = MacroRules(find_macros, iter_words, iter_calls, _is_macro_block)
_MARKS = MarkRules(counted=frozenset({"constructor", "destructor", "interrupt", "isr", "section", "signal", "used"}))
_PARAMETERS = ParameterRules(read_name=_read_parameter, placeholder=_PLACEHOLDER)
_C = LanguageSymbols(
    parameters=_PARAMETERS,
    has_nested_functions=False,
    imports=_read_imports,
    has_imports_without_calls=True,
    inner_names=_INNER_NAMES,
    macros=_MACROS,
    marks=_MARKS,
    used_names=read_names,
)
_CPP = replace(
    _C,
    scope_separator="::",
    is_constructor=_is_named_like_class,
    visibility=_cpp_visibility,
    has_nested_functions=True,
)
SYMBOLS = {"c": _C, "cpp": _CPP}
