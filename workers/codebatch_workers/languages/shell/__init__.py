"""Shells."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    language: LanguageFacts(mentions="plain", has_hash_comments=True, has_all_links=True)
    for language in ("bash", "zsh")
}
