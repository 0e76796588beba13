"""Part files that are joined: they are read, compared with the plan, and sorted. Missing parts are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput, ToolMismatch
from codebatch.model.entry import Entry, display_path
from codebatch.model.part import PartChoice, differing_fields, differing_paths, part_tasks
from codebatch.model.plan import Plan, PlannedTask
from codebatch.model.text.quantities import count_text
from codebatch.operations import NoteCallback
from codebatch.operations.runs.parts import shards_by_part
from codebatch.store.part_files import DamagedPart, PartFile, read_part
from codebatch.store.snapshots.snapshots import Snapshot

_PATHS_SHOWN_MAX = 3


class JoinTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The plan to which parts are joined: its digests, tasks and items."""

    plan_digest: str
    snapshot_digest: str
    paths: tuple[bytes, ...]
    tasks: tuple[PlannedTask, ...]
    items: Sequence[Entry]


class MissingParts(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch join --missing`: the parts that must run, as arguments of `run --part`."""

    parts: tuple[str, ...]
    count: int


def read_parts(paths: Sequence[Path], note: NoteCallback) -> list[PartFile]:
    """Return the verified part files, each content once, in an order that does not depend on the arguments.

    Parts without failures come first, because the first outcome of an item is kept. A damaged file is left out with a
    note. Raises InvalidInput if a file is not a part file.
    """
    parts: dict[str, PartFile] = {}
    for path in paths:
        try:
            part = read_part(path)
        except DamagedPart as damage:
            note(f"{damage.message}; it is left out")
            continue
        parts.setdefault(part.digest, part)
    return sorted(parts.values(), key=lambda part: (part.header.failed, part.header.part, part.digest))


def check_parts(parts: Sequence[PartFile], target: JoinTarget) -> None:
    """Raise InvalidInput or ToolMismatch if a part was made with another plan. The message says what differs."""
    different = [part for part in parts if part.header.plan_digest != target.plan_digest]
    if not different:
        return
    first = different[0]
    header = first.header
    if header.paths != target.paths:
        raise InvalidInput(
            f"the part {str(first.path)!r} is restricted to {_listed(header.paths)}, "
            f"but this command to {_listed(target.paths)}",
            hint="give join the same paths as run --part",
        )
    if header.snapshot_digest != target.snapshot_digest:
        raise _other_files_error(first, different, target)
    raise _other_tasks_error(first, target)


def _listed(paths: Sequence[bytes]) -> str:
    return ", ".join(map(display_path, paths)) or "no path"


def _other_files_error(first: PartFile, different: Sequence[PartFile], target: JoinTarget) -> InvalidInput:
    by_path = {item.path: item for item in target.items}
    ordered = list(by_path)
    same = [part for part in different if part.header.snapshot_digest == first.header.snapshot_digest]
    paths = set().union(*(differing_paths(part.header.shards, by_path, ordered) for part in same))
    known = {path for part in same for shard in part.header.shards for path, _ in shard.files}
    if len(known) == first.header.items:
        paths |= by_path.keys() - known
    shown = ", ".join(display_path(path) for path in sorted(paths)[:_PATHS_SHOWN_MAX])
    more = f" and {len(paths) - _PATHS_SHOWN_MAX:,} more" if len(paths) > _PATHS_SHOWN_MAX else ""
    verb = "differs" if len(paths) == 1 else "differ"
    what = f"{count_text(len(paths), 'path')} {verb}: {shown}{more}" if paths else "none of them is in the part"
    if first.header.items != len(by_path):
        what += f" ({count_text(first.header.items, 'file')} there, {len(by_path):,} here)"
    return InvalidInput(
        f"the part {str(first.path)!r} was made from other files; {what}",
        hint="check out the same commit, with the same settings of git, and remove files that other jobs do not have",
    )


def _other_tasks_error(part: PartFile, target: JoinTarget) -> InvalidInput:
    there = {task.name: task for task in part.header.tasks}
    here = {task.name: task for task in part_tasks(target.tasks)}
    if there.keys() != here.keys():
        return InvalidInput(
            f"the part {str(part.path)!r} has other tasks: {', '.join(there)}; this command has: {', '.join(here)}",
            hint="give join the same --pipeline and --no-commands as run --part",
        )
    for name, task in here.items():
        if there[name].key != task.key and (fields := differing_fields(there[name], task)):
            return ToolMismatch(
                f"the part {str(part.path)!r} was made with another {name}: {', '.join(fields)}",
                hint="install the same versions of codebatch, its tools and Python on all machines",
            )
    return InvalidInput(f"the part {str(part.path)!r} belongs to another plan", hint="run this part again")


def find_missing_parts(parts: Sequence[PartFile], plan: Plan, snapshot: Snapshot) -> MissingParts:
    """Return the parts of a plan that have a shard that none of some part files has.

    The number of parts is the most frequent one of the files. Raises InvalidInput if there is no part file.
    """
    if not parts:
        raise InvalidInput(
            "the number of parts is unknown: no part file is intact",
            hint="run all parts again: codebatch run --part K/N",
        )
    counts = Counter(part.header.part.count for part in parts)
    count = max(counts, key=lambda number: (counts[number], number))
    known = {shard.id for part in parts for shard in part.header.shards}
    missing = [
        PartChoice(count, number, number).text
        for number, shards in enumerate(shards_by_part(plan, snapshot, count), 1)
        if any(shard.id not in known for shard in shards)
    ]
    return MissingParts(parts=tuple(missing), count=count)
