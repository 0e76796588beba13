"""Uses of constants in Ruby, and of methods that are called on a constant or on `self`.

Ruby calls other methods on values of any class, so their uses are not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from codebatch.model.analysis.uses import UNKNOWN, Certainty, Definition, Resolved, resolve_to
from codebatch.model.record import Symbol
from codebatch_workers.languages.ruby.names import nesting_at
from codebatch_workers.languages.ruby.nesting import INHERITS_MARK, constant_name, namespaces
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses
from codebatch_workers.uses.language_rules import LINK_CERTAINTY, ArgumentRules, LanguageRules

_CONSTANT = re.compile(r"(?:::)?[A-Z]\w*(?:::[A-Z]\w*)*\Z")
_CONSTANT_NODES = frozenset({"constant", "scope_resolution"})
_METHOD_TYPES = frozenset({"function", "method"})
_FactsOf = Callable[[str], SourceFacts | None]
# A file, and a constant that is defined in it.
_Place = tuple[SourceFacts, str]


class RubyUses(LanguageResolver):
    """The resolution of uses in Ruby."""

    def resolve(self, facts: SourceFacts, node: Node, scope: str) -> Resolved:
        parent = node.parent
        if parent is None:
            return UNKNOWN
        if node.type == "constant" and parent.child_by_field_name("method") != node:
            is_last = parent.type == "scope_resolution" and parent.child_by_field_name("name") == node
            certainty, places = _find_constant(facts, self.facts_of, parent if is_last else node)
            named = (place.definition(symbol) for place, full in places for symbol in _named(place, full))
            return resolve_to(certainty, named)
        receiver = parent.child_by_field_name("receiver")
        if parent.type != "call" or receiver is None or parent.child_by_field_name("method") != node:
            return UNKNOWN
        name = facts.text(node)
        if receiver.type in _CONSTANT_NODES:
            certainty, places = _find_constant(facts, self.facts_of, receiver)
            return resolve_to(certainty, _methods(places, name, is_singleton=True))
        if receiver.type == "self":
            # A subclass can override the method.
            place = (
                facts,
                next(namespaces(nesting_at(facts.file, node.start_byte).removesuffix(INHERITS_MARK).split())),
            )
            return resolve_to("inferred", _methods([place], name, is_singleton=_is_singleton_scope(facts, scope)))
        return UNKNOWN


def _find_constant(facts: SourceFacts, facts_of: _FactsOf, node: Node) -> tuple[Certainty, list[_Place]]:
    """Return the places of the constant that a node names."""
    written = b"".join(facts.file.utf8[node.start_byte : node.end_byte].split()).decode("utf-8", "replace")
    if not _CONSTANT.match(written):
        return "name", []
    plain = written.removeprefix("::")
    nesting = nesting_at(facts.file, node.start_byte)
    outer = [] if written.startswith("::") else nesting.removesuffix(INHERITS_MARK).split()
    edges = facts.implicit_links.get(plain, ())
    for namespace in namespaces(outer):
        full = f"{namespace}::{plain}" if namespace else plain
        own: list[_Place] = [(facts, full)] if _named(facts, full) else []
        linked = [
            (edge, target) for edge in edges if (target := facts_of(edge.target)) is not None and _named(target, full)
        ]
        if not own and not linked:
            continue
        if len(own) + len(linked) > 1:
            return "name", [*own, *((target, full) for _, target in linked)]
        if linked:
            return LINK_CERTAINTY[linked[0][0].resolution], [(linked[0][1], full)]
        # Constants of a superclass precede those of the outermost level. Other files can open the same module.
        is_inherited = not namespace and nesting.endswith(INHERITS_MARK)
        is_module = any(symbol.symbol_type == "module" for symbol in _named(facts, full))
        return "inferred" if is_inherited or is_module else "exact", own
    return "name", []


def _named(facts: SourceFacts, full: str) -> list[Symbol]:
    """Return the classes, modules and constants of a file with a full name."""
    last = full.rpartition("::")[2]
    return [
        symbol
        for symbol in facts.all_symbols
        if symbol.qualified.endswith(last) and constant_name(symbol.qualified) == full
        if symbol.symbol_type not in _METHOD_TYPES
    ]


def _methods(places: list[_Place], name: str, *, is_singleton: bool) -> list[Definition]:
    return [
        facts.definition(symbol)
        for facts, full in places
        for symbol in facts.all_symbols
        if symbol.qualified.endswith(f".{name}") and constant_name(symbol.qualified.rpartition(".")[0]) == full
        if symbol.symbol_type in _METHOD_TYPES and _is_singleton(facts, symbol) == is_singleton
    ]


def _is_singleton(facts: SourceFacts, method: Symbol) -> bool:
    """Return whether a method is defined on the class itself: `def self.name`."""
    offset = facts.offset(method)
    return facts.file.utf8[:offset].rstrip().endswith(b".") or any(
        start < offset < end for start, end in _singleton_classes(facts)
    )


def _singleton_classes(facts: SourceFacts) -> Iterator[tuple[int, int]]:
    """Yield the ranges of `class << self` in a file."""
    pending = [facts.file.tree.root_node] if facts.file.tree and b"<<" in facts.file.utf8 else []
    while pending:
        node = pending.pop()
        if node.type == "singleton_class":
            yield node.start_byte, node.end_byte
        pending.extend(node.named_children)


def _is_singleton_scope(facts: SourceFacts, scope: str) -> bool:
    """Return whether `self` is a class or module in a scope: in a singleton method, or outside of methods."""
    methods = [symbol for symbol in facts.symbols_named(scope) if symbol.symbol_type in _METHOD_TYPES]
    return all(_is_singleton(facts, method) for method in methods)


def _is_local_name(node: Node) -> bool:
    """Return whether a name is a local variable: it is not called (symbols.py)."""
    return node.type == "identifier" and node.parent is not None and node.parent.type not in ("alias", "undef")


USES = {"ruby": LanguageUses(LanguageRules(is_local_name=_is_local_name, arguments=ArgumentRules()), RubyUses)}
