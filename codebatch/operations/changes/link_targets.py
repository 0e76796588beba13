"""Targets of symbolic links, which must stay below the root of the tree.

A target is relative, and `..` only occurs at its beginning, at most as often as there are directories above the link.
If all links of a tree are like that, no path through them leads out of the tree. Links that were there before need not
be like that. So each link on the way of a new target is checked too.
"""

from __future__ import annotations

from collections.abc import Callable

from codebatch.store.reserved_names import has_reserved_name

LINK_TARGET_BYTES_MAX = 4095
_LINKS_MAX = 40
"""The number of links that Linux follows in a path (path_resolution(7))."""


def link_target_reason(path: bytes, target: bytes, read_link: Callable[[bytes], bytes | None]) -> str | None:
    """Return the reason why a link at a path must not have a target, or None.

    `read_link` returns the target of a link of the tree, or None if another entry is at its path. It is only called if
    the directories above are real ones.
    """
    pending = _resolve(path, target)
    if pending is None:
        return "its target is invalid, or leads out of the tree"
    place: list[bytes] = []
    links = 0
    while pending and links < _LINKS_MAX:
        place.append(pending.pop(0))
        found = read_link(b"/".join(place))
        if found is None:
            continue
        links += 1
        resolved = _resolve(b"/".join(place), found)
        if resolved is None:
            return "its target leads out of the tree through another link"
        place, pending = [], [*resolved, *pending]
    return None


def _resolve(path: bytes, target: bytes) -> list[bytes] | None:
    """Return the names of the path from the root that a target leads to, or None if it may leave the tree."""
    if not target or len(target) > LINK_TARGET_BYTES_MAX or target.startswith(b"/") or b"\0" in target:
        return None
    above = path.split(b"/")[:-1]
    names = [name for name in target.split(b"/") if name not in (b"", b".")]
    while names and names[0] == b"..":
        if not above:
            return None
        above.pop()
        names.pop(0)
    resolved = [*above, *names]
    return None if b".." in names or has_reserved_name(b"/".join(resolved)) else resolved
