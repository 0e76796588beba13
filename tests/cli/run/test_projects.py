"""The project is the snapshot; a path below it restricts the work and the answer (SPEC.md "Projects")."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, write

COPIED = "".join(f"value_{n} = print({n}, 'the text of a line that is long enough')\n" for n in range(14))


def make_repository(top: Path) -> Path:
    """Create a git work tree with imports in both directions between directories."""
    write(top / "app" / "__init__.py", "")
    write(top / "app" / "core.py", "from app.db import query\nimport lib.tools\nimport os\n" + COPIED)
    write(top / "app" / "db" / "__init__.py", "")
    write(top / "app" / "db" / "query.py", "from app import core\nfrom lib import tools\n" + COPIED)
    write(top / "lib" / "__init__.py", "")
    write(top / "lib" / "tools.py", "import app.db.query\n")
    write(top / "include" / "a.h", "int a(void);\n")
    write(top / "src" / "a.cpp", '#include "../include/a.h"\n')
    write(top / ".gitignore", ".*\nmade.py\nout/\n")
    write(top / "made.py", "x = 1\n")
    write(top / "out" / "deep" / "o.py", "x = 1\n")
    return top


@pytest.fixture
def repository(codebatch: CommandLine) -> Path:
    make_repository(codebatch.directory)
    codebatch.shell("git init -q .")
    return codebatch.directory


def records(codebatch: CommandLine, batch_id: str, *arguments: str) -> list[dict[str, Any]]:
    answer = codebatch("query", "outputs", "--batch", batch_id, *arguments, "--json").records
    query_records = answer["records"] if isinstance(answer, dict) else answer
    assert isinstance(query_records, list)
    return query_records


def test_restricted_run_reports_only_records_of_the_whole_run(codebatch: CommandLine, repository: Path) -> None:
    """A restricted batch has no record that the batch of the whole project lacks.

    Imports lead to all files of the project.
    """
    ended = codebatch("run", "app/db", "src", "--json")
    assert ended.json["paths"] == ["app/db", "src"]
    assert ended.json["files"] == 3
    assert f"analysing only a part of project {repository}: app/db, src\n" in ended.notes
    part = records(codebatch, ended.json["batch_id"])
    whole_id = codebatch("run", ".", "--json").json["batch_id"]
    whole = records(codebatch, whole_id)
    assert {record["path"] for record in part} == {"app/db/__init__.py", "app/db/query.py", "src/a.cpp"}
    needs_all = {"dependents", "cycle", "duplicated_lines", "duplicated_blocks"}
    of_part = [record for record in whole if record["path"].startswith(("app/db/", "src/"))]
    assert [record for record in part if record not in of_part] == []
    missing = [record for record in of_part if record not in part]
    assert {record.get("metric", record["kind"]) for record in missing} == needs_all | {"duplicate"}
    leads = {(record["target"], record["resolution"]) for record in part if record.get("edge_type") == "depends"}
    assert leads == {("app/core.py", "exact"), ("lib/tools.py", "exact"), ("include/a.h", "exact")}


def test_restricted_batch_is_not_the_default_if_a_whole_batch_exists(codebatch: CommandLine, repository: Path) -> None:
    whole = codebatch("run", ".", "--json").json["batch_id"]
    codebatch("run", "app/db", "-q")
    for question in (("inspect", "lib/tools.py"), ("impact", "app/db/query.py"), ("files",), ("errors",)):
        assert f"using batch {whole} (whole project); a newer batch " in codebatch(*question, "-q").notes
    assert codebatch("inspect", "lib/tools.py", "--json", "--explain").json["batch_id"] == whole
    write(repository / "app" / "db" / "query.py", "def broken(:\n")
    ended = codebatch("run", "app/db", "--json")
    narrow = ended.json["batch_id"]
    assert ended.notes.splitlines()[-1] == f"next: codebatch findings --batch {narrow}"
    errors = codebatch("errors")
    assert f"using batch {whole} (whole project); a newer batch {narrow} covers only app/db" in errors.notes
    assert f"results are out of date (files changed); update them with: codebatch run {repository}\n" in errors.notes
    assert len(codebatch("errors", "--batch", narrow, "--json").records) == 1
    assert codebatch("summary", "--json").json["batch_id"] == whole
    for question in (("summary",), ("status",)):
        assert codebatch(*question, "--batch", "latest", "--json").json["batch_id"] == narrow, (
            "an explicit `latest` must name the latest batch"
        )
    assert codebatch("status", "--json").json["batch_id"] == narrow
    assert codebatch("status", "--json").json["paths"] == ["app/db"]
    assert [row["paths"] for row in codebatch("batch", "list", "--json").json] == [[], ["app/db"], ["app/db"]]


def test_whole_batch_with_fewer_tasks_is_not_preferred(codebatch: CommandLine) -> None:
    write(codebatch.directory / "sub" / "a.py", "import os\n")
    codebatch.shell("git init -q .")
    codebatch("run", ".", "--pipeline", "parse", "-q")
    codebatch("run", "sub", "-q")
    answer = codebatch("query", "diagnostics", "--json").records
    assert [row["code"] for row in answer] == ["F401"]
    open_one = codebatch("run", ".", "--task", "parse", "--json").json["batch_id"]
    codebatch("run", "sub", "--again", "-q")
    assert codebatch("query", "diagnostics", "--json").json["paths"] == ["sub"], (
        "an unfinished batch must not be preferred"
    )
    codebatch("run", "--batch", open_one, "-q")
    assert [row["code"] for row in codebatch("query", "diagnostics", "--json").records] == ["F401"]
    codebatch("run", "sub", "--pipeline", "parse", "-q")
    ended = codebatch("query", "diagnostics", "--json")
    assert [row["code"] for row in ended.records] == ["F401"], "a batch of `full` has all results of `parse`"
    assert f"using batch {open_one} (whole project); a newer batch " in ended.notes


def test_restricted_batch_is_the_default_if_no_whole_batch_exists(codebatch: CommandLine, repository: Path) -> None:
    batch_id = codebatch("run", "app/db", "-q", "--json").json["batch_id"]
    ended = codebatch("errors")
    assert f"batch {batch_id} is restricted to app/db" in ended.notes
    answer = codebatch("errors", "--json").json
    assert answer == {
        "schema": "codebatch.errors/1",
        "project": str(repository),
        "complete": True,
        "percent": 100.0,
        "batch_id": batch_id,
        "stale": False,
        "paths": ["app/db"],
        "records": [],
    }
    assert codebatch("summary", "--json").json["paths"] == ["app/db"]
    error = codebatch("inspect", "lib/tools.py", "--json", status=2).error
    assert error["message"] == "the batch, restricted to app/db, has no file 'lib/tools.py'"
    assert [row["path"] for row in codebatch("references", "core", "--json").records] == ["app/db/query.py"]


def test_project_wide_answers_are_incomplete_in_a_restricted_batch(codebatch: CommandLine, repository: Path) -> None:
    codebatch("run", "app", "-q")
    for question in (("impact", "app/core.py"), ("graph", "--cycles")):
        ended = codebatch(*question, status=3)
        assert "incomplete: " in ended.notes
        assert f"analyse all files with: codebatch run {repository}\n" in ended.notes
        assert codebatch(*question, "--json", status=3).json["complete"] is False
    assert len(codebatch("graph", "--json").records) == 4
    notes = codebatch("impact", "app/__init__.py", status=3).notes
    assert "contains app (8 files: 4 parsed, 4 outside the batch, 3 ignored):\n" in notes
    assert "  lib/tools.py: outside the paths of the batch\n" in notes
    of_kind = ("query", "outputs", "--kind")
    of_task = ("query", "outputs", "--task", "duplicates")
    of_file = ("inspect", "app/core.py", "--kinds", "duplicate")
    for named in ((*of_kind, "duplicate"), (*of_kind, "metric"), of_task, of_file):
        ended = codebatch(*named, "--json", status=3)
        assert ended.json["complete"] is False, "duplicates and dependents in lib/ are unknown"
    for other in ((*of_kind, "edge"), (*of_kind, "metric", "--task", "analyze"), ("inspect", "app/core.py")):
        assert codebatch(*other, "--json").json["complete"] is True


def test_inspect_of_a_directory_does_not_match_a_file_of_the_same_name(codebatch: CommandLine) -> None:
    write(codebatch.directory / "pkg" / "pkg", "x\n")
    codebatch("run", "pkg", "-q")
    assert codebatch("inspect", "pkg", "--json").records[0]["path"] == "pkg"
    refused = codebatch("inspect", ".", status=2, cwd=codebatch.directory / "pkg")
    assert refused.notes.startswith("error: '.' is not a name")


def test_run_in_a_subdirectory_is_restricted_to_its_paths(codebatch: CommandLine, repository: Path) -> None:
    below = repository / "app" / "db"
    first = codebatch("run", ".", "--json", cwd=below).json
    assert (first["paths"], first["files"]) == (["app/db"], 2)
    again = codebatch("run", "app/db", "app/db/query.py", "--json").json
    assert (again["batch_id"], again["action"]) == (first["batch_id"], "up to date"), (
        "a path below another given path adds nothing"
    )
    assert codebatch("inspect", "query.py", "--json", cwd=below).records[0]["path"] == "app/db/query.py"
    one = codebatch("run", "query.py", "--json", cwd=below).json
    assert (one["paths"], one["files"]) == (["app/db/query.py"], 1)
    assert one["batch_id"] != first["batch_id"]
    whole = codebatch("run", "../..", "--json", cwd=below).json
    assert (whole["paths"], whole["files"]) == ([], 8)


def test_run_without_path_covers_the_current_directory(codebatch: CommandLine, repository: Path) -> None:
    below = codebatch("run", "--json", cwd=repository / "app" / "db").json
    assert below["paths"] == ["app/db"]
    write(repository / "new.py", "x = 1\n")
    whole = codebatch("run", "--json").json
    assert (whole["paths"], whole["files"]) == ([], 9)


def test_predecessors_of_latest_have_the_same_paths(codebatch: CommandLine, repository: Path) -> None:
    first = codebatch("run", ".", "--json").json["batch_id"]
    codebatch("run", "app", "-q")
    codebatch("run", ".", "--again", "-q")
    assert codebatch("summary", "--batch", "latest~1", "--json").json["batch_id"] == first


def test_given_paths_are_included_even_if_ignored(codebatch: CommandLine, repository: Path) -> None:
    ended = codebatch("run", "made.py", "lib", "--json").json
    assert (ended["paths"], ended["files"]) == (["lib", "made.py"], 3)
    assert codebatch("summary", "--json").json["stale"] is False
    assert codebatch("run", "made.py", "lib", "--json").json["action"] == "up to date"


def test_ignored_directory_is_a_separate_project(codebatch: CommandLine, repository: Path) -> None:
    codebatch("run", ".", "-q")
    ended = codebatch("run", "out/deep", "--json").json
    assert (ended["paths"], ended["files"]) == ([], 1)
    assert codebatch("batch", "list", "--json").json[-1]["source"] == f"{repository}/out/deep"
    assert codebatch("run", "out/deep/o.py", "--json").json["paths"] == ["o.py"]


def test_project_without_git_is_the_directory_that_was_run(codebatch: CommandLine) -> None:
    make_repository(codebatch.directory / "tree")
    alone = codebatch("run", "tree/app/db", "--json").json
    assert (alone["paths"], alone["files"]) == ([], 2)
    whole = codebatch("run", "tree", "--json").json
    assert (whole["paths"], whole["files"]) == ([], 8)
    assert codebatch("run", "tree/lib", "tree/src/a.cpp", "--json").json["paths"] == ["lib", "src/a.cpp"]
    assert codebatch("run", "tree/app/db", "--json").json["batch_id"] == alone["batch_id"], "the batch already exists"


def test_work_batch_defines_a_project_but_a_store_does_not(codebatch: CommandLine) -> None:
    """`run DIRECTORY` means the same before and after a store is created, or something else is analysed."""
    make_repository(codebatch.directory / "tree")
    codebatch("init", ".codebatch")
    alone = codebatch("run", "tree", "--json").json
    assert (alone["paths"], alone["files"]) == ([], 8)
    write(codebatch.directory / "work.toml", '[tasks.one]\nrun = "true"\n')
    codebatch("work", "run")
    assert codebatch("summary", "--json").json["batch_id"] == alone["batch_id"]
    write(codebatch.directory / "other" / "a.py", "x = 1\n")
    assert codebatch("run", "other", "--json").json["paths"] == ["other"]


def test_path_without_files_is_nothing_to_do(codebatch: CommandLine, repository: Path) -> None:
    (repository / "none").mkdir()
    (repository / "link").symlink_to("made.py")
    for path in ("none", "link"):
        assert codebatch("run", path, "--json", status=5).error["code"] == "nothing_to_do"
    assert codebatch("run", "none", "--allow-empty", "--json").json["files"] == 0


@pytest.mark.parametrize("config", ["", '[tasks.lint.ruff]\nconfig = "project"\n'], ids=["pinned", "project"])
def test_batch_init_creates_the_same_plan_as_run(codebatch: CommandLine, repository: Path, config: str) -> None:
    write(repository / "codebatch.toml", config)
    write(repository / "ruff.toml", 'lint.select = ["F", "D"]\n')
    made = codebatch("snapshot", ".", "--json").json["snapshot_id"]
    planned = codebatch("batch", "init", "--snapshot", made, "--json").json
    ran = codebatch("run", ".", "--json").json
    assert (ran["batch_id"], ran["action"]) == (planned["batch_id"], "resumed")
    codebatch("run", ".", "--again", "-q")
    first, second = (
        codebatch("batch", "show", "--batch", reference, "--json").json for reference in ("latest~1", "latest")
    )
    assert first["batch_id"] == planned["batch_id"]
    for field in ("plan_digest", "source", "snapshot_id", "pipeline", "paths"):
        assert first[field] == second[field]
    codes = {row["code"] for row in codebatch("query", "diagnostics", "--tool", "ruff", "--json").records}
    assert ("D100" in codes) == bool(config)


@pytest.mark.parametrize("name", [b"new\nline", b"caf\xe9", b"'quote\""])
def test_directory_of_any_name_is_a_project(codebatch: CommandLine, name: bytes) -> None:
    root = codebatch.directory / os.fsdecode(name)
    write(root / "sub" / "b.py", "x = 1\n")
    codebatch("run", ".", "-q", cwd=root)
    assert codebatch("inspect", "b.py", "--json", cwd=root / "sub").records[0]["path"] == "sub/b.py"
    assert "is of project" not in codebatch("errors", cwd=root).notes
    assert os.path.isdir(codebatch("batch", "show", "--outputs", cwd=root).stdout.removesuffix(b"\n"))
    assert os.path.isdir(codebatch("batch", "show", "--outputs", "--json", cwd=root).json["outputs"])
    shown = f"{os.fsencode(root).decode(errors='backslashreplace')}/.codebatch/".replace("\n", "\\n")
    assert shown in codebatch("batch", "show", cwd=root).text
