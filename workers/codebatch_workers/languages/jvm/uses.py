"""Uses of names in Java, Kotlin and Scala."""

from __future__ import annotations

from codebatch_workers.languages.jvm.java_uses import JavaUses
from codebatch_workers.languages.jvm.kotlin_uses import KotlinUses, kotlin_type
from codebatch_workers.uses.language_resolver import LanguageUses
from codebatch_workers.uses.language_rules import LanguageRules

_JAVA = LanguageRules(
    own_object=frozenset({"this"}),
    own_object_is_exact=True,
    base_object=frozenset({"super"}),
    sees_members=True,
    has_overloads=True,
    labels=frozenset({"element_value_pair"}),
)
USES = {
    "java": LanguageUses(_JAVA, JavaUses),
    "kotlin": LanguageUses(LanguageRules(read_type=kotlin_type), KotlinUses),
    "scala": LanguageUses(resolver=KotlinUses),
}
