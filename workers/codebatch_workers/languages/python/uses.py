"""Uses of names in Python, resolved by the common rules."""

from __future__ import annotations

from codebatch_workers.uses.language_resolver import LanguageUses
from codebatch_workers.uses.language_rules import LanguageRules

USES = {
    "python": LanguageUses(
        LanguageRules(
            own_object=frozenset({"self", "cls"}),
            base_object=frozenset({"super"}),
            stem_is_module=True,
            has_bindings=True,
            labels=frozenset({"keyword_argument"}),
        )
    )
}
