"""Trying a task of your own, in a test of your own: as `codebatch run` runs it, in worker processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from codebatch.model.record import Record
from codebatch.model.task import Json
from codebatch.store.batches.store import create_store
from codebatch.system.files.files import RealFiles

_NAME = "tried"


def run_task(
    directory: Path, python: str, files: Mapping[str, str | bytes], settings: Mapping[str, Json] | None = None
) -> list[Record]:
    """The records that an own task gives of some files, in output order.

    `python` is what `[tasks.NAME] python` would say, `PATH.py:function`, relative to where the test runs; `files` are
    contents by path; `settings` is the task's configuration. `directory` must be empty and is worked in (`tmp_path`).
    Raises RuntimeError with what codebatch says where the task is refused or fails.
    """
    path, _, function = python.rpartition(":")
    project = directory / "project"
    project.mkdir()
    shutil.copy(path, project / "task.py")
    table = {"python": f"task.py:{function}", **(settings or {})}
    lines = [f"[tasks.{_NAME}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    (project / "codebatch.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tree = directory / "tree"
    for name, content in files.items():
        place = tree / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    create_store(RealFiles(), tree / ".codebatch")  # So that settings above make it a part of no other project.
    ran = msgspec.json.decode(_codebatch(project, "run", "../tree", "-j", "1"), type=_Batch)
    asked = _codebatch(project, "query", "outputs", "--task", _NAME, "--batch", ran.batch_id)
    return msgspec.json.decode(asked, type=_QueryAnswer).records


class _Batch(msgspec.Struct):
    """What is needed of the answer of `run`."""

    batch_id: str


class _QueryAnswer(msgspec.Struct):
    """What is needed of the answer of `query`."""

    records: list[Record]


def _codebatch(project: Path, *arguments: str) -> bytes:
    command = [sys.executable, "-m", "codebatch", *arguments, "--json", "--store", "../tree/.codebatch"]
    ended = subprocess.run(command, cwd=project, capture_output=True, check=False)
    if ended.returncode:
        raise RuntimeError((ended.stdout + ended.stderr).decode("utf-8", "replace"))
    return ended.stdout


def _toml(value: Json) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return msgspec.json.encode(value).decode("utf-8")
