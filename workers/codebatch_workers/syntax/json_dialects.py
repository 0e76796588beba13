"""JSON with comments and trailing commas, which some programs accept.

Linguist and VS Code call this dialect "JSON with comments". Some files are recognized by their name, because a tool
that accepts the dialect reads them. If any other `.json` file contains a comment, its reader must also accept the
dialect. The grammar accepts comments, but reports trailing commas as errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

# Names of files whose readers accept comments and trailing commas: TypeScript, VS Code, Zed, linters, Babel, bundlers,
# .NET, Renovate and others. The ending `.json` is at the end of the pattern.
_TOLERANT_READER_PATH = re.compile(
    rb"(?:^|/)(?:\.(?:vscode|zed)/[^/]+|[^/]*[jt]sconfig[^/]*|[^/]*(?:color|icon)-theme|[^/]*language-configuration|"
    rb"\.?devcontainer|\.?markdownlint(?:-cli2)?|\.eslintrc|tslint|\.?oxlintrc|\.?cspell(?:\.config)?|pyrightconfig|"
    rb"\.babelrc|babel\.config|\.mocharc|\.luarc|api-extractor[^/]*|typedoc|rush|biome|deno|turbo|wrangler|nx|angular|"
    rb"renovate|\.renovaterc|appsettings[^/]*|launchSettings)\.json\Z"
)


def allows_comments(path: bytes) -> bool:
    """Return whether the path of a `.json` file shows that its reader accepts comments."""
    return _TOLERANT_READER_PATH.search(path) is not None


def is_trailing_comma(node: Node) -> bool:
    """Return whether a trailing comma is the only cause of an error or missing node in JSON.

    In an array of strings or numbers, the grammar reports a missing element after the comma. Elsewhere, the comma
    itself is the error.
    """
    comma = _nearest_sibling(node, "prev_sibling") if node.is_missing else node
    closing = _nearest_sibling(node, "next_sibling")
    if comma is None or closing is None or closing.type not in ("]", "}") or (comma.text or b"").strip() != b",":
        return False
    before = _nearest_sibling(comma, "prev_sibling")
    return before is not None and before.type not in ("[", "{", ",")


def _nearest_sibling(node: Node, direction: str) -> Node | None:
    """Return the nearest sibling that is not a comment, or None. `direction` is `prev_sibling` or `next_sibling`."""
    sibling: Node | None = getattr(node, direction)
    while sibling is not None and sibling.type == "comment":
        sibling = getattr(sibling, direction)
    return sibling
