"""Plans that an attacker planted in a store that the user names: nothing is written outside of the store."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from codebatch.model.digest import Digest
from codebatch.model.documents import encode_document
from codebatch.model.plan import ContextTable, PlannedTask, decode_plan, encode_plan, plan_digest, task_key
from codebatch.store.batches.batch_directory import decode_batch
from tests.bad_input.conftest import manifest
from tests.support.command_line import CommandLine, write


def _forge_plan(batch: Path, forged_contexts: dict[str, bytes]) -> None:
    """Replace the plan by one with the project's ruff configuration and forged contexts. All digests are valid."""
    plan = decode_plan((batch / "plan.json").read_bytes())
    tasks: list[PlannedTask] = []
    keys: dict[str, Digest] = {}
    for task in plan.tasks:
        is_lint = task.name == "lint"
        settings = task.config | ({"ruff": {"config": "project"}} if is_lint else {})
        keys[task.name] = task_key(
            name=task.name,
            version=task.version,
            implementation_digest=task.implementation_digest,
            config=settings,
            tools=task.tools,
            needs=[(need, keys[need]) for need in task.needs],
        )
        seen = (*task.contexts, "ruff") if is_lint else task.contexts
        tasks.append(replace(task, config=settings, contexts=seen, key=keys[task.name]))
    digest = plan_digest(plan.snapshot_digest, tasks, plan.paths)
    tables = {
        name: ContextTable(values=(value,), items=(0,) * plan.item_count) for name, value in forged_contexts.items()
    }
    contexts = {**plan.contexts, **tables}
    forged = replace(plan, tasks=tuple(tasks), digest=digest, contexts=contexts)
    (batch / "plan.json").write_bytes(encode_plan(forged))
    about = decode_batch((batch / "batch.json").read_bytes())
    (batch / "batch.json").write_bytes(encode_document(replace(about, plan_digest=digest)))


@pytest.mark.parametrize("kind", ["absolute", "upwards", "packages"])
def test_hostile_plan_writes_nothing_outside_the_store(codebatch: CommandLine, kind: str) -> None:
    outside = codebatch.directory / "outside"
    write(outside / "__init__.py", "do not lose me\n")
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    codebatch("snapshot", "tree", "--store", "store", "-q")
    codebatch("batch", "init", "--store", "store", "-q")
    up = "../" * 40 + str(outside)[1:]
    path = {"absolute": f"{outside}/__init__.py", "upwards": f"{up}/__init__.py", "packages": "ruff.toml"}[kind]
    packages = f"{up}/".encode() if kind == "packages" else b""
    batch = next((codebatch.directory / "store" / "batches").iterdir())
    _forge_plan(batch, {"ruff": msgspec.msgpack.encode([(path.encode(), "")]), "packages": packages})
    before = manifest(outside)
    codebatch("run", "--batch", "latest", "--store", "store", status=3)
    assert kind == "packages" or "points outside the project" in codebatch("errors", "--store", "store").text
    assert manifest(outside) == before
