"""What decides a file's result: two files that agree in all of it have the same records (SPEC.md "Reuse")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.plan import ContextTable, PlannedTask, task_key


def result_key(task: PlannedTask) -> Digest:
    """The key of a task without what it needs: a file task sees no records of others."""
    return task_key(
        name=task.name,
        version=task.version,
        implementation_digest=task.implementation_digest,
        config=task.config,
        tools=task.tools,
        needs=(),
    )


class Items(msgspec.Struct, frozen=True):
    """The items of a plan, and their contexts."""

    entries: Sequence[Entry]
    contexts: Mapping[str, ContextTable]


def same_items(new: Items, old: Items, contexts: Iterable[str]) -> list[int]:
    """Of each new item the old one with the same path, kind, executable bit, object and contexts; -1 where none is."""
    places = {entry.path: place for place, entry in enumerate(old.entries)}
    found = [places.get(entry.path, -1) for entry in new.entries]
    found = [
        place if place >= 0 and old.entries[place] == entry else -1
        for place, entry in zip(found, new.entries, strict=True)
    ]
    for name in contexts:
        if name not in old.contexts:
            return [-1] * len(found)
        mine, others = new.contexts[name], old.contexts[name]
        known = {value: index for index, value in enumerate(others.values)}
        same = [known.get(value, -1) for value in mine.values]
        found = [
            place if place >= 0 and others.items[place] == same[value] else -1
            for place, value in zip(found, mine.items, strict=True)
        ]
    return found
