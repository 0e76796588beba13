"""Symbolic links of a tree that stay inside it. Programs follow links, and the targets come from the analysed tree."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.tree_links import resolve_link


def inner_links(targets: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the links that lead to another place inside the tree, even if they are resolved through other links.

    `targets` maps the path of each link in the tree to its target.
    """
    return {path: target for path, target in targets.items() if resolve_link(path, targets) is not None}
