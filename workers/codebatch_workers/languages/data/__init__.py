"""HCL, JSON, SQL, TOML and YAML."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

_PLAIN = LanguageFacts(mentions="plain")
_PLAIN_WITH_HASHES = LanguageFacts(mentions="plain", has_hash_comments=True)
FACTS = {
    "hcl": _PLAIN_WITH_HASHES,
    "json": _PLAIN,
    "jsonc": _PLAIN,
    "sql": LanguageFacts(ignores_case=True, is_native=True, unlinked_title="SQL"),
    "toml": _PLAIN_WITH_HASHES,
    "yaml": _PLAIN_WITH_HASHES,
}
