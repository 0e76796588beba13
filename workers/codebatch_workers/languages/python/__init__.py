"""Python."""

from __future__ import annotations

import re
import sys

from codebatch.model.analysis.language_facts import LanguageFacts, ReferenceFacts

_FALLIBLE_BLOCK = rb"(try|except)\b|with\b.*\b(raises|suppress)"

FACTS = {
    "python": LanguageFacts(
        has_hash_comments=True,
        has_all_links=True,
        maps_module_roots=True,
        unparsed_users=frozenset({"cython"}),
        structural_base="Protocol",
        called_functions=r"main|init|setup|upgrade|downgrade|__getattr__|__dir__|pytest_\w+",
        called_methods=r"__\w+__",
        indirect_bases=r"^(?!.*\b(?:isinstance|issubclass|except)\b).*[(,]\s*(?:\w+\.)*NAME\s*[,)]",
        references=ReferenceFacts(
            dynamic_names=re.compile(
                rb"^def\s+__getattr__|\bdef\s+__getattr__\((?!\s*(self|cls)\b)|\b__getattr__\s*([,=]|$)"
                rb"|import.*\b__getattr__|(?<![.\w])((globals|locals|exec)\s*\(|vars\(\))|\b(__import__|import_module)\b"
                rb"|\bsys\.modules\b(?!\[[\"']|\.get\([\"'])",
                re.MULTILINE,
            ),
            fallible_block=re.compile(_FALLIBLE_BLOCK),
            optional_block=re.compile(_FALLIBLE_BLOCK + rb"|(else|elif)\b|if\b(?!.*TYPE_CHECKING)"),
            own_modules=sys.stdlib_module_names,
        ),
    ),
}
