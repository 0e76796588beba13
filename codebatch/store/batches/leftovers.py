"""What the dead left behind: found by whoever writes next, and removed where nobody who lives can hold it.

Unfinished things have names `.….tmp`, parts of packs `.part`. Three rules tell the dead's:

- A part is under flock for as long as its writer lives.
- All else outside of batches is written under the store's lock, shared. Who has it alone is alone.
- In a batch everything is made by a holder, or for a worker by its coordinator, who is a holder before and until after.
  So what is listed *before* the holders are, and whose maker is not among the living then, is the dead's.

Readers write too, without a lock (an index of a pack that lacked one): they take it that their file may go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from codebatch.model.outcome import HolderId
from codebatch.store import layout
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.unfinished import remove_unfinished, remove_unlocked
from codebatch.system.files.files import Files

_HOLDER_IN_NAME = re.compile(r"\.+([0-9a-f]{32})\.")


class BatchLeftovers:
    """What may be left over in a batch, as it is listed now. Ask who holds the batch after that, then sweep."""

    def __init__(self, files: Files, batch_root: Path) -> None:
        self._files = files
        self._merging = _unfinished_in(files, batch_root / layout.OUTPUTS)
        self._commits = _unfinished_in(files, batch_root / layout.OUTCOMES)
        self._holders = _unfinished_in(files, batch_root / layout.HOLDERS)
        scratch = batch_root / layout.SCRATCH
        found = files.listing(scratch)
        self._scratch = [scratch / name for name in found if layout.HOLDER_PATTERN.match(name)]

    def sweep(self, holders: Sequence[tuple[HolderFile, bool]], own: HolderId) -> int:
        """Remove what is of none of the living; how much there was. `own` is the coordinator that sweeps."""
        live = {holder.holder for holder, is_live in holders if is_live}
        known = {holder.holder for holder, _ in holders}
        # Another one may be merging, and a worker that it starts has its directory before it is a holder.
        is_alone = not any(
            is_live and holder.role == "coordinator" and holder.holder != own for holder, is_live in holders
        )
        dead = [path for path in self._scratch if path.name not in live and (is_alone or path.name in known)]
        dead += [path for path in self._commits if _holder_of(path) not in live]
        dead += self._merging if is_alone else []
        becoming = [path for path in self._holders if _holder_of(path) not in live]
        return sum(remove_unfinished(self._files, path) for path in dead) + sum(
            remove_unlocked(self._files, path) for path in becoming
        )


def _unfinished_in(files: Files, directory: Path) -> list[Path]:
    return [directory / name for name in files.unfinished(directory)]


def _holder_of(path: Path) -> str:
    """The holder whose id the name of an unfinished file begins with."""
    match = _HOLDER_IN_NAME.match(path.name)
    return match[1] if match else ""
