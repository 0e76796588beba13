"""Targets of symbolic links, which must stay below the root of the tree.

A target is relative, and `..` only occurs at its beginning, at most as often as there are directories above the link.
If all links of a tree are like that, no path through them leads out of the tree. Links that were there before need not
be like that. So each link on the way of a new target is checked too.
"""

from __future__ import annotations

import contextlib
import stat

from codebatch.operations.changes.directories import has_reserved_name
from codebatch.system.files.tree_writer import TreeCalls

LINK_TARGET_BYTES_MAX = 4095
_LINKS_MAX = 40
"""The number of links that Linux follows in a path (path_resolution(7))."""


def link_target_reason(path: bytes, target: bytes) -> str | None:
    """Return the reason why a link at a path must not have a target, or None. The tree is not read."""
    return None if _resolve(path, target) is not None else "its target is invalid, or leads out of the tree"


def existing_target_reason(calls: TreeCalls, root: int, path: bytes, target: bytes) -> str | None:
    """Return the reason why a link at a path must not have a target, also because of other links in the tree."""
    pending = _resolve(path, target)
    if pending is None:
        return link_target_reason(path, target)
    place: list[bytes] = []
    links = 0
    while pending and links < _LINKS_MAX:
        place.append(pending.pop(0))
        found = _read_link(calls, root, place)
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


def _read_link(calls: TreeCalls, root: int, names: list[bytes]) -> bytes | None:
    """Return the target of a link at a path, or None if another entry is there. The directories above are real ones."""
    *above, name = names
    opened: list[int] = []
    try:
        for directory in above:
            opened.append(calls.open_directory(opened[-1] if opened else root, directory))
        parent = opened[-1] if opened else root
        is_link = stat.S_ISLNK(calls.status(parent, name).st_mode)
        return calls.read_link(parent, name) if is_link else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    finally:
        for fd in opened:
            with contextlib.suppress(OSError):
                calls.close(fd)
