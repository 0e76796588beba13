"""Lua."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    "lua": LanguageFacts(has_all_links=True, maps_module_roots=True, called_methods=r"__\w+"),
}
