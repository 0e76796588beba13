"""CSS, HTML and Markdown."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

FACTS = {
    "css": LanguageFacts(mentions="plain"),
    "html": LanguageFacts(mentions="plain", is_markup=True),
    "markdown": LanguageFacts(mentions="none"),
}
