"""Symbolic links of a tree, resolved without a file system. Their targets come from the analysed tree."""

from __future__ import annotations

from collections.abc import Mapping

_LINKS_FOLLOWED_MAX = 40
"""The number of links after which Linux gives up: path_resolution(7)."""


def resolve_link(path: bytes, targets: Mapping[bytes, bytes]) -> bytes | None:
    """Return the path to which a link leads, or None if it leads to no place below the top directory of the tree.

    `targets` maps the path of each link in the tree to its target. `..` after a link means the parent of the link's
    target. So the components are resolved one by one.
    """
    resolved: list[bytes] = []
    pending = path.split(b"/")[::-1]
    links_followed = 0
    while pending:
        component = pending.pop()
        if component == b"..":
            if not resolved:
                return None
            resolved.pop()
        elif component not in (b"", b"."):
            resolved.append(component)
            target = targets.get(b"/".join(resolved))
            if target is not None:
                links_followed += 1
                if links_followed > _LINKS_FOLLOWED_MAX or not target or target.startswith(b"/") or b"\0" in target:
                    return None
                resolved.pop()
                pending += target.split(b"/")[::-1]
    return b"/".join(resolved) or None
