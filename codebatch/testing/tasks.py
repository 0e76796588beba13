"""Execution of a custom task in tests of users, in worker processes as in `codebatch run`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.record import FileChange, Record
from codebatch.model.task import JsonValue
from codebatch.model.text.toml import toml_value
from codebatch.store.batches.store_directory import create_store, open_store
from codebatch.system.files.files import RealFiles
from codebatch.system.processes.python_start import python_start

_TASK_NAME = "tried"


def run_task(
    directory: Path, python: str, files: Mapping[str, str | bytes], settings: Mapping[str, JsonValue] | None = None
) -> list[Record]:
    """Run a custom task on files and return its records, in output order. For proposed changes, see `changed_files`.

    `python` is the value of `[tasks.NAME] python`: `PATH.py:function`, relative to the current directory. `files` maps
    paths to contents. `settings` is the task's configuration. `directory` must be empty and is used as working space
    (`tmp_path`). Raises RuntimeError with the output of codebatch if the task is rejected or fails.
    """
    path, _, function = python.rpartition(":")
    project = directory / "project"
    project.mkdir()
    shutil.copy(path, project / "task.py")
    table = {"python": f"task.py:{function}", **(settings or {})}
    lines = [f"[tasks.{_TASK_NAME}]", *(f"{key} = {toml_value(value)}" for key, value in table.items())]
    (project / "codebatch.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tree = directory / "tree"
    for name, content in files.items():
        file_path = tree / name
        file_path.parent.mkdir(parents=True, exist_ok=True)
        file_path.write_bytes(content.encode() if isinstance(content, str) else content)
    # The store makes the tree a project of its own, so settings in directories above the tree have no effect.
    create_store(RealFiles(), tree / ".codebatch")
    batch = msgspec.json.decode(_run_codebatch(project, "run", "../tree", "-j", "1"), type=_RunAnswerMembers)
    answer = _run_codebatch(project, "query", "outputs", "--task", _TASK_NAME, "--batch", batch.batch_id)
    return msgspec.json.decode(answer, type=_QueryAnswer).records


def changed_files(directory: Path, records: Iterable[Record]) -> dict[str, bytes | None]:
    """Return the new content of each file that a task changes, by path. The content of a deleted file is None.

    `directory` and `records` are the argument and the result of `run_task`. Raises ObjectMissing.
    """
    objects = open_store(RealFiles(), directory / "tree" / ".codebatch").objects()
    return {
        os.fsdecode(record.path_bytes): None if record.after is None else objects.read(Digest(record.after))
        for record in records
        if isinstance(record, FileChange)
    }


class _RunAnswerMembers(msgspec.Struct):
    """The members of the answer of `run` that are needed."""

    batch_id: str


class _QueryAnswer(msgspec.Struct):
    """The members of the answer of `query` that are needed."""

    records: list[Record]


def _run_codebatch(project: Path, *arguments: str) -> bytes:
    words = [*arguments, "--json", "--store", "../tree/.codebatch"]
    start = python_start("codebatch", *words, environment=os.environ)
    process = subprocess.run(start.arguments, cwd=project, env=start.environment, capture_output=True, check=False)
    if process.returncode:
        raise RuntimeError((process.stdout + process.stderr).decode("utf-8", "replace"))
    return process.stdout
