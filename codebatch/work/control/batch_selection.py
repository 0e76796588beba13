"""Selection of the batch that a command means if its user names none: the latest one, or the only running one.

A project can have task lists in several directories. Seen from the current directory, a list is *here* if it is in this
directory or above it, as for `codebatch work run`; *below*; or *elsewhere*, in another part of the project. Lists here
come first, the nearest of them. Lists elsewhere are never changed unless the user names the batch. An analysis belongs
to every directory of its project.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from codebatch.errors import AmbiguousId, InvalidInput, StoreCorrupt, UnknownId
from codebatch.model.entry import display_path
from codebatch.model.project import is_below
from codebatch.operations import NoteCallback, ignore_note
from codebatch.store.batches.batch_directory import BatchDir, BatchKind, is_work, iter_batches
from codebatch.store.batches.holders import has_live_holder
from codebatch.store.batches.resolution import iter_project_batches, resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import latest_offset
from codebatch.store.work.work_batches import read_work

_BATCHES_NAMED_MAX = 5


class _ListPlace(NamedTuple):
    kind: Literal["here", "below", "elsewhere"]
    home: bytes = b""


def select_batch(
    store: StoreDir,
    reference: str | None,
    note: NoteCallback = ignore_note,
    *,
    kind: BatchKind = "work",
    is_change: bool = False,
) -> BatchDir:
    """Return the batch that a reference names, or the latest one that belongs to the current directory.

    With `is_change`, the caller changes the batch. Then InvalidInput is raised if the user has not named a batch, and
    all batches belong to lists elsewhere. Raises the errors of `resolve_batch`.
    """
    if reference is not None and latest_offset(reference) is None:
        return resolve_batch(store, reference, note, kind=kind)
    latest = select_latest(store, iter_project_batches(store, note, kind=kind), is_change=is_change)
    if latest is None or (reference is not None and latest_offset(reference)):
        return resolve_batch(store, reference, note, kind=kind, latest=latest)
    return latest


def select_latest(store: StoreDir, batches: Iterable[BatchDir], *, is_change: bool = False) -> BatchDir | None:
    """Return the first of some batches that belongs to the current directory, or None if there are no batches.

    `is_change` and InvalidInput are as in `select_batch`.
    """
    pending = iter(batches)
    first = next(pending, None)
    start = _start_directory(store)
    if first is None or start is None or not is_work(first) or first.about.sources == (start,):
        return first
    chosen = _of_current_directory(start, [first, *pending])[0]
    if is_change and is_work(chosen) and _list_place(chosen, start).kind == "elsewhere":
        raise InvalidInput(
            f"batch {chosen.id} is of another task list of the project, in {list_directory_text(store, chosen)}",
            hint=f"if you mean this batch, name it: --batch {chosen.id}",
        )
    return chosen


def select_live_batch(
    store: StoreDir,
    reference: str | None,
    note: NoteCallback = ignore_note,
    *,
    kind: BatchKind = "work",
    else_latest: bool = False,
) -> BatchDir:
    """Return the named batch, or the only running batch of a kind that belongs to the current directory.

    If no batch is running and `else_latest` is set, return the latest one, as `select_batch` for a change. Raises the
    errors of `select_batch`, AmbiguousId if several batches are running, and UnknownId if none is.
    """
    if reference is not None:
        is_id = latest_offset(reference) is None
        return select_batch(store, reference, note, kind="any" if is_id else kind, is_change=True)
    batches = list(iter_project_batches(store, note, kind=kind))
    live = [batch for batch in batches if has_live_holder(batch)]
    start = _start_directory(store)
    chosen = live if start is None else _of_current_directory(start, live)
    if start is not None and chosen and all(_list_place(batch, start).kind == "elsewhere" for batch in chosen):
        chosen = []
    if len(chosen) == 1:
        return chosen[0]
    if not chosen and else_latest:
        return select_batch(store, None, note, kind=kind, is_change=True)
    of_commands, option = (" `work`", " --pipeline work") if kind == "work" else ("", "")
    if chosen:
        raise AmbiguousId(
            f"{len(chosen)}{of_commands} batches of this project are running: {_batches_text(store, chosen)}",
            hint=f"give one with --batch; see: codebatch batch list{option} --active",
        )
    latest = select_latest(store, batches)
    hints = [] if latest is None or latest in live else [f"the latest batch is not running: add --batch {latest.id}"]
    if live:
        hints.append(
            f"running in other directories of the project: {_batches_text(store, live)}; give one with --batch"
        )
        raise UnknownId("no batch of a task list in this directory is running", hint="; ".join(hints))
    if elsewhere := [batch for batch in iter_batches(store, kind=kind) if has_live_holder(batch)]:
        texts = [f"{batch.id} ({display_path(batch.about.project_root)})" for batch in elsewhere[:_BATCHES_NAMED_MAX]]
        hints.append(f"running in other projects: {', '.join(texts)}; give one with --batch")
    hint = "; ".join(hints) or f"see: codebatch batch list{option}"
    raise UnknownId(f"no{of_commands} batch of this project is running", hint=hint)


def list_directory_text(store: StoreDir, batch: BatchDir) -> str:
    """Return the directory of a task list for display, relative to the current one. Empty if they are the same."""
    start = _start_directory(store)
    if start is None or not is_work(batch) or _list_place(batch, start).home == start:
        return ""
    return display_path(os.path.relpath(batch.about.sources[0], start))


def _start_directory(store: StoreDir) -> bytes | None:
    return None if store.project is None or store.project.kind == "removed" else store.project.start


def _of_current_directory(start: bytes, batches: Sequence[BatchDir]) -> list[BatchDir]:
    """Return the batches that a command in a directory means, in the same order. If there are any batches, some are."""
    places = [_list_place(batch, start) if is_work(batch) else None for batch in batches]
    nearest = max((len(place.home) for place in places if place is not None and place.kind == "here"), default=None)
    kinds = {place.kind for place in places if place is not None}
    wanted = "here" if "here" in kinds else "below"
    chosen = [
        batch
        for batch, place in zip(batches, places, strict=True)
        if place is None or (place.kind == wanted and (wanted == "below" or len(place.home) == nearest))
    ]
    return chosen or list(batches)


def _list_place(batch: BatchDir, start: bytes) -> _ListPlace:
    """Return the place of a task list, seen from a directory: of its root, its files, and where it was started."""
    roots = batch.about.sources
    homes = {*roots}
    if not any(is_below(start, root) for root in roots):
        with contextlib.suppress(StoreCorrupt):
            origin = read_work(batch).origin
            homes |= {origin.directory, *map(os.path.dirname, filter(os.path.isabs, origin.files))}
    here = [home for home in homes if is_below(start, home)]
    if here:
        return _ListPlace("here", max(here, key=len))
    return _ListPlace("below" if any(is_below(root, start) for root in roots) else "elsewhere")


def _batches_text(store: StoreDir, batches: Sequence[BatchDir]) -> str:
    texts = []
    for batch in batches[:_BATCHES_NAMED_MAX]:
        directory = list_directory_text(store, batch)
        texts.append(f"{batch.id} ({directory})" if directory else batch.id)
    return ", ".join(texts)
