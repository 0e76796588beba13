"""The sections of SPEC.md and workers/TASKS.md, for tests that compare them with the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "SPEC.md"
TASKS = ROOT / "workers" / "TASKS.md"

_HEADING = re.compile(r"^#{2,3} (?:\d+(?:\.\d+)*\.? )?(.+)$", re.MULTILINE)
"""A heading of the second or third level. Its number is not part of its name, so it may change."""


def list_sections(path: Path) -> list[str]:
    """Return the names of all sections of a document, in its order."""
    return _HEADING.findall(path.read_text(encoding="utf-8"))


def read_section(name: str, path: Path = SPEC) -> str:
    """Return the text of a section up to the next heading. Raises KeyError if there is no section of that name."""
    text = path.read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(text))
    for heading, after in zip(headings, [*headings[1:], None], strict=True):
        if heading[1] == name:
            return text[heading.end() : after.start() if after else len(text)]
    raise KeyError(name)


def read_rows(name: str, path: Path = SPEC) -> list[list[str]]:
    """Return the rows of the tables of a section as lists of cells. Header rows are included, separators are not."""
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in read_section(name, path).splitlines()
        if line[:2] == "| "
    ]
