"""Groups of changes: by task, by owner, by directory, or of a number of files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.change import ProposedChange
from codebatch.model.entry import display_path
from codebatch.model.owners import OWNERS_FILES, CodeOwners
from codebatch.model.text.quantities import human_bytes
from codebatch.operations import NoteCallback
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.store.batches.batch_directory import is_work
from codebatch.store.work.work_batches import read_work
from codebatch.system.files.regular_files import read_regular

NO_OWNER = "no owner"
GroupedBy = Literal["task", "owner", "directory"]

_OWNERS_BYTES_MAX = 3 << 20
_NO_OWNERS_HINT = "choose groups that need no owners, such as: --by directory"


class ChangeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Changes with the same task, owners or top-level directory, in the order in which they were given.

    `label` names what they share. It is None for files without an owner.
    """

    label: str | None
    changes: tuple[ProposedChange, ...]


def group_changes(proposed: Iterable[ProposedChange], by: GroupedBy, owners: CodeOwners) -> list[ChangeGroup]:
    """Return groups of changes, sorted by label. Files without an owner are the last group."""
    groups: dict[str | None, list[ProposedChange]] = {}
    for each in proposed:
        groups.setdefault(_label(each, by, owners), []).append(each)
    ordered = sorted(groups.items(), key=lambda item: (item[0] is None, item[0] or ""))
    return [ChangeGroup(label=label, changes=tuple(changes)) for label, changes in ordered]


def _label(proposed: ProposedChange, by: GroupedBy, owners: CodeOwners) -> str | None:
    match by:
        case "task":
            return proposed.task
        case "owner":
            return " ".join(owners.find(proposed.change.path)) or None
        case "directory":
            first, slash, _ = proposed.change.path.partition(b"/")
            return display_path(first) if slash else "."


def split_changes(proposed: Sequence[ProposedChange], files_max: int) -> list[ChangeGroup]:
    """Return groups of at most `files_max` changes, in order. The labels are numbers such as `1 of 3`."""
    count = -(-len(proposed) // files_max)
    return [
        ChangeGroup(label=f"{number + 1} of {count}", changes=tuple(proposed[start : start + files_max]))
        for number, start in enumerate(range(0, len(proposed), files_max))
    ]


def read_code_owners(question: BatchQuery, note: NoteCallback) -> CodeOwners:
    """Return the owners by the CODEOWNERS file in the snapshot of an analysis, or in the root of a task list.

    `note` is called if there is no such file. Raises InvalidInput if the file cannot be read or is too large, and
    ObjectMissing or StoreCorrupt.
    """
    data = _read_root_file(question) if is_work(question.batch) else _read_snapshot_file(question)
    if data is None:
        place = "the root of the task list" if is_work(question.batch) else "the snapshot"
        note(f"{place} has no file {', '.join(map(display_path, OWNERS_FILES))}, so no file has an owner")
        return CodeOwners()
    return CodeOwners(data)


def _read_root_file(question: BatchQuery) -> bytes | None:
    root = read_work(question.batch).root
    for path in OWNERS_FILES:
        try:
            return read_regular(os.path.join(root, path), bytes_max=_OWNERS_BYTES_MAX, is_link_followed=False)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise InvalidInput(f"cannot read {display_path(path)}: {error.strerror}", hint=_NO_OWNERS_HINT) from error
    return None


def _read_snapshot_file(question: BatchQuery) -> bytes | None:
    records = question.records
    found = {
        entry.path: entry for entry in records.snapshot.entries if entry.path in OWNERS_FILES and entry.kind == "file"
    }
    entry = next((found[path] for path in OWNERS_FILES if path in found), None)
    if entry is None:
        return None
    if entry.size > _OWNERS_BYTES_MAX:
        raise InvalidInput(
            f"{entry.text} has {human_bytes(entry.size)}, and at most {human_bytes(_OWNERS_BYTES_MAX)} are read",
            hint=_NO_OWNERS_HINT,
        )
    return records.store.objects().read(entry.object)
