"""The section of `codebatch help languages` about the conformance table."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

from codebatch_workers.languages.registry import implicit_import_rule, import_rule, language_uses
from codebatch_workers.syntax.language.languages import every_language
from codebatch_workers.syntax.language_syntax import LanguageSyntax
from tests.conformance.table import WIDTH, described_table

PAGE = Path(__file__).parents[2] / "codebatch" / "help" / "languages.md"
_SECTION = re.compile(r"(?<=\n## Constructs by version\n\n).*?(?=\n## )", re.DOTALL)
_ABOUT = """\
Each language is tested with constructs from its specification (`tests/conformance` in the source repository).

"""


def _described_parts() -> str:
    """Return the parts of languages that are not supported, with their languages."""

    def is_resolved(language: str) -> bool:
        uses = language_uses(language)
        return uses is not None and uses.rules.is_resolved

    supported: dict[str, Callable[[str], object]] = {
        "definitions": lambda language: LanguageSyntax.of(language).declared_names,
        "links between files": lambda language: import_rule(language) or implicit_import_rule(language),
        "resolved uses": is_resolved,
        "scopes of local names": lambda language: LanguageSyntax.of(language).binding_queries,
    }
    lacking = [
        f"{part} in {', '.join(language for language in every_language() if not is_supported(language))}"
        for part, is_supported in supported.items()
    ]
    return textwrap.fill(f"Not supported: {'; '.join(lacking)}.", WIDTH)


def page_with_table(page: str) -> str:
    """Return the help page with an updated section."""
    updated, number = _SECTION.subn(lambda _: f"{_ABOUT}{described_table()}\n\n{_described_parts()}\n", page)
    assert number == 1, "the page must have exactly one section for the table"
    return updated
