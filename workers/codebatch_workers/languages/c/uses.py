"""Uses of functions, variables, macros and types in C.

A name of the file itself precedes the name that the linker finds. Names in the bodies of macros are not resolved,
because their meaning depends on the place where the macro is used.
"""

from __future__ import annotations

import re

from msgspec.structs import replace
from tree_sitter import Node

from codebatch.model.analysis.uses import UNKNOWN, Resolved, resolve_to
from codebatch.model.record import Symbol
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses
from codebatch_workers.uses.language_rules import CLASS_TYPES, LINK_CERTAINTY, ArgumentRules, LanguageRules

_NAME_NODES = frozenset({"identifier", "type_identifier"})
_EXTERNAL_TYPES = frozenset({"function", "variable"})


class CUses(LanguageResolver):
    """The resolution of uses in C."""

    def resolve(self, facts: SourceFacts, node: Node, scope: str) -> Resolved:
        name = facts.text(node)
        # After the name, because its own declaration must be seen.
        if node.type not in _NAME_NODES or facts.local_names.receiver(node.end_byte, name.encode()):
            return UNKNOWN
        is_type = node.type == "type_identifier"
        own = [symbol for symbol in facts.symbols_named(name) if (symbol.symbol_type in CLASS_TYPES) == is_type]
        if node.parent is not None and node.parent.type.startswith("preproc_"):
            # The condition of a directive sees only macros. A parameter of a macro is a name of its own.
            own = [symbol for symbol in own if symbol.symbol_type == "macro"]
            return _resolved(facts, own) if node.parent.type != "preproc_params" else UNKNOWN
        declaration = _declaration_around(node)
        if declaration == "parameter_declaration":
            return UNKNOWN
        if declaration:
            # A macro with this name is defined elsewhere, or only under another condition.
            own = [symbol for symbol in own if symbol.symbol_type in _EXTERNAL_TYPES]
        if own or is_type:
            return _resolved(facts, own)
        edges = facts.implicit_links.get(name, ())
        if not edges or _is_declared_static(facts.file.utf8, name.encode()):
            return UNKNOWN
        definitions = [
            target.definition(symbol)
            for edge in edges
            if (target := self.facts_of(edge.target)) is not None
            for symbol in target.symbols_named(name)
            if symbol.symbol_type in _EXTERNAL_TYPES and symbol.visibility != "private"
        ]
        return resolve_to(LINK_CERTAINTY[edges[0].resolution], definitions)


def _declaration_around(name: Node) -> str:
    """Return the type of the declaration whose declarator has this name. Return "" for any other name."""
    node = name
    while node.parent is not None:
        parent = node.parent
        if node not in parent.children_by_field_name("declarator") and parent.type != "parenthesized_declarator":
            return ""
        if parent.type.endswith(("declaration", "definition")):
            return parent.type
        node = parent
    return ""


def _resolved(facts: SourceFacts, symbols: list[Symbol]) -> Resolved:
    """Return definitions in the file. Which of several is compiled depends on the preprocessor."""
    return resolve_to("exact", map(facts.definition, symbols))


def _is_declared_static(utf8: bytes, name: bytes) -> bool:
    """Return whether the file declares a static function, of which a macro generates the definition."""
    return re.search(rb"\bstatic\b[^;{}()]*\b%b\s*\(" % re.escape(name), utf8) is not None


_RULES = LanguageRules(is_sequential=True, has_arrows=True)
_CPP = replace(
    _RULES,
    not_overridable=re.compile(rb"\bstatic\b"),
    is_resolved=False,
    arguments=ArgumentRules(separates_defaults=True, converts_truth=True),
    signatures=frozenset({"declaration", "field_declaration"}),
)
USES = {"c": LanguageUses(_RULES, CUses), "cpp": LanguageUses(_CPP)}
