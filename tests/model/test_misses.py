"""Tables of the fields in which the inputs of a result differ from those of an older batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from codebatch.model.analysis.cache_misses import (
    VALUE_CHARACTERS_MAX,
    FieldDifference,
    FieldDifferences,
    fewest_differences,
    item_differences,
    project_differences,
    task_differences,
)
from codebatch.model.analysis.result_key import PlanItems, same_items
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, SnapshotId
from codebatch.model.plan import ContextTable, Plan, PlannedTask
from codebatch.model.shard import Shard, ShardId, ShardRule

TASK = PlannedTask(
    name="lint",
    version="1",
    scope="file",
    needs=(),
    implementation_digest=Digest("aa"),
    config={"off": [], "ruff": {"select": ["E"], "line": 1}, "strict": True, "name": None},
    tools={"ruff": "0.1", "python": "3.11"},
    contexts=(),
    key=Digest("k1"),
)
PROJECT = replace(TASK, name="duplicates", scope="project", needs=("lint",), key=Digest("k2"))
PLAN = Plan(
    digest=Digest("d"),
    snapshot_id=SnapshotId("snap-1"),
    snapshot_digest=Digest("s1"),
    pipeline="full",
    tasks=(TASK, PROJECT),
    shard_rule=ShardRule(),
    shards=(Shard(id=ShardId("00000001"), start=0, end=1, bytes=1),),
    contexts={},
)


def replaced(struct: Any, **changes: object) -> Any:
    return replace(struct, **changes)


def difference(field: Any, name: str = "", old: str | None = None, new: str | None = None) -> FieldDifference:
    return FieldDifference(field=field, name=name, old=old, new=new)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"key": "k9", "needs": ("parse",), "contexts": ("attributes",)}, []),
        ({"version": "2"}, [difference("version", old="1", new="2")]),
        ({"implementation_digest": "bb"}, [difference("implementation", old="aa", new="bb")]),
        ({"tools": {"ruff": "0.2", "python": "3.11"}}, [difference("tool", "ruff", '"0.1"', '"0.2"')]),
        ({"tools": {"python": "3.11", "css": "1"}}, [
            difference("tool", "css", None, '"1"'), difference("tool", "ruff", '"0.1"', None)
        ]),
        ({"config": {**TASK.config, "off": ["F401"]}}, [difference("config", "off", "[]", '["F401"]')]),
        ({"config": {**TASK.config, "strict": 1}}, [difference("config", "strict", "true", "1")]),
        ({"config": {**TASK.config, "ruff": {"select": ["E"], "line": 2}}}, [
            difference("config", "ruff.line", "1", "2")
        ]),
        ({"config": {**TASK.config, "ruff": None}}, [
            difference("config", "ruff", '{"line":1,"select":["E"]}', "null")
        ]),
        ({"config": {key: value for key, value in TASK.config.items() if key != "name"}}, [
            difference("config", "name", "null", None)
        ]),
        ({"version": "2", "config": {**TASK.config, "off": [1]}}, [
            difference("version", old="1", new="2"), difference("config", "off", "[]", "[1]")
        ]),
    ],
)  # fmt: skip
def test_result_keys_differ_in_the_expected_fields(changes: dict[str, object], expected: list[FieldDifference]) -> None:
    assert task_differences(replaced(TASK, **changes), TASK) == tuple(expected)


ENTRY = Entry(b"a.py", "file", False, 1, Digest("o1"))


def items(entry: Entry = ENTRY, **contexts: bytes) -> PlanItems:
    """Return two items, of which the second is `entry` and has the given contexts."""
    tables = {name: ContextTable(values=(b"", value), items=(0, 1)) for name, value in contexts.items()}
    return PlanItems([Entry(b"A", "file", False, 0, Digest("o0")), entry], tables)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (items(), items(), []),
        (items(replace(ENTRY, object=Digest("o2"))), items(), [difference("object", old="o1", new="o2")]),
        (items(replace(ENTRY, executable=True)), items(), [difference("executable", old="no", new="yes")]),
        (items(seen=b"x"), items(seen=b"y"), [difference("context", "seen", "y", "x")]),
        (items(seen=b"x"), items(), [difference("context", "seen", None, "x")]),
        (items(unseen=b"x"), items(unseen=b"y"), []),
        (items(seen=b"\xff"), items(seen=b"x" * 999), [
            difference("context", "seen", "x" * (VALUE_CHARACTERS_MAX - 1) + "…", r"\xff")
        ]),
        (items(replace(ENTRY, object=Digest("o2"), executable=True), seen=b"x"), items(seen=b"y"), [
            difference("object", old="o1", new="o2"),
            difference("executable", old="no", new="yes"),
            difference("context", "seen", "y", "x"),
        ]),
    ],
)  # fmt: skip
def test_items_differ_in_the_expected_contexts(new: PlanItems, old: PlanItems, expected: list[FieldDifference]) -> None:
    seen = {name for name in ("seen",) if name in new.contexts}
    assert item_differences(new, 1, old, 1, seen) == tuple(expected)
    assert (same_items(new, old, seen)[1] == 1) == (not expected), "equal items must be reused, and others must not"


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        (lambda plan: plan, []),
        (lambda plan: replaced(plan, snapshot_digest="s2", shards=()), ["tree"]),
        (lambda plan: replaced(plan, paths=(b"src",)), ["paths"]),
        (lambda plan: replaced(plan, shards=()), ["shards"]),
        (lambda plan: replaced(plan, tasks=(replaced(TASK, key="k3"), PROJECT)), ["needs lint"]),
        (lambda plan: replaced(plan, tasks=(TASK, replaced(PROJECT, config={}))), ["config"] * 4),
        (
            lambda plan: replaced(plan, snapshot_digest="s2", tasks=(TASK, replaced(PROJECT, version="2"))),
            ["version", "tree"],
        ),
    ],
)
def test_project_task_work_differs_in_the_expected_fields(make: Callable[[Plan], Plan], fields: list[str]) -> None:
    differences = project_differences(make(PLAN), PLAN, "duplicates")
    names = [f"{item.field} {item.name}".strip() if item.field == "needs" else item.field for item in differences]
    assert names == fields


def test_need_absent_from_the_older_plan_is_a_difference() -> None:
    differences = project_differences(PLAN, replaced(PLAN, tasks=(PROJECT,)), "duplicates")
    assert differences == (difference("needs", "lint", None, "k1"),)


CONTENT, CONFIG = difference("object"), difference("config", "off")


@pytest.mark.parametrize(
    ("differences", "chosen"),
    [
        ([(CONTENT,), (CONFIG,)], 0),
        ([(CONTENT, CONFIG), (CONFIG,)], 1),
        ([(difference("path"),), (CONTENT, CONFIG)], 1),
        ([(difference("base"),), (difference("task"),)], 0),
        ([(CONTENT,), ()], 1),
    ],
)
def test_the_nearest_base_differs_in_the_fewest_fields(differences: list[FieldDifferences], chosen: int) -> None:
    by_base = [(str(place), of_base) for place, of_base in enumerate(differences)]
    assert fewest_differences(by_base) == (str(chosen), differences[chosen])
