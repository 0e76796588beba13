"""Why a result was executed and not taken over: in which fields two plans and two entries differ (SPEC.md "Reuse")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from codebatch.model.analysis.result_key import Items
from codebatch.model.entry import display_path
from codebatch.model.plan import Plan, PlannedTask
from codebatch.model.task import Json

VALUE_CHARACTERS_MAX = 200
"""Of a value that is told; what is longer is cut, and ends with `…`."""

Field = Literal[
    "version",
    "implementation",
    "config",
    "tool",
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
_ABSENT: tuple[Field, ...] = ("base", "task", "path")


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An input of a task that differs from the older batch. `old` and `new` are its values as text, or None if missing.

    `name` is the name of the input: a configuration key such as `table.key`, a distribution, a context or a task.
    """

    field: Field
    name: str = ""
    old: str | None = None
    new: str | None = None


Differences = tuple[FieldDifference, ...]


def task_differences(new: PlannedTask, old: PlannedTask) -> Differences:
    """In what the result keys of a task differ."""
    return (
        *_plain("version", old.version, new.version),
        *_plain("implementation", old.implementation_digest, new.implementation_digest),
        *_of_mappings("config", old.config, new.config),
        *_of_mappings("tool", old.tools, new.tools),
    )


def item_differences(new: Items, item: int, old: Items, place: int, contexts: Iterable[str]) -> Differences:
    """In what an item differs from the one of the same path at a place of an older plan, as far as a task sees it."""
    mine, other = new.entries[item], old.entries[place]
    found = [*_plain("object", other.object, mine.object)]
    if mine.executable != other.executable:
        found.append(
            FieldDifference(field="executable", old=_yes_or_no(other.executable), new=_yes_or_no(mine.executable))
        )
    for name in sorted(contexts):
        was, now = (_context(items, name, index) for items, index in ((old, place), (new, item)))
        if was != now:
            found.append(FieldDifference(field="context", name=name, old=_shown(was), new=_shown(now)))
    return tuple(found)


def project_differences(new: Plan, old: Plan, task: str) -> Differences:
    """In what the work of a project task differs from that of an older plan, which has the task."""
    mine, others = ({each.name: each for each in plan.tasks} for plan in (new, old))
    found = [*task_differences(mine[task], others[task])]
    for need in mine[task].needs:
        key = others[need].key if need in others else None
        if key != mine[need].key:
            found.append(FieldDifference(field="needs", name=need, old=key, new=mine[need].key))
    found += _plain("tree", old.snapshot_digest, new.snapshot_digest)
    found += _plain("paths", _texts(old.paths), _texts(new.paths))
    if new.snapshot_digest == old.snapshot_digest and new.paths == old.paths and new.shards != old.shards:
        found.append(FieldDifference(field="shards", old=str(len(old.shards)), new=str(len(new.shards))))
    return tuple(found)


def nearest(found: Sequence[tuple[str, Differences]]) -> tuple[str, Differences]:
    """Of what some older batches differ in, the least: what is not there at all is farther than any number of fields.

    Of several the first.
    """
    return min(found, key=lambda each: (any(one.field in _ABSENT for one in each[1]), len(each[1])))


def resting_on(unkeyed: str, task: str = "") -> FieldDifference:
    """What tells that an older result is its batch's alone."""
    return FieldDifference(field="outside_key", name=task, old=_cut(unkeyed))


def without_values_of_files(differences: Differences) -> Differences:
    """The same for all files that differ in the same fields."""
    return tuple(
        FieldDifference(field=each.field, name=each.name) if each.field in ("object", "executable", "context") else each
        for each in differences
    )


def _plain(field: Field, old: str, new: str) -> Iterator[FieldDifference]:
    if old != new:
        yield FieldDifference(field=field, old=_cut(old), new=_cut(new))


def _of_mappings(
    field: Field, old: Mapping[str, Json], new: Mapping[str, Json], above: str = ""
) -> Iterator[FieldDifference]:
    for key in sorted(old.keys() | new.keys()):
        name = f"{above}{key}"
        was, now = old.get(key), new.get(key)
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _of_mappings(field, was, now, f"{name}.")
            continue
        before, after = (_json(values[key]) if key in values else None for values in (old, new))
        if before != after:
            yield FieldDifference(field=field, name=name, old=_shown(before), new=_shown(after))


def _json(value: Json) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _context(items: Items, name: str, index: int) -> bytes | None:
    table = items.contexts.get(name)
    return None if table is None else table.values[table.items[index]]


def _shown(value: bytes | None) -> str | None:
    return None if value is None else _cut(display_path(value))


def _texts(paths: Sequence[bytes]) -> str:
    return ", ".join(map(display_path, paths))


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_CHARACTERS_MAX else f"{text[: VALUE_CHARACTERS_MAX - 1]}…"


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"
