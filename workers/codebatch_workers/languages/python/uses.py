"""Uses of names in Python, resolved by the common rules."""

from __future__ import annotations

import builtins
import re

from tree_sitter import Node

from codebatch_workers.languages.python.modules import PythonModules
from codebatch_workers.languages.python.values import PYTHON_VALUES
from codebatch_workers.uses.language_resolver import LanguageUses
from codebatch_workers.uses.language_rules import FieldOrigin, LanguageRules


def _field_origin(name: Node) -> FieldOrigin:
    """Return whether a field has a type, or only a value in the body of the class, or in a method: `self.x = 1`."""
    target = name.parent
    is_in_method = target is not None and target.type == "attribute"
    statement = target.parent if target is not None and is_in_method else target
    if statement is not None and statement.child_by_field_name("type") is not None:
        return "declared"
    return "set" if is_in_method else "assigned"


USES = {
    "python": LanguageUses(
        LanguageRules(
            not_overridable=re.compile(rb"\b__\w*(?<!__)\Z"),
            own_object=frozenset({"self", "cls"}),
            base_object=frozenset({"super"}),
            modules=PythonModules(),
            values=PYTHON_VALUES,
            calls_construct=True,
            call_objects={
                "super": "bases",
                "cast": "first_argument",
                "typing.cast": "first_argument",
                "cls": "itself",
            },
            builtins=frozenset(dir(builtins)),
            signatures=frozenset({"overload", "typing.overload"}),
            names_of_class_bodies=frozenset({"__module__", "__qualname__"}),
            field_origin=_field_origin,
            has_bindings=True,
            labels=frozenset({"keyword_argument"}),
        )
    )
}
