"""Linked git work trees, read from their files as described in gitrepository-layout(5), without running git.

A linked work tree has a file `.git` that names the directory `<common>/worktrees/<name>`. Any user can write such a
file. So the work tree counts as linked only if that directory has a file `gitdir` that names the work tree. Only the
owner of the repository can write this file.
"""

from __future__ import annotations

import os
import re

from codebatch.system.files.regular_files import read_regular

_GITFILE_PREFIX = b"gitdir: "
_GITFILE_BYTES_MAX = 8192
_CONFIG_BYTES_MAX = 1 << 20
_CONFIGURED_TREE = re.compile(rb"^\[core\](?:\n[^\[\n]*)*?\n\s*worktree\s*=\s*(.*?)\s*$", re.MULTILINE | re.IGNORECASE)


def common_directory(top: bytes) -> bytes | None:
    """Return the git directory that a work tree shares with other work trees of its repository, with links resolved.

    `top` is the absolute root of the work tree. Its `.git` is the git directory itself, or a file that names the git
    directory. It is a file in a linked work tree, in a submodule, and after `git init --separate-git-dir`. Return None
    if `.git` is neither.
    """
    path = os.path.join(top, b".git")
    if os.path.isdir(path):
        return os.path.realpath(path)
    if (linked := linked_common_directory(top)) is not None:
        return linked
    own = _named_directory(top)
    is_own = own is not None and os.path.isdir(own) and not os.path.lexists(os.path.join(own, b"commondir"))
    return os.path.realpath(own) if own is not None and is_own else None


def linked_common_directory(top: bytes) -> bytes | None:
    """Return the common git directory if the work tree at `top` is a linked one. Otherwise return None."""
    own = _named_directory(top)
    if own is None:
        return None
    common, back = _read_one_line(os.path.join(own, b"commondir")), _read_one_line(os.path.join(own, b"gitdir"))
    if common is None or back is None:
        return None
    # The path may be relative since git 2.48 (worktree.useRelativePaths).
    if os.path.realpath(os.path.join(own, back)) != os.path.realpath(os.path.join(top, b".git")):
        return None
    return os.path.realpath(os.path.join(own, common))


def read_linked_trees(common: bytes) -> dict[bytes, bool]:
    """Map the top of each linked work tree of a repository to whether it is locked, like `git worktree list`.

    `common` is the common git directory. A listed tree may not exist. Raises OSError if the list cannot be read
    completely, or if `common` is not a git directory.
    """
    os.stat(os.path.join(common, b"HEAD"))
    place = os.path.join(common, b"worktrees")
    try:
        names = os.listdir(place)
    except FileNotFoundError:  # git removes the directory with its last work tree.
        return {}
    trees: dict[bytes, bool] = {}
    for name in names:
        own = os.path.join(place, name)
        try:
            back = read_regular(os.path.join(own, b"gitdir"), bytes_max=_GITFILE_BYTES_MAX, is_link_followed=False)
        except FileNotFoundError:
            continue
        top = os.path.dirname(os.path.normpath(os.path.join(own, back.removesuffix(b"\n"))))
        trees[top] = os.path.lexists(os.path.join(own, b"locked"))
    return trees


def is_linked_work_tree(top: bytes, other: bytes | None) -> bool:
    """Return whether `top` is a linked work tree of the repository whose work tree is at `other`."""
    if other is None or top == other:
        return False
    common = linked_common_directory(top)
    return common is not None and common == common_directory(other)


def main_work_tree(top: bytes) -> bytes | None:
    """Return the root of the main work tree of the repository to which the work tree at `top` is linked.

    Return None if it is not a linked work tree, if the repository is bare, or if its git directory does not name the
    main work tree (`git init --separate-git-dir`). The git directory of a submodule names it (`core.worktree`).
    """
    common = linked_common_directory(top)
    if common is None or not os.path.isdir(common):
        return None
    if os.path.basename(common) == b".git":
        return os.path.dirname(common)
    try:
        config = read_regular(os.path.join(common, b"config"), bytes_max=_CONFIG_BYTES_MAX, is_link_followed=True)
    except OSError:
        return None
    named = _CONFIGURED_TREE.search(config)
    main = os.path.realpath(os.path.join(common, named[1].strip(b'"'))) if named is not None else common
    return main if main != common and common_directory(main) == common else None


def unconfirmed_link(top: bytes) -> bytes | None:
    """Return the common git directory that a work tree names but to which it is not linked, or None.

    The repository was moved, or the work tree was moved or copied without git. The directory may not exist.
    """
    own = _named_directory(top)
    if own is None or linked_common_directory(top) is not None:
        return None
    parent, _ = os.path.split(own.rstrip(b"/"))
    is_submodule = os.path.isdir(own) and not os.path.lexists(os.path.join(own, b"commondir"))
    return os.path.dirname(parent) if os.path.basename(parent) == b"worktrees" and not is_submodule else None


def _named_directory(top: bytes) -> bytes | None:
    """Return the git directory named by the `.git` file of a work tree, or None if `.git` is not such a file."""
    link = _read_one_line(os.path.join(top, b".git"))
    return (
        os.path.join(top, link.removeprefix(_GITFILE_PREFIX))
        if link is not None and link.startswith(_GITFILE_PREFIX)
        else None
    )


def _read_one_line(path: bytes) -> bytes | None:
    """Return the content of a regular file that has one line, without the newline.

    Return None if there is no such file.
    """
    try:
        return read_regular(path, bytes_max=_GITFILE_BYTES_MAX, is_link_followed=False).removesuffix(b"\n")
    except OSError:
        return None
