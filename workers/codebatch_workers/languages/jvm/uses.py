"""Uses of names in Java, Kotlin and Scala."""

from __future__ import annotations

import re

from codebatch_workers.languages.jvm.java_uses import JavaUses
from codebatch_workers.languages.jvm.kotlin_uses import KotlinUses, bind_kotlin_import, kotlin_type
from codebatch_workers.uses.language_resolver import LanguageUses
from codebatch_workers.uses.language_rules import ArgumentRules, LanguageRules

_JAVA = LanguageRules(
    not_overridable=re.compile(rb"\b(?:private|static)\b"),
    is_sequential=True,
    has_overloads=True,
    labels=frozenset({"element_value_pair"}),
    arguments=ArgumentRules(are_checked=True),
)
_KOTLIN = LanguageRules(
    not_overridable=re.compile(rb"\bprivate\b"),
    is_sequential=True,
    capitals_construct=True,
    read_type=kotlin_type,
    bind_import=bind_kotlin_import,
    arguments=ArgumentRules(are_checked=True, inherits_defaults=True),
)
_SCALA = LanguageRules(
    is_sequential=True, capitals_construct=True, bind_import=bind_kotlin_import, arguments=ArgumentRules()
)
USES = {
    "java": LanguageUses(_JAVA, JavaUses),
    "kotlin": LanguageUses(_KOTLIN, KotlinUses),
    "scala": LanguageUses(_SCALA, KotlinUses),
}
