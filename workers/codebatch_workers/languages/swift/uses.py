"""Uses of types in Swift, and of members of a type, of `self`, or of a local variable with a declared type.

A function can be overloaded in an extension in any file of its module, so a member is at most `inferred`. The cases of
an enum are an exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tree_sitter import Node

from codebatch.model.analysis.uses import UNKNOWN, Certainty, Resolved, resolve_to
from codebatch_workers.symbols.local_names import UNKNOWN_TYPE, constructed_class, type_text
from codebatch_workers.uses.chain_types import ChainType
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses
from codebatch_workers.uses.language_rules import CLASS_TYPES, LINK_CERTAINTY, ArgumentRules, LanguageRules

_NAME_NODES = frozenset({"simple_identifier", "type_identifier"})
# Conditions such as `#if os(Linux)`, and labels of arguments.
_NODES_WITHOUT_USES = frozenset({"directive", "value_argument_label"})
_OWN_TYPE_NAMES = frozenset({"Self", "self"})
_FactsOf = Callable[[str], SourceFacts | None]


class SwiftUses(LanguageResolver):
    """The resolution of uses in Swift."""

    def resolve(self, facts: SourceFacts, name: Node, scope: str) -> Resolved:
        is_used = name.parent is not None and name.parent.type not in _NODES_WITHOUT_USES
        chain = facts.chain_of(name)
        if name.type not in _NAME_NODES or not is_used or chain.is_open:
            return UNKNOWN
        names = chain.names
        # After the name, because its own declaration must be seen.
        receiver = facts.local_names.receiver(chain.start + len(names[0].encode()), names[0].encode())
        if receiver == UNKNOWN_TYPE or (receiver and len(names) == 1):
            return UNKNOWN
        if receiver:
            found = _find_type(facts, self.facts_of, receiver.split("."), scope)
            if found is None or found.count < len(receiver.split(".")):
                return UNKNOWN
            return _members(found, names[1:], "inferred")
        if names[0] in _OWN_TYPE_NAMES:
            owner = _enclosing_type(facts, scope)
            return _members(ChainType("inferred", facts, owner, 1), names[1:], "inferred") if owner else UNKNOWN
        if not names[0][:1].isupper():
            return _plain_name(facts, self.facts_of, names[0], scope) if len(names) == 1 else UNKNOWN
        found = _find_type(facts, self.facts_of, names, scope)
        if found is None:
            return UNKNOWN
        return _members(found, names[found.count :], found.certainty)


def _find_type(facts: SourceFacts, facts_of: _FactsOf, names: Sequence[str], scope: str) -> ChainType | None:
    """Return the type that the longest possible beginning of a chain names."""
    for count in range(len(names), 0, -1):
        written = ".".join(names[:count])
        for outer in facts.scopes(scope):
            if facts.is_class(f"{outer}.{written}"):
                return ChainType("exact", facts, f"{outer}.{written}", count)
        edges = facts.implicit_links.get(written, ())
        if facts.is_class(written):
            # A base of the enclosing type can have a nested type with this name.
            is_certain = not edges and not any(facts.bases.get(outer) for outer in facts.scopes(scope))
            return ChainType("exact" if is_certain else "inferred", facts, written, count)
        places = [(edge, target) for edge in edges if (target := facts_of(edge.target)) is not None]
        if len(edges) == 1 and places:
            edge, target = places[0]
            for qualified in (written, written.partition(".")[2]):
                if qualified and target.is_class(qualified):
                    return ChainType(LINK_CERTAINTY[edge.resolution], target, qualified, count)
    return None


def _members(found: ChainType, names: Sequence[str], certainty: Certainty) -> Resolved:
    """Return the type itself if there are no names, or its member if there is one name."""
    certainty, symbols = found.find(names, certainty)
    return resolve_to(certainty, map(found.facts.definition, symbols))


def _plain_name(facts: SourceFacts, facts_of: _FactsOf, name: str, scope: str) -> Resolved:
    """Return the member of an enclosing type, or the function or variable of the module, that a plain name names."""
    for outer in facts.scopes(scope):
        symbols = [symbol for symbol in facts.symbols_named(f"{outer}.{name}") if symbol.symbol_type not in CLASS_TYPES]
        if symbols:
            return resolve_to("inferred", map(facts.definition, symbols))
    edges = facts.implicit_links.get(name, ())
    target = facts_of(edges[0].target) if len(edges) == 1 and not facts.symbols_named(name) else facts
    return UNKNOWN if target is None else resolve_to("inferred", map(target.definition, target.symbols_named(name)))


def _enclosing_type(facts: SourceFacts, scope: str) -> str:
    """Return the type around a scope. In an extension, the file may not define it. Return "" if there is none."""
    for outer in facts.scopes(scope):
        if not facts.symbols_named(outer) or facts.is_class(outer):
            return outer
    return ""


def _swift_type(name: Node, utf8: bytes) -> str:
    """Return the type after a parameter or variable in Swift, or the class of which its value is constructed."""
    parent = name.parent
    declared = name if parent is None or parent.type != "pattern" else parent
    following = declared.next_named_sibling
    if following is not None and following.type == "type_annotation" and following.named_children:
        following = following.named_children[-1]
    elif following is not None and parent is not None and parent.type == "pattern":
        if following.type == "constructor_expression" and following.named_children:
            following = following.named_children[0]
        else:
            return constructed_class(following, utf8, capitals_construct=True)
    if following is not None and following.type == "optional_type" and following.named_children:
        following = following.named_children[0]
    return type_text(following, utf8) if following is not None and following.type == "user_type" else ""


_RULES = LanguageRules(
    not_overridable=re.compile(rb"\b(?:private|static)\b"),
    is_sequential=True,
    capitals_construct=True,
    read_type=_swift_type,
    arguments=ArgumentRules(),
    labels=frozenset({"value_argument_label"}),
)
USES = {"swift": LanguageUses(_RULES, SwiftUses)}
