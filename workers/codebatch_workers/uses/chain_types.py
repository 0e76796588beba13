"""Types that chains of names begin with, and the members after them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codebatch.model.analysis.uses import Certainty, least_certain
from codebatch.model.record import Symbol
from codebatch_workers.uses.file_facts import SourceFacts


class ChainType(msgspec.Struct, frozen=True):
    """A type, the file that defines it, and the number of names in the chain that name it.

    A type outside the snapshot has no qualified name.
    """

    certainty: Certainty
    facts: SourceFacts
    qualified: str
    count: int

    def find(self, names: Sequence[str], certainty: Certainty) -> tuple[Certainty, Sequence[Symbol]]:
        """Return the type itself if there are no names, or its member if there is one name."""
        if not names:
            return certainty, self.facts.classes_named(self.qualified)
        symbols = self.facts.symbols_named(f"{self.qualified}.{names[0]}") if len(names) == 1 else ()
        is_constant = all(symbol.symbol_type == "enum_member" for symbol in symbols)
        return certainty if is_constant else least_certain(certainty, "inferred"), symbols
