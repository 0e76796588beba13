"""Stores that are missing, foreign, of another format or not writable; and how a store is found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import UNPRIVILEGED, CommandLine, make_project, permissions_bind, write

READING = ("status", "summary", "errors", "top", "tasks", "files", "batch list", "snapshot list", "query outputs")
WRITING = (
    "batch init",
    "run project --again",
    "run project --exclude web",
    "snapshot project --exclude web",
    "gc",
    "pin latest",
)


@pytest.mark.parametrize("command", ["status", "batch init", "run --batch latest"])
def test_missing_store_is_reported_with_a_hint_to_create_it(codebatch: CommandLine, command: str) -> None:
    named = codebatch(*command.split(), "--store", "nowhere", "--json", status=4)
    assert named.error["code"] == "store_not_found"
    assert str(codebatch.directory / "nowhere") in named.error["message"]
    assert "codebatch init" in named.error["hint"]
    ended = codebatch(*command.split(), status=4)
    assert ended.notes.startswith("error: no store in the project ")
    assert not (codebatch.directory / "nowhere").exists()


@pytest.mark.parametrize("command", ["status", "run .", "snapshot .", "init"])
def test_foreign_directory_is_rejected_as_a_store_and_unchanged(codebatch: CommandLine, command: str) -> None:
    write(codebatch.directory / "thesis" / "chapter1.txt", "It was a dark and stormy night.\n")
    ended = codebatch(*command.split(), "--store", "thesis", "--json", status=4)
    assert ended.error["code"] == "store_foreign"
    assert [path.name for path in (codebatch.directory / "thesis").iterdir()] == ["chapter1.txt"]


def test_file_is_rejected_as_a_store(codebatch: CommandLine) -> None:
    write(codebatch.directory / "file", "x")
    for command in ("status", "run .", "init"):
        error = codebatch(*command.split(), "--store", "file", "--json", status=4).error
        assert error["code"] == "store_foreign"
        assert "is a file" in error["message"]
    codebatch("status", "--store", "file/below", status=4)
    codebatch("run", ".", "--store", "file/below", status=4)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc here")
def test_uncreatable_store_directory_is_reported(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    for command in (("init", "/proc/codebatch"), ("run", ".", "--store", "/proc/codebatch")):
        error = codebatch(*command, "--json", status=4).error
        assert error["code"] == "store_error"
        assert "--store" in error["hint"]


@pytest.mark.parametrize(
    ("document", "code", "hint"),
    [
        ('{"format": 999, "id": "x"}', "store_foreign", "upgrade codebatch"),
        (
            '{"schema_name": "codebatch.store", "schema_version": 1, "created_at": "x"}',
            "store_foreign",
            "create a new store",
        ),
        ('{"name": "left-pad"}', "store_foreign", ""),
        ('{"format": 0, "id": "x"}', "store_foreign", "create a new store"),
        ('{"format": 1}', "store_corrupt", ""),
        ('{"format": "two", "id": "x"}', "store_corrupt", ""),
        ("[]", "store_corrupt", ""),
        ("", "store_corrupt", ""),
        ('{"format": 1, "id"', "store_corrupt", ""),
        ("\x00\xff", "store_corrupt", ""),
    ],
)
def test_store_of_another_format_is_reported_and_unchanged(
    codebatch: CommandLine, document: str, code: str, hint: str
) -> None:
    codebatch("init", "store")
    write(codebatch.directory / "store" / "store.json", document)
    before = sorted(codebatch.directory.rglob("*"))
    for command in ("status", "run ."):
        ended = codebatch(*command.split(), "--store", "store", "--json", status=4)
        assert ended.error["code"] == code
        assert hint in str(ended.error["hint"])
    assert sorted(codebatch.directory.rglob("*")) == before
    assert (codebatch.directory / "store" / "store.json").read_text() == document


def test_store_is_searched_upwards_and_the_nearest_applies(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    outer = codebatch("run", ".", "--json").json["batch_id"]
    below = codebatch.directory / "project" / "src"
    assert codebatch("status", "--json", cwd=below).json["batch_id"] == outer
    codebatch("init", cwd=codebatch.directory / "project")
    assert "no batch" in codebatch("status", status=3, cwd=below).notes
    named = ("--store", "../../.codebatch", "--batch", outer)
    assert codebatch("status", "--json", *named, cwd=below).json["batch_id"] == outer


def test_store_option_overrides_the_environment_variable(codebatch: CommandLine, tmp_path: Path) -> None:
    make_project(codebatch.directory / "project")
    variable = CommandLine(tmp_path, {"CODEBATCH_STORE": str(tmp_path / "named")})
    ran = variable("run", "project", "--json")
    assert (tmp_path / "named" / "store.json").is_file()
    assert not (tmp_path / ".codebatch").exists()
    assert variable("status", "--json").json["batch_id"] == ran.json["batch_id"]
    again = variable("init", "--json").json
    assert (again["store"], again["created"]) == (str(tmp_path / "named"), False)
    assert not (tmp_path / ".codebatch").exists()
    assert "two stores were given" in variable("init", "other", "--store", "third", status=2).notes
    assert "--store is empty" in variable("init", "--store", "", status=2).notes
    variable("init", "other")
    variable("status", "--store", "other", status=3)
    empty = CommandLine(tmp_path, {"CODEBATCH_STORE": ""})
    assert empty("status", status=4).notes.startswith("error: no store in the project")
    assert variable("status", "--store", "", status=2).notes.startswith("error: --store is empty")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_new_store_is_at_the_top_of_the_work_tree_and_in_no_snapshot(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    subprocess.run(["git", "init", "-q", "project"], cwd=codebatch.directory, env=codebatch.environment, check=True)
    below = codebatch.directory / "project" / "src"
    first = codebatch("run", ".", "--json", cwd=below).json
    assert (codebatch.directory / "project" / ".codebatch" / "store.json").is_file()
    assert first["files"] == 2
    whole = codebatch("run", "..", "--json", cwd=below).json
    assert whole["files"] == 9
    assert codebatch("run", "..", "--json", cwd=below).json["action"] == "up to date"
    status = subprocess.run(
        ["git", "status", "--porcelain", "--ignored=no"],
        cwd=below,
        env=codebatch.environment,
        capture_output=True,
        check=True,
    )
    assert b".codebatch" not in status.stdout
    refused = codebatch("run", "../.codebatch", status=2, cwd=below)
    assert "is in the store" in refused.notes


def test_init_of_an_existing_store_changes_nothing(codebatch: CommandLine) -> None:
    first = codebatch("init", "store", "--json").json
    assert first["created"]
    again = codebatch("init", "store", "--json").json
    assert again == first | {"created": False}


def test_init_of_a_project_creates_its_store(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    (codebatch.directory / "empty").mkdir()
    for arguments, where in (((".",), "project"), (("../project",), "empty"), ((".",), "empty")):
        answer = codebatch("init", *arguments, "--json", cwd=codebatch.directory / where).json
        project = where if arguments == (".",) else "project"
        assert answer["store"] == str(codebatch.directory / project / ".codebatch")
    before = sorted(codebatch.directory.rglob("*"))
    for store in ("project/.codebatch", "empty/.codebatch"):
        codebatch("init", ".", cwd=codebatch.directory / store)
    assert sorted(codebatch.directory.rglob("*")) == before
    (codebatch.directory / "free").mkdir()
    assert codebatch("init", "free", "--json").json["store"] == str(codebatch.directory / "free")


@pytest.mark.parametrize("command", ["init --store project", "status --store project", "run . --store project"])
@pytest.mark.parametrize("content", ["", "no JSON", '{"format": 1}', '{"format": 0}', "{}"])
def test_hint_never_suggests_removing_a_foreign_directory(codebatch: CommandLine, command: str, content: str) -> None:
    make_project(codebatch.directory / "project")
    if content:
        write(codebatch.directory / "project" / "store.json", content)
    hint = codebatch(*command.split(), "--json", status=4).error["hint"]
    assert " remove " not in f" {hint}"
    if not content and command != "status --store project":
        store = codebatch.directory / "project" / ".codebatch"
        assert hint == f"give the path of the store itself: --store {store}"
        codebatch("init", "--store", store)


@permissions_bind
def test_read_only_store_answers_queries_and_refuses_work(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path, prefix=UNPRIVILEGED)
    make_project(tmp_path / "project")
    ran = codebatch("run", "project", "--json").json
    for path in (tmp_path / ".codebatch", *(tmp_path / ".codebatch").rglob("*")):
        path.chmod(path.stat().st_mode & 0o555)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for command in (*READING, "snapshot project", "run-shard --task parse --shard=", "gc --dry-run", "store-stats"):
        codebatch(*command.split())
    for command in WRITING:
        # `gc` collects the rest, and states what it has collected.
        refused = codebatch(*command.split(), "--json", status=4, has_answer=command.startswith("gc")).error
        assert refused["code"] == "store_unwritable", command
        assert "permissions" in refused["hint"]
    for command in ("resume", "run --batch latest", "run project"):
        assert codebatch(*command.split(), "--json").json["action"] == "up to date"
    assert codebatch("init", ".codebatch", "--json").json["created"] is False
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    for path in (tmp_path / ".codebatch", *(tmp_path / ".codebatch").rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    again = codebatch("run", "project", "--again", "--json").json
    assert again["result_digest"] == ran["result_digest"]
