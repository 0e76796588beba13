"""Orphaned temporary files of a batch. The next writer finds and removes them if no live process can own them.

Unfinished files have names `.….tmp`, unfinished packs `.part`. Three rules identify orphans:

- The writer of an unfinished pack holds its flock. A pack that is not locked is an orphan.
- All other files outside of batches are written under the shared lock of the store. A process with the exclusive lock
  can therefore treat each of them as an orphan.
- All files in a batch are written by a holder, or by a coordinator for one of its workers. A coordinator is registered
  as a holder before it writes the first file and until after the last. So the sweeper lists the files *before* the
  holders. A listed file whose creator is not among the live holders is an orphan.

A reader also writes a file without a lock: the missing index of a pack. If this file is removed while it is unfinished,
the reader uses the index without a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from codebatch.model.outcome import HolderId
from codebatch.store import layout
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.unfinished import remove_unfinished, remove_unlocked
from codebatch.system.files.files import StoreFiles

_HOLDER_IN_NAME = re.compile(r"\.+([0-9a-f]{32})\.")


class BatchLeftovers:
    """The unfinished files in a batch that may be orphans, listed at construction.

    Read the holders after the construction, then call `remove_orphaned`.
    """

    def __init__(self, files: StoreFiles, batch_root: Path) -> None:
        self._files = files
        self._merging = _unfinished_files(files, batch_root / layout.OUTPUTS)
        self._commits = _unfinished_files(files, batch_root / layout.OUTCOMES)
        self._holders = _unfinished_files(files, batch_root / layout.HOLDERS)
        scratch = batch_root / layout.SCRATCH
        names = files.listing(scratch)
        self._scratch = [scratch / name for name in names if layout.HOLDER_PATTERN.match(name)]

    def remove_orphaned(self, holders: Sequence[tuple[HolderFile, bool]], own_holder: HolderId) -> int:
        """Remove files that belong to no live holder. Return the number of removed files.

        `own_holder` is the ID of the coordinator that sweeps.
        """
        live = {holder.holder for holder, is_live in holders if is_live}
        registered = {holder.holder for holder, _ in holders}
        # Another coordinator may be merging, and its workers create their scratch directories before they register as
        # holders.
        is_alone = not any(
            is_live and holder.role == "coordinator" and holder.holder != own_holder for holder, is_live in holders
        )
        dead = [path for path in self._scratch if path.name not in live and (is_alone or path.name in registered)]
        dead += [path for path in self._commits if _owner_id(path) not in live]
        dead += self._merging if is_alone else []
        registering = [path for path in self._holders if _owner_id(path) not in live]
        return sum(remove_unfinished(self._files, path) for path in dead) + sum(
            remove_unlocked(self._files, path) for path in registering
        )


def _unfinished_files(files: StoreFiles, directory: Path) -> list[Path]:
    return [directory / name for name in files.unfinished(directory)]


def _owner_id(path: Path) -> str:
    """Return the holder ID at the start of the name of an unfinished file, or an empty string."""
    match = _HOLDER_IN_NAME.match(path.name)
    return match[1] if match else ""
