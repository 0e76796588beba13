"""Changes of files: proposed by tasks, shown by `codebatch changes`, and written by `codebatch apply`."""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.model.digest import Digest


class TreeChange(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A change of one file of a tree.

    - `before`, `after`: the digests of the contents in the object store. None: the file does not exist then. For a
      link, the content is its target. They differ, or `executable` is another than before.
    - `executable`: whether the file is executable after the change.
    """

    path: bytes
    kind: Literal["file", "link"] = "file"
    before: Digest | None
    after: Digest | None
    executable: bool = False


class ProposedChange(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A change that a task of a batch proposes, with the numbers of lines that it adds and removes."""

    change: TreeChange
    task: str
    added: int
    removed: int
