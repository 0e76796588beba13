"""Reasons why a result was not reused: differences between the inputs of two batches (SPEC.md "Reuse")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from codebatch.model.analysis.result_key import PlanItems
from codebatch.model.entry import display_path
from codebatch.model.plan import Plan, PlannedTask
from codebatch.model.task import JsonValue

VALUE_CHARACTERS_MAX = 200
"""Maximum length of a displayed value in characters. Longer values are truncated and end with `…`."""

DifferenceField = Literal[
    "version",
    "implementation",
    "config",
    "tool",
    "program",
    "needs",
    "task",
    "object",
    "executable",
    "context",
    "path",
    "result",
    "tree",
    "paths",
    "shards",
    "base",
    "bases",
    "reuse",
    "outside_key",
    "untrusted",
    "round",
    "not_taken",
    "unknown",
]
_ABSENCE_FIELDS: tuple[DifferenceField, ...] = ("base", "task", "path")


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An input of a task that differs from the older batch. `old` and `new` are its values as text, or None if missing.

    `name` is the name of the input: a configuration key such as `table.key`, a distribution, a context or a task.
    """

    field: DifferenceField
    name: str = ""
    old: str | None = None
    new: str | None = None


FieldDifferences = tuple[FieldDifference, ...]


def task_differences(new: PlannedTask, old: PlannedTask) -> FieldDifferences:
    """Return the inputs of a task that differ between two plans, among the inputs that its result key covers."""
    return (
        *_text_difference("version", old.version, new.version),
        *_text_difference("implementation", old.implementation_digest, new.implementation_digest),
        *_mapping_differences("config", old.config, new.config),
        *_mapping_differences("tool", old.tools, new.tools),
    )


def item_differences(
    new: PlanItems, item: int, old: PlanItems, place: int, contexts: Iterable[str]
) -> FieldDifferences:
    """Return the differences between an item and the item with the same path in an older plan.

    Only inputs that the task uses are compared: object, executable bit, and the given contexts. `item` is the number of
    the item in the new plan, `place` in the old plan.
    """
    new_values, old_values = new.entries[item], old.entries[place]
    differences = [*_text_difference("object", old_values.object, new_values.object)]
    if new_values.executable != old_values.executable:
        differences.append(
            FieldDifference(
                field="executable", old=_yes_or_no(old_values.executable), new=_yes_or_no(new_values.executable)
            )
        )
    for name in sorted(contexts):
        old_value, new_value = (_item_context(items, name, index) for items, index in ((old, place), (new, item)))
        if old_value != new_value:
            differences.append(
                FieldDifference(
                    field="context", name=name, old=_display_bytes(old_value), new=_display_bytes(new_value)
                )
            )
    return tuple(differences)


def program_difference(task: str, new: Mapping[str, str], old: Mapping[str, str]) -> FieldDifferences:
    """Return the difference between the programs of a task outside of the project. Both map tasks to digests."""
    return tuple(_text_difference("program", old.get(task, ""), new.get(task, "")))


def project_differences(new: Plan, old: Plan, task: str) -> FieldDifferences:
    """Return the differences between the inputs of a project task in two plans. Both plans have the task."""
    new_tasks, old_tasks = ({planned.name: planned for planned in plan.tasks} for plan in (new, old))
    differences = [*task_differences(new_tasks[task], old_tasks[task])]
    for need in new_tasks[task].needs:
        key = old_tasks[need].key if need in old_tasks else None
        if key != new_tasks[need].key:
            differences.append(FieldDifference(field="needs", name=need, old=key, new=new_tasks[need].key))
    differences += _text_difference("tree", old.snapshot_digest, new.snapshot_digest)
    differences += _text_difference("paths", _paths_text(old.paths), _paths_text(new.paths))
    if new.snapshot_digest == old.snapshot_digest and new.paths == old.paths and new.shards != old.shards:
        differences.append(FieldDifference(field="shards", old=str(len(old.shards)), new=str(len(new.shards))))
    return tuple(differences)


def fewest_differences(candidates: Sequence[tuple[str, FieldDifferences]]) -> tuple[str, FieldDifferences]:
    """Return the candidate with the fewest differences. If several have as few, return the first.

    Each candidate is the name of an older batch and its differences. A candidate in which the batch, the task or the
    path is missing comes after all others.
    """
    return min(
        candidates,
        key=lambda candidate: (
            any(difference.field in _ABSENCE_FIELDS for difference in candidate[1]),
            len(candidate[1]),
        ),
    )


def uncovered_input_difference(description: str, task: str = "") -> FieldDifference:
    """Return a difference which says that an older result cannot be reused because of inputs outside its key.

    `description` names these inputs.
    """
    return FieldDifference(field="outside_key", name=task, old=_cut_value(description))


def without_item_values(differences: FieldDifferences) -> FieldDifferences:
    """Return the differences with their `old` and `new` values removed if the values vary between files.

    Then files that differ in the same inputs have equal differences, so callers can group these files.
    """
    return tuple(
        FieldDifference(field=difference.field, name=difference.name)
        if difference.field in ("object", "executable", "context")
        else difference
        for difference in differences
    )


def _text_difference(field: DifferenceField, old: str, new: str) -> Iterator[FieldDifference]:
    if old != new:
        yield FieldDifference(field=field, old=_cut_value(old), new=_cut_value(new))


def _mapping_differences(
    field: DifferenceField, old: Mapping[str, JsonValue], new: Mapping[str, JsonValue], above: str = ""
) -> Iterator[FieldDifference]:
    for key in sorted(old.keys() | new.keys()):
        name = f"{above}{key}"
        old_value, new_value = old.get(key), new.get(key)
        if isinstance(old_value, dict) and isinstance(new_value, dict):
            yield from _mapping_differences(field, old_value, new_value, f"{name}.")
            continue
        before, after = (
            msgspec.json.encode(values[key], order="sorted") if key in values else None for values in (old, new)
        )
        if before != after:
            yield FieldDifference(field=field, name=name, old=_display_bytes(before), new=_display_bytes(after))


def _item_context(items: PlanItems, name: str, index: int) -> bytes | None:
    table = items.contexts.get(name)
    return None if table is None else table.values[table.items[index]]


def _display_bytes(value: bytes | None) -> str | None:
    return None if value is None else _cut_value(display_path(value))


def _paths_text(paths: Sequence[bytes]) -> str:
    return ", ".join(map(display_path, paths))


def _cut_value(text: str) -> str:
    return text if len(text) <= VALUE_CHARACTERS_MAX else f"{text[: VALUE_CHARACTERS_MAX - 1]}…"


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"
