"""The part of `codebatch help languages` that says what the conformance table holds."""

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
    """Return the help page with the section made anew."""
    made, number = _SECTION.subn(lambda _: f"{_ABOUT}{described_table()}\n", page)
    assert number == 1, "the page has no section for the table"
    return made
