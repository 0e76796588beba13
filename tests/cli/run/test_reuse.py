"""A second run costs as much as the change, and has the same result as a run without reuse (SPEC.md "Reuse")."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codebatch.store.objects.packs import encode_damaged_keys
from tests.bad_input.test_store_fuzz import ask
from tests.support.command_line import CommandLine, make_modules, set_apart, write
from tests.support.inline_workers import inline

FILE_TASKS = 4
FILES = 24
SHARDS = "[shard]\nfiles_average = 4\nfiles_min = 4\nfiles_max = 4\n"


@pytest.fixture
def project(codebatch: CommandLine) -> CommandLine:
    """A tree of several shards that was analysed once. Configuration and store are beside it."""
    write(codebatch.directory / "codebatch.toml", SHARDS)
    make_modules(codebatch.directory / "tree", FILES)
    set_apart(codebatch, "tree")
    codebatch("run", "tree")
    return codebatch


def _run(codebatch: CommandLine, *options: str) -> dict[str, Any]:
    """Run codebatch, and check that the result equals that of a run without reuse."""
    answer: dict[str, Any] = codebatch("run", "tree", "--json", *options).json
    with inline(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(codebatch.directory)
        fresh = json.loads(ask(("run", "tree", "--json", "-q", "--store", "anew", "--again")).stdout)
    assert fresh["reused"] == 0
    assert answer["result_digest"] == fresh["result_digest"]
    assert answer["records"] == fresh["records"]
    return answer


def test_changed_file_is_the_only_file_executed(project: CommandLine) -> None:
    write(project.directory / "tree" / "m07.py", "import sys\n")
    ended = project("run", "tree")
    reused = FILE_TASKS * (FILES - 1)
    assert f"({reused} of {reused + FILE_TASKS} results reused)" in ended.text
    new, old = sorted(project.directory.glob(".codebatch/batches/batch-*"), reverse=True)
    shared = {path.stat().st_ino for path in old.glob("outputs/*/*/*.zst")}
    own = [path for path in new.glob("outputs/*/[!d]*/*.zst") if path.stat().st_ino not in shared]
    assert len(own) == FILE_TASKS, "only the shard files of one shard may be new"
    write(project.directory / "tree" / "m07.py", "import sys, os\n")
    assert _run(project)["executed"] == FILE_TASKS
    assert project("query", "outputs", "--path", "m07.py", "--json").records


@pytest.mark.parametrize(
    ("text", "shards"),
    [("import os\n\n\ndef g(x):\n    return x\n", 0), ("import m08\n", 2), ("import os, sys\nimport m01\n", 2)],
)
def test_changed_imports_rewrite_only_the_affected_dependency_shards(
    project: CommandLine, text: str, shards: int
) -> None:
    write(project.directory / "tree" / "m07.py", text)
    _run(project)
    new, old = sorted(project.directory.glob(".codebatch/batches/batch-*"), reverse=True)
    shared = {path.stat().st_ino for path in old.glob("outputs/*/*/*.zst")}
    own = [path for path in new.glob("outputs/*/dependencies/*.zst") if path.stat().st_ino not in shared]
    assert len(own) == shards, "only shards of the importing file and of imported files may be new"


def test_added_removed_and_moved_files_are_the_only_files_executed(project: CommandLine) -> None:
    (project.directory / "tree" / "m03.py").unlink()
    (project.directory / "tree" / "m04.py").rename(project.directory / "tree" / "moved.py")
    write(project.directory / "tree" / "a.js", "let x = 1;\n")
    os.chmod(project.directory / "tree" / "m09.py", 0o755)
    assert _run(project)["executed"] == FILE_TASKS * 3
    write(project.directory / "tree" / ".gitattributes", "m1*.py linguist-generated\n")
    assert _run(project)["executed"] > FILE_TASKS * 10, "the cache key must cover the attributes of a file"


def test_changed_task_configuration_reexecutes_only_this_task(project: CommandLine) -> None:
    (old,) = project.directory.glob(".codebatch/batches/batch-*")
    write(project.directory / "codebatch.toml", SHARDS + "[tasks.lint]\noff = ['F401']\n")
    assert _run(project)["executed"] == FILES
    new = max(project.directory.glob(".codebatch/batches/batch-*"))
    shared = {path.stat().st_ino for path in old.glob("outputs/*/*/*.zst")}
    for task in ("parse", "analyze", "symbols", "dependencies", "duplicates"):
        assert all(path.stat().st_ino in shared for path in new.glob(f"outputs/*/{task}/*.zst")), task
    assert not any(path.stat().st_ino in shared for path in new.glob("outputs/*/lint/*.zst"))


def test_emit_ast_reexecutes_only_the_task_parse(project: CommandLine) -> None:
    assert project("run", "tree", "--emit-ast", "--json").json["executed"] == FILES


@pytest.mark.parametrize("option", ["--no-cache", "--again"])
def test_options_no_cache_and_again_disable_reuse(project: CommandLine, option: str) -> None:
    write(project.directory / "tree" / "m07.py", "import sys\n")
    assert _run(project, option)["reused"] == 0


def test_results_of_an_unfinished_batch_are_reused(codebatch: CommandLine) -> None:
    write(codebatch.directory / "codebatch.toml", SHARDS)
    for number in range(FILES):
        write(codebatch.directory / "tree" / f"m{number:02d}.py", "import os\n")
    codebatch("run", "tree", "--task", "parse")
    write(codebatch.directory / "tree" / "m07.py", "import sys\n")
    answer = _run(codebatch)
    assert (answer["reused"], answer["executed"]) == (FILES - 1, FILE_TASKS * FILES - (FILES - 1))


def test_failed_results_are_not_reused(codebatch: CommandLine) -> None:
    codebatch.environment["CODEBATCH_STORE"] = str(codebatch.directory / "store")
    write(codebatch.directory / "tree" / "a.py", "import os\n" * 15_000)
    write(codebatch.directory / "tree" / "b.py", "import os\n")
    codebatch("run", "tree", "--file-seconds", "0.01", status=3)
    write(codebatch.directory / "tree" / "c.py", "")
    answer = codebatch("run", "tree", "--json").json
    assert (answer["failures"], answer["status"]) == (0, "COMPLETED")


def test_batch_is_complete_after_its_base_was_removed(project: CommandLine) -> None:
    write(project.directory / "tree" / "m07.py", "import sys\n")
    answer = project("run", "tree", "--json").json
    shutil.rmtree(min(project.directory.glob(".codebatch/batches/batch-*")))
    assert project("query", "outputs", "--json").records
    assert project("summary", "--json").json["batch_id"] == answer["batch_id"]
    write(project.directory / "tree" / "m07.py", "import sys, os\n")
    assert _run(project)["executed"] == FILE_TASKS


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def _replace_with_another_file(path: Path) -> None:
    path.write_bytes(
        next(sibling for sibling in path.parent.iterdir() if sibling != path and sibling.is_file()).read_bytes()
    )


@pytest.mark.parametrize("damage", [_truncate, _flip, _replace_with_another_file, Path.unlink])
@pytest.mark.parametrize("name", ["outputs/*/parse/000002-*", "plan.json"])
def test_damaged_results_of_a_base_are_not_reused(
    project: CommandLine, damage: Callable[[Path], None], name: str
) -> None:
    (path,) = project.directory.glob(f".codebatch/batches/*/{name}")
    damage(path)
    write(project.directory / "tree" / "m07.py", "import sys\n")
    write(project.directory / "tree" / "m11.py", "import sys\n")
    answer = _run(project)
    if "parse" in name:
        assert FILE_TASKS < answer["executed"] < FILE_TASKS * 8


def test_truncated_copy_of_a_reused_shard_file_is_replaced(project: CommandLine) -> None:
    (old,) = project.directory.glob(".codebatch/batches/*")
    whole = next(old.glob("outputs/*/parse/000004-*"))
    digest = whole.read_bytes()[-44:-12].hex()
    write(project.directory / "tree" / "m00.py", "import sys\n")
    project("snapshot", "tree")
    project("batch", "init")
    new = max(project.directory.glob(".codebatch/batches/*"))
    (new / "results" / f"{digest}.shard").write_bytes(whole.read_bytes()[:50])
    assert _run(project)["executed"] == FILE_TASKS
    assert (new / "results" / f"{digest}.shard").read_bytes() == whole.read_bytes()


def test_batch_with_damaged_outputs_retains_its_registers(project: CommandLine) -> None:
    (old,) = project.directory.glob(".codebatch/batches/*")
    digest = project("status", "--json").json["result_digest"]
    next(old.glob("outputs/*/lint/000002-*")).unlink()
    write(project.directory / "tree" / "m00.py", "import sys\n")
    answer = _run(project)
    assert answer["executed"] == FILE_TASKS, "the registers must have the results of the missing file"
    shutil.rmtree(next(old.glob("outputs/*")))
    assert project("resume", "--batch", old.name, "--json").json["result_digest"] == digest


def test_record_with_a_damaged_or_missing_object_is_not_reused(project: CommandLine) -> None:
    """Damaged and missing objects are tried, in shards that are reused as a whole and in part."""
    write(project.directory / "codebatch.toml", SHARDS + "[tasks.parse]\nemit_ast = true\n")
    project("run", "tree")
    objects = project.directory / ".codebatch" / "objects"
    asts = {
        record["path"]: record["object"] for record in project("query", "outputs", "--kind", "ast", "--json").records
    }
    damaged = bytes.fromhex(asts["m05.py"]), bytes.fromhex(asts["m08.py"])
    for pack in objects.glob("*.pack"):
        pack.with_suffix(".bad").write_bytes(encode_damaged_keys(set(damaged)))
    changed = write(project.directory / "tree" / "m07.py", "import sys\n")
    assert project("run", "tree", "--json").json["executed"] == FILE_TASKS + len(damaged)
    assert project("gc", "--json").json["objects"] == 0
    for path in objects.glob("*"):
        path.unlink()
    write(changed, "import re\n")
    assert project("run", "tree", "--json").json["executed"] == FILE_TASKS - 1 + FILES
    write(changed, "import os\n")
    assert project("run", "tree", "--json").json["executed"] == FILE_TASKS
