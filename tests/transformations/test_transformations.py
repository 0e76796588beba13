"""Tasks that propose changes of files, from the run to garbage collection, with real processes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codebatch.operations.project.scaffolding import scaffold_task
from codebatch.operations.project.task_example import CHANGE_EXAMPLE
from codebatch.store.objects.packs import encode_damaged_keys
from codebatch.testing.tasks import changed_files, run_task
from tests.support.command_line import CommandLine, set_apart, write

RENAME = """
def task(file):
    new = file.content.replace(b"old", b"new")
    yield file.change(new, executable=True if file.path.endswith(b".sh") else None)
    if b"gone" in file.content:
        yield file.change(None)
"""
SETTINGS = """
[tasks.rename]
python = "tools/rename.py:task"
[pipelines.small]
tasks = ["parse", "rename"]
"""
TREE = {
    "a.txt": b"one\r\nold\r\nend",
    "b.py": b"# coding: latin-1\n# old \xe9\n",
    "c.sh": b"echo\n",
    "d.txt": b"gone\nfor good\n",
    "e.txt": b"other\n",
}
CHANGED = {"a.txt": b"one\r\nnew\r\nend", "b.py": b"# coding: latin-1\n# new \xe9\n", "c.sh": b"echo\n", "d.txt": None}


@pytest.fixture
def project(codebatch: CommandLine) -> CommandLine:
    """A project whose task `rename` proposes changes of four of five files."""
    for name, content in TREE.items():
        write(codebatch.directory / "src" / name, content)
    write(codebatch.directory / "tools" / "rename.py", RENAME)
    write(codebatch.directory / "codebatch.toml", SETTINGS)
    set_apart(codebatch, "src")
    return codebatch


def run(project: CommandLine, *arguments: str) -> int:
    """Run `parse` and `rename`. Return the number of results that were executed and not reused."""
    executed = project("run", "src", "--pipeline", "small", "--json", *arguments).json["executed"]
    assert isinstance(executed, int)
    return executed


def proposed(project: CommandLine, *arguments: str) -> dict[str, bytes | None]:
    """Return the new content of each file with a proposed change."""
    rows = project("query", "outputs", "--kind", "change", "--json", *arguments).records
    return {row["path"]: None if row["after"] is None else project("cat-object", row["after"]).stdout for row in rows}


def test_changes_are_records_that_are_not_findings(project: CommandLine) -> None:
    ran = project("run", "src", "--json").json
    assert (ran["success"], ran["failures"]) == (True, 0)
    assert proposed(project) == CHANGED
    assert {name: (project.directory / "src" / name).read_bytes() for name in TREE} == TREE, "a file was written"
    lines = [
        "a.txt: change +1 -1 lines",
        "b.py: change +1 -1 lines",
        "c.sh: change of the executable bit to on",
        "d.txt: change -2 lines, deleted",
    ]
    assert project("query", "outputs", "--kind", "change").lines == lines
    assert project("inspect", "a.txt", "--all").lines[-1] == lines[0]
    assert project("summary", "--json").json["kinds"]["change"] == len(CHANGED)
    assert "change 4" in project("summary").text
    assert project("query", "stats", "--task", "rename", "--group-by", "kind", "--json").records == {
        "change": len(CHANGED)
    }
    assert project("sql", "select path from change where after is null").lines[-1] == "d.txt"
    assert project("query", "outputs", "--where", "added == 0 and executable", "--count").text == "1\n"
    assert project("errors", "--json").records == project("query", "diagnostics", "--json").records == []
    assert project("check", "--allow-no-base", "--json").status == 0


def test_run_after_the_changes_proposes_nothing(project: CommandLine) -> None:
    """The files that a second run executes are those that were changed."""
    assert run(project) == 2 * len(TREE)
    for name, content in CHANGED.items():
        path = project.directory / "src" / name
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
    (project.directory / "src" / "c.sh").chmod(0o755)
    changed_here = 3  # One of the four files was deleted.
    assert run(project) == 2 * changed_here
    assert proposed(project) == {}
    assert project("diff", "--json").status == 0


def test_reuse_keeps_a_change_and_its_object(project: CommandLine) -> None:
    assert run(project) == 2 * len(TREE)
    write(project.directory / "src" / "e.txt", "more\n")
    assert run(project) == 2
    project("gc", "--keep", "1")
    assert len(project("batch", "list", "--json").json) == 1
    assert proposed(project) == CHANGED
    project("diagnose", "--full")


def test_change_whose_object_is_missing_is_not_reused(project: CommandLine) -> None:
    run(project)
    (changed, *_) = project("query", "outputs", "--kind", "change", "--json").records
    for pack in (project.directory / ".codebatch" / "objects").glob("*.pack"):
        pack.with_suffix(".bad").write_bytes(encode_damaged_keys({bytes.fromhex(changed["after"])}))
    write(project.directory / "src" / "e.txt", "more\n")
    assert run(project) == 2 + 1
    assert proposed(project) == CHANGED


def test_objects_of_changes_are_collected_with_their_batch(project: CommandLine) -> None:
    assert re.search(r"^Proposed changes \(\d+\): codebatch changes", project("run", "src").text, re.MULTILINE)
    (changed, *_) = project("query", "outputs", "--kind", "change", "--json").records
    write(project.directory / "tools" / "rename.py", "def task(file): return ()\n")
    project("run", "src")
    project("gc")
    assert project("cat-object", changed["after"]).stdout == CHANGED["a.txt"]
    project("gc", "--keep", "1")
    assert project("cat-object", changed["after"], "--json", status=2).error["code"] == "unknown_id"
    assert project("cat-object", changed["before"]).stdout == TREE["a.txt"]


def test_project_task_can_change_any_file_of_the_batch(project: CommandLine) -> None:
    code = """
def task(project):
    for entry in project.files:
        if entry.path.endswith(b".txt"):
            yield project.source(entry).change(b"new\\n")
"""
    write(project.directory / "tools" / "rename.py", code)
    project("run", "src")
    assert proposed(project) == dict.fromkeys(["a.txt", "d.txt", "e.txt"], b"new\n")
    code = code.replace(
        "project.source(entry).change(b", "replace(project.source(entry).change(b'y'), before='0' * 64, content=b"
    )
    write(project.directory / "tools" / "rename.py", f"from msgspec.structs import replace\n{code}")
    project("run", "src", status=3)
    (row,) = project("errors", "--json").records
    assert "the record changes another content than that of the file a.txt" in row["evidence"]


def test_many_changes_do_not_make_results_unusable_for_later_batches(project: CommandLine) -> None:
    """New contents that fill several packs are written while a task runs. They are no inputs of the task."""
    code = "import random\ndef task(file):\n    yield file.change(random.Random(file.path).randbytes(3 << 20))\n"
    write(project.directory / "tools" / "rename.py", code)
    for number in range(8):
        write(project.directory / "src" / f"{number}.txt", f"{number}\n")
    run(project, "-j", "1")
    write(project.directory / "src" / "e.txt", "more\n")
    assert run(project) == 2


def test_changes_cannot_be_in_a_part_file(project: CommandLine) -> None:
    refused = project("run", "src", "--part", "1/2", "--json", status=2).error
    assert refused["message"] == "the task rename may propose changes of files, which part files do not contain"
    assert refused["hint"] == "run without --part, or with a pipeline without rename"
    hidden = RENAME.replace("file.change", "getattr(file, 'chan' + 'ge')")
    write(project.directory / "tools" / "rename.py", hidden)
    refused = project("run", "src", "--part", "1/1", "--json", status=2).error
    assert refused["message"].startswith("the results of rename cannot be in a part file: syntax trees or changes")
    assert list(project.directory.glob("*.cbpart")) == []


def test_project_task_that_changes_files_is_executed_after_the_parts(project: CommandLine) -> None:
    code = "def task(project):\n    yield project.source(project.files[0]).change(b'new')\n"
    write(project.directory / "tools" / "rename.py", code)
    project("run", "src", "--part", "1/1", "--pipeline", "small")
    (part,) = project.directory.glob("*.cbpart")
    project("join", part.name, "src", "--pipeline", "small")
    assert proposed(project) == {"a.txt": b"new"}


def test_task_commands_show_changes(project: CommandLine) -> None:
    tried = project("task", "try", "rename", "src/a.txt").lines
    assert tried[0] == "src/a.txt: change +1 -1 lines"
    assert tried[1].startswith("diff --git ")
    assert project("task", "try", "rename", "src/e.txt").lines == []
    assert project("task", "test", "rename", "src").lines == ["rename: 5 files, 4 records, identical"]
    refused = project("task", "new", "x", "--change", "--command", "mypy", "--json", status=2)
    assert refused.error["message"] == "--change cannot be used with --command"


def test_generated_transformation_ignores_its_own_files(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.txt", "to frobnicate\n")
    codebatch("task", "new", "my-change", "--change")
    assert codebatch("task", "try", "my-change", "a.txt").lines[-1] == "+to adjust"
    for path in ("tools/my_change.py", "tools/test_my_change.py"):
        assert "has no records" in codebatch("task", "try", "my-change", path).notes


def test_test_of_the_generated_transformation_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scaffold_task(tmp_path, "words", CHANGE_EXAMPLE)
    module: dict[str, object] = {}
    exec(Path(made.test).read_text(), module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "worked").mkdir()
    test = module["test_words_replaces_the_word"]
    assert callable(test)
    test(tmp_path / "worked")


def test_task_tests_return_the_changed_contents(tmp_path: Path) -> None:
    task = write(tmp_path / "rename.py", RENAME)
    (tmp_path / "worked").mkdir()
    records = run_task(tmp_path / "worked", f"{task}:task", TREE)
    assert [type(record).__name__ for record in records] == ["FileChange"] * len(CHANGED)
    assert changed_files(tmp_path / "worked", records) == CHANGED


def test_branch_is_based_on_the_commit_of_the_run(project: CommandLine) -> None:
    project.shell("cd src; rm -rf .git; chmod 755 c.sh; git init -q -b main .; git add -A; git config user.name n")
    project.shell("cd src; git config user.email n@n; git commit -qm m")
    run(project)
    project("apply", "--branch", "renamed")
    for name, content in CHANGED.items():
        shown = project.shell(f"git -C src show renamed:{name}", status=128 if content is None else 0).stdout
        assert shown == (content or b"")
    parent, main = project.shell("cd src; git status --porcelain; git rev-parse renamed^ main").lines
    assert parent == main
    project("apply")
    assert project.shell("git -C src diff --exit-code --stat renamed").lines == []
