"""Uses of names in Python, resolved by the common rules."""

from __future__ import annotations

import builtins

from codebatch_workers.languages.python.exports import python_exports
from codebatch_workers.uses.language_resolver import LanguageUses
from codebatch_workers.uses.language_rules import LanguageRules

USES = {
    "python": LanguageUses(
        LanguageRules(
            own_object=frozenset({"self", "cls"}),
            base_object=frozenset({"super"}),
            stem_is_module=True,
            calls_construct=True,
            call_objects={
                "super": "bases",
                "cast": "first_argument",
                "typing.cast": "first_argument",
                "cls": "itself",
            },
            builtins=frozenset(dir(builtins)),
            signatures=frozenset({"overload", "typing.overload"}),
            read_exports=python_exports,
            has_bindings=True,
            labels=frozenset({"keyword_argument"}),
        )
    )
}
