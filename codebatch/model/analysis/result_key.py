"""Equality of the inputs of file results.

If two files have equal inputs, their records are equal too (SPEC.md "Reuse").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.plan import ContextTable, PlannedTask, task_key


def result_key(task: PlannedTask) -> Digest:
    """Return the key of a file task, without the keys of the tasks that it needs.

    A file task does not see the records of other tasks, so its results do not depend on them.
    """
    return task_key(
        name=task.name,
        version=task.version,
        implementation_digest=task.implementation_digest,
        config=task.config,
        tools=task.tools,
        needs=(),
    )


class PlanItems(msgspec.Struct, frozen=True):
    """The items of a plan, and the values of their contexts."""

    entries: Sequence[Entry]
    contexts: Mapping[str, ContextTable]


def same_items(new: PlanItems, old: PlanItems, contexts: Iterable[str]) -> list[int]:
    """Map each new item to the index of an old item with equal inputs, or to -1 if there is none.

    The inputs are path, kind, executable bit, object, and the values of the contexts `contexts`.
    """
    places = {entry.path: place for place, entry in enumerate(old.entries)}
    old_indexes = [places.get(entry.path, -1) for entry in new.entries]
    old_indexes = [
        place if place >= 0 and old.entries[place] == entry else -1
        for place, entry in zip(old_indexes, new.entries, strict=True)
    ]
    for name in contexts:
        if name not in old.contexts:
            return [-1] * len(old_indexes)
        new_table, old_table = new.contexts[name], old.contexts[name]
        old_values = {value: index for index, value in enumerate(old_table.values)}
        same = [old_values.get(value, -1) for value in new_table.values]
        old_indexes = [
            place if place >= 0 and old_table.items[place] == same[value] else -1
            for place, value in zip(old_indexes, new_table.items, strict=True)
        ]
    return old_indexes
