"""Tables of the first input of a result that differs from that of an older batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from codebatch.model.analysis.result_key import PlanItems, same_items
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, SnapshotId
from codebatch.model.plan import ContextTable, Plan, PlannedTask
from codebatch.model.shard import Shard, ShardId, ShardRule
from codebatch.operations.maintenance.cache_misses import (
    VALUE_CHARACTERS_MAX,
    MissReason,
    first_difference,
    item_difference,
    task_inputs,
)

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


def reason(cause: Any, name: str = "", old: str | None = None, new: str | None = None, others: int = 0) -> MissReason:
    return MissReason(cause=cause, name=name, old=old, new=new, others=others)


def difference(new: Plan, task: str, old: Plan = PLAN, programs: dict[str, Digest] | None = None) -> MissReason | None:
    return first_difference(task_inputs(old, {}, task), task_inputs(new, programs or {}, task))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"key": "k9", "needs": ("parse",), "contexts": ("attributes",)}, None),
        ({"version": "2"}, reason("version", old="1", new="2")),
        ({"implementation_digest": "bb"}, reason("implementation", old="aa", new="bb")),
        ({"tools": {"ruff": "0.2", "python": "3.11"}}, reason("tool", "ruff", "0.1", "0.2")),
        ({"tools": {"python": "3.11", "css": "1"}}, reason("tool", "css", None, "1", others=1)),
        ({"config": {**TASK.config, "off": ["F401"]}}, reason("setting", "off", "[]", '["F401"]')),
        ({"config": {**TASK.config, "strict": 1}}, reason("setting", "strict", "true", "1")),
        ({"config": {**TASK.config, "ruff": {"select": ["E"], "line": 2}}}, reason("setting", "ruff.line", "1", "2")),
        ({"config": {**TASK.config, "ruff": {}}}, reason("setting", "ruff", None, "{}", others=2)),
        ({"config": {key: value for key, value in TASK.config.items() if key != "name"}},
            reason("setting", "name", "null", None)),
        ({"config": {**TASK.config, "name": "x" * 999}},
            reason("setting", "name", "null", '"' + "x" * (VALUE_CHARACTERS_MAX - 2) + "…")),
        ({"version": "2", "config": {**TASK.config, "off": [1]}}, reason("version", old="1", new="2")),
        ({"implementation_digest": "bb", "config": {**TASK.config, "off": [1]}}, reason("setting", "off", "[]", "[1]")),
    ],
)  # fmt: skip
def test_inputs_of_a_task_differ_first_in_the_expected_input(
    changes: dict[str, object], expected: MissReason | None
) -> None:
    assert difference(replaced(PLAN, tasks=(replaced(TASK, **changes), PROJECT)), "lint") == expected


def test_program_differs_before_the_implementation() -> None:
    new = replaced(PLAN, tasks=(replaced(TASK, implementation_digest="bb"), PROJECT))
    assert difference(new, "lint", programs={"lint": Digest("p")}) == reason("program", "", None, "p")


ENTRY = Entry(b"a.py", "file", False, 1, Digest("o1"))


def items(entry: Entry = ENTRY, **contexts: bytes) -> PlanItems:
    """Return two items, of which the second is `entry` and has the given contexts."""
    tables = {name: ContextTable(values=(b"", value), items=(0, 1)) for name, value in contexts.items()}
    return PlanItems([Entry(b"A", "file", False, 0, Digest("o0")), entry], tables)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (items(), items(), None),
        (items(replace(ENTRY, object=Digest("o2"))), items(), reason("content")),
        (items(replace(ENTRY, executable=True)), items(), reason("file_mode")),
        (items(replace(ENTRY, kind="symlink")), items(), reason("file_mode")),
        (items(seen=b"x"), items(seen=b"y"), reason("context", "seen")),
        (items(seen=b"x"), items(), reason("context", "seen")),
        (items(unseen=b"x"), items(unseen=b"y"), None),
        (items(replace(ENTRY, object=Digest("o2"), executable=True), seen=b"x"), items(seen=b"y"), reason("content")),
    ],
)
def test_items_differ_first_in_the_expected_input(new: PlanItems, old: PlanItems, expected: MissReason | None) -> None:
    seen = {name for name in ("seen",) if name in new.contexts}
    assert item_difference(new, 1, old, 1, seen) == expected
    assert (same_items(new, old, seen)[1] == 1) == (expected is None), "equal items must be reused, and others must not"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda plan: plan, None),
        (lambda plan: replaced(plan, snapshot_digest="s2", shards=()), reason("files", "", "s1", "s2")),
        (lambda plan: replaced(plan, paths=(b"src", b"t")), reason("paths", "", "", "src, t")),
        (lambda plan: replaced(plan, tasks=(replaced(TASK, key="k3"), PROJECT)),
            reason("needed_task", "lint", "k1", "k3")),
        (lambda plan: replaced(plan, tasks=(TASK, replaced(PROJECT, config={}))),
            reason("setting", "off", "[]", None, others=4)),
        (lambda plan: replaced(plan, snapshot_digest="s2", tasks=(TASK, replaced(PROJECT, version="2"))),
            reason("version", "", "1", "2")),
    ],
)  # fmt: skip
def test_inputs_of_a_project_task_differ_first_in_the_expected_input(
    make: Callable[[Plan], Plan], expected: MissReason | None
) -> None:
    assert difference(make(PLAN), "duplicates") == expected


def test_tasks_absent_from_the_older_plan_are_differences() -> None:
    older = replaced(PLAN, tasks=(replaced(PROJECT, needs=()),))
    assert difference(PLAN, "lint", older) == reason("new_task")
    assert difference(PLAN, "duplicates", older) == reason("needed_task", "lint", None, "k1")
