"""Symbolic links of a tree that stay inside it. Programs follow links, and the targets come from the analysed tree."""

from __future__ import annotations

from collections.abc import Mapping

_LINKS_FOLLOWED_MAX = 40
"""The number of links after which Linux gives up: path_resolution(7)."""


def inner_links(targets: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the links that lead to another place inside the tree, even if they are resolved through other links.

    `targets` maps the path of each link in the tree to its target.
    """
    return {path: target for path, target in targets.items() if _is_inside(path, targets)}


def _is_inside(path: bytes, targets: Mapping[bytes, bytes]) -> bool:
    """Return whether a link leads to a place below the top directory of the tree.

    `..` after a link means the parent of the link's target. So the components are resolved one by one.
    """
    resolved: list[bytes] = []
    pending = path.split(b"/")[::-1]
    links_followed = 0
    while pending:
        component = pending.pop()
        if component == b"..":
            if not resolved:
                return False
            resolved.pop()
        elif component not in (b"", b"."):
            resolved.append(component)
            target = targets.get(b"/".join(resolved))
            if target is not None:
                links_followed += 1
                if links_followed > _LINKS_FOLLOWED_MAX or not target or target.startswith(b"/") or b"\0" in target:
                    return False
                resolved.pop()
                pending += target.split(b"/")[::-1]
    return bool(resolved)
