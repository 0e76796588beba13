"""The section of `codebatch help languages` about the conformance table."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conformance.table import described_table

PAGE = Path(__file__).parents[2] / "codebatch" / "help" / "languages.md"
_SECTION = re.compile(r"(?<=\n## Constructs by version\n\n).*?(?=\n## )", re.DOTALL)
_ABOUT = """\
Each language is tested with constructs from its specification (`tests/conformance` in the source repository). This list
shows for each language the number of constructs and the newest version of the language that is tested:

"""


def page_with_table(page: str) -> str:
    """Return the help page with an updated section."""
    updated, number = _SECTION.subn(lambda _: f"{_ABOUT}{described_table()}\n", page)
    assert number == 1, "the page must have exactly one section for the table"
    return updated
