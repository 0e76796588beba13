"""What readers of JSON accept beyond JSON: comments, and a comma behind the last element.

Many tools read their configuration so, which linguist and VS Code call "JSON with comments". Their files are known by
name; any other `.json` file that holds a comment has such a reader too, for a strict one would refuse it. The grammar
parses comments, but calls a trailing comma an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

# Files that their own tools read with comments and trailing commas: TypeScript, VS Code, Zed, linters, Babel, bundlers,
# .NET, Renovate and others. Without the `.json` at their end.
_TOLERANT = re.compile(
    rb"(?:^|/)(?:\.(?:vscode|zed)/[^/]+|[^/]*[jt]sconfig[^/]*|[^/]*(?:color|icon)-theme|[^/]*language-configuration|"
    rb"\.?devcontainer|\.?markdownlint(?:-cli2)?|\.eslintrc|tslint|\.?oxlintrc|\.?cspell(?:\.config)?|pyrightconfig|"
    rb"\.babelrc|babel\.config|\.mocharc|\.luarc|api-extractor[^/]*|typedoc|rush|biome|deno|turbo|wrangler|nx|angular|"
    rb"renovate|\.renovaterc|appsettings[^/]*|launchSettings)\.json\Z"
)


def takes_comments(path: bytes) -> bool:
    """Return whether a `.json` file is known, by its path, to be read as JSON with comments."""
    return _TOLERANT.search(path) is not None


def is_trailing_comma(node: Node) -> bool:
    """Return whether an error or missing node is there for a comma behind the last element and for nothing else.

    In an array of texts or numbers the grammar misses an element behind the comma, elsewhere the comma is the error.
    """
    comma = _beside(node, "prev_sibling") if node.is_missing else node
    closing = _beside(node, "next_sibling")
    if comma is None or closing is None or closing.type not in ("]", "}") or (comma.text or b"").strip() != b",":
        return False
    before = _beside(comma, "prev_sibling")
    return before is not None and before.type not in ("[", "{", ",")


def _beside(node: Node, direction: str) -> Node | None:
    """Return the nearest node on one side that is no comment."""
    at: Node | None = getattr(node, direction)
    while at is not None and at.type == "comment":
        at = getattr(at, direction)
    return at
