"""Names of files that no change of a tree may have: those of git, of codebatch, and of temporary files of `apply`.

git takes a directory for a repository if it has a `.git`, or if it is itself a repository (gitrepository-layout(5)).
Then git runs the programs that the configuration of this repository names. So changes must not make one.

Some file systems ignore case, characters that are not displayed, or dots and spaces at the end of a name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable
from functools import lru_cache

from codebatch.store import layout

TEMPORARY_NAME = re.compile(rb"\.codebatch-[0-9a-f]{32}\.tmp\Z")
_RESERVED_NAMES = frozenset({".git", "git~1", layout.STORE_DIRECTORY})
# The second kind is the directory of a linked work tree: `commondir` names the directory of objects and configuration.
_REPOSITORY_KINDS = ((b"HEAD", b"objects", b"refs"), (b"HEAD", b"commondir"))
_REPOSITORY_NAMES = {name.decode().casefold(): name for kind in _REPOSITORY_KINDS for name in kind}


def has_reserved_name(path: bytes) -> bool:
    """Return whether a component of a path names a directory of git or of codebatch, or a temporary file of `apply`."""
    return any(
        TEMPORARY_NAME.match(component) or _folded(component) in _RESERVED_NAMES for component in path.split(b"/")
    )


def is_repository(has_name: Callable[[bytes], bool]) -> bool:
    """Return whether git takes a directory for a repository. `has_name` returns whether the directory has an entry."""
    return has_name(b".git") or is_bare_repository(has_name)


def is_bare_repository(has_name: Callable[[bytes], bool]) -> bool:
    """Return whether git takes a directory without `.git` for a repository. See `is_repository`."""
    return any(all(map(has_name, names)) for names in _REPOSITORY_KINDS)


def find_repositories(paths: Iterable[bytes], created: Container[bytes], exists: Callable[[bytes], bool]) -> set[bytes]:
    """Return the directories above some paths that are bare repositories once the paths in `created` exist.

    The root is empty, and only returned if it has no `.git`: git would take that. `exists` returns whether there was an
    entry at a path before, also a directory.
    """
    new_names: dict[bytes, set[bytes]] = {}
    for path in paths:
        directory = b""
        for component in path.split(b"/"):
            names = new_names.setdefault(directory, set())
            name = _REPOSITORY_NAMES.get(_folded(component)) if path in created else None
            if name is not None:
                names.add(name)
            directory = b"%b/%b" % (directory, component) if directory else component

    def is_repository_then(directory: bytes) -> bool:
        new, prefix = new_names[directory], directory and directory + b"/"
        is_bare = is_bare_repository(lambda name: name in new or exists(prefix + name))
        return is_bare and (bool(directory) or not exists(b".git"))

    return set(filter(is_repository_then, sorted(new_names)))


@lru_cache(maxsize=4096)
def _folded(component: bytes) -> str:
    """Return a name as a file system compares it that ignores the most."""
    text = unicodedata.normalize("NFKC", component.decode("utf-8", "replace"))
    shown = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return shown.partition(":")[0].rstrip(". ").casefold()
