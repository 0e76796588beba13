"""Definitions together with the facts about their files."""

from __future__ import annotations

import msgspec
from tree_sitter import Node

from codebatch.model.analysis.uses import Certainty, Definition
from codebatch.model.record import Symbol
from codebatch_workers.uses.file_facts import SourceFacts


class FileSymbol(msgspec.Struct, frozen=True, eq=False):
    """A definition in a file."""

    facts: SourceFacts
    symbol: Symbol

    @property
    def place(self) -> tuple[str, int, int]:
        """The path, line and column of the name. They identify the definition."""
        return self.facts.path, self.symbol.line, self.symbol.column

    @property
    def definition(self) -> Definition:
        """The symbol as a definition."""
        return self.facts.definition(self.symbol)

    @property
    def declaration(self) -> Node | None:
        """The node that declares the symbol: the parent of its name."""
        return self.facts.declaration_of(self.symbol)


class SymbolMeaning(msgspec.Struct, frozen=True):
    """The definitions that a name can mean, also the parts of one type. If there are none, they are external."""

    certainty: Certainty
    symbols: tuple[FileSymbol, ...] = ()
