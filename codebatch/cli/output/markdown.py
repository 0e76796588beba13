"""The pages of `codebatch help`: Markdown files in this package. On a terminal, they are rendered as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

from codebatch.cli.output.tables import align_rows, wrap_text

HELP_TOPICS = (
    "first-run",
    "questions",
    "names",
    "findings",
    "ci",
    "ci-services",
    "policies",
    "ci-more",
    "machines",
    "engines",
    "work",
    "work-file",
    "continuing",
    "lists",
    "variables",
    "asking",
    "limits",
    "notify",
    "outputs",
    "trees",
    "live",
    "rules",
    "tasks",
    "changes",
    "rewrites",
    "linters",
    "data",
    "configuration",
    "languages",
    "how-it-works",
    "exit-statuses",
    "from-codebatch-1",
)
"""The topics, in the order in which users need them."""

_LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")
_LIST_ITEM = re.compile(r"(- |\d+\. )")
_CODE_FENCE = "```"
_PROSE_COLUMNS_MAX = 100


def read_help_page(topic: str) -> str:
    """Return the Markdown text of a page. `topic` is one of TOPICS."""
    return (resources.files("codebatch") / "help" / f"{topic}.md").read_text(encoding="utf-8")


def help_title(topic: str) -> str:
    """Return the title of a page."""
    return read_help_page(topic).partition("\n")[0].removeprefix("# ")


def page_lines(text: str, columns: int) -> Iterator[str]:
    """Yield the lines of a page for a terminal.

    Paragraphs are filled, tables are aligned, and code is indented but otherwise unchanged. `columns` is the width of
    the terminal.
    """
    columns = min(columns, _PROSE_COLUMNS_MAX)
    for block in _markdown_blocks(text.splitlines()):
        first = block[0]
        if first.startswith(_CODE_FENCE):
            yield from (f"    {line}".rstrip() for line in block[1:])
        elif first.startswith("#"):
            title = first.lstrip("# ")
            yield from wrap_text(title.upper() if first.startswith("# ") else title, columns)
        elif first.startswith("|"):
            rows = [[_strip_markup(cell.strip()) for cell in line.strip().strip("|").split("|")] for line in block]
            yield from align_rows([rows[0], *rows[2:]], columns)
        else:
            indent = "  " if _LIST_ITEM.match(first) else ""
            yield from wrap_text(_strip_markup(" ".join(map(str.strip, block))), columns, indent)
        if not _LIST_ITEM.match(first):
            yield ""


def _markdown_blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield the blocks of a page as lines: paragraphs, items, tables, headings and code.

    A block of code includes its opening fence, but not its closing fence.
    """
    block: list[str] = []
    for line in lines:
        is_code = bool(block) and block[0].startswith(_CODE_FENCE)
        if is_code and line != _CODE_FENCE:
            block.append(line)
            continue
        if block and (is_code or not line or line.startswith(_CODE_FENCE) or _LIST_ITEM.match(line)):
            yield block
            block = []
        if line and not is_code:
            block.append(line)
    if block:
        yield block


def _strip_markup(text: str) -> str:
    return _LINK.sub(r"\1 (\2)", text).replace("**", "")
