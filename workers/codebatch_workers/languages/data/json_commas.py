"""Trailing commas in JSON, which the readers of some files accept. The grammar reports them as errors."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

_STRICT_NAMES = frozenset(
    (b"package.json", b"package-lock.json", b"npm-shrinkwrap.json", b"composer.json", b"bower.json")
)


def find_accepted(path: bytes, has_comments: bool, errors: Sequence[Node]) -> tuple[list[Node], bool]:
    """Return the trailing commas among some errors, and whether the readers of the file certainly accept them.

    If a `.json` file contains a comment, its reader must accept trailing commas too. The readers of package manifests
    and data formats accept only strict JSON. So these files have none.
    """
    name = path.rpartition(b"/")[2]
    is_strict = name in _STRICT_NAMES or not name.endswith(b".json")
    return ([] if is_strict else trailing_commas(errors)), has_comments


def trailing_commas(errors: Sequence[Node]) -> list[Node]:
    """Return those of some error and missing nodes whose only cause is a trailing comma."""
    return [node for node in errors if _is_trailing_comma(node)]


def _is_trailing_comma(node: Node) -> bool:
    """Return whether a trailing comma is the cause of an error or missing node.

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
