"""Incomplete, stale and partial answers are marked as such (SPEC.md "Answers")."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from codebatch.cli.framework.answer_printing import AnswerScope
from codebatch.query.answers.summary import Summary
from tests.support.command_line import CommandLine, Ended, make_many, wait_until, write

FILES = 240


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A project with a complete batch, and a second batch that was interrupted after its first commits."""
    codebatch = CommandLine(tmp_path_factory.mktemp("interrupted"))
    make_many(codebatch.directory, FILES)
    write(codebatch.directory / "codebatch.toml", "[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n")
    codebatch("run", ".", "--quiet")
    write(codebatch.directory / "package0" / "module000.py", "import package1.module001\n")
    batches = codebatch.directory / ".codebatch" / "batches"
    (complete,) = batches.iterdir()

    def has_begun() -> bool:
        return any(batch != complete and any((batch / "outcomes").glob("*.r1")) for batch in batches.glob("batch-*"))

    process = codebatch.start("run", ".", "--jobs", "1")
    wait_until(has_begun, "the first commit is published")
    process.send_signal(signal.SIGINT)
    codebatch.finish(process, status=130)
    return codebatch


@pytest.mark.parametrize(
    "question",
    [
        ("errors",),
        ("summary",),
        ("top",),
        ("top", "--by", "path"),
        ("query", "outputs", "--kind", "symbol", "--name", "f1"),
        ("query", "diagnostics"),
        ("inspect", "package0/module000.py"),
        ("hotspots",),
        ("duplicates",),
        ("impact", "package1/module001.py"),
        ("graph",),
        ("graph", "--cycles"),
        ("graph", "--dot"),
        ("files",),
        ("findings",),
        ("def", "f1"),
        ("callers", "f1"),
        ("query", "stats"),
        ("sql", "select count(*) from symbol"),
        ("explain-miss",),
    ],
    ids=" ".join,
)
def test_every_answer_of_an_incomplete_batch_is_marked(interrupted: CommandLine, question: tuple[str, ...]) -> None:
    batch_id = interrupted("status", "--json").json["batch_id"]
    for quiet in ((), ("--quiet",)):
        ended = interrupted(*question, *quiet, status=3)
        (note,) = [line for line in ended.notes.splitlines() if line.startswith("incomplete: ")]
        assert note.endswith(f"; resume it with: codebatch resume --batch {batch_id}")
        assert re.match(rf"incomplete: \d+ of {FILES + 1} files done, batch {batch_id} is [0-9.]+% done ", note)
    answer = interrupted(*question, "--json", status=3).json
    assert answer["complete"] is False
    assert 0 <= answer["percent"] < 100
    assert answer["batch_id"] == batch_id
    documents = ("summary", "hotspots", "duplicates", "findings", "sql", "explain-miss")
    assert "records" in answer or question[0] in documents


def test_empty_answer_of_an_incomplete_batch_is_not_final(interrupted: CommandLine) -> None:
    rows = interrupted("hotspots", "--json", status=3).json["rows"]
    assert {row["dependents"] for row in rows} <= {None}, "dependents are known only at the end"
    assert "no errors so far (" in interrupted("errors", status=3).notes
    notes = interrupted("impact", "package1/module001.py", status=3).notes
    assert "no dependents of package1/module001.py so far (" in notes
    notes = interrupted("query", "symbols", "--name", "nope", status=3).notes
    assert re.search(r"^no (matching )?symbols( \(searched [0-9,]+\))? so far \(", notes, re.MULTILINE), (
        "the note must not give a number of files"
    )


def test_answers_without_outcomes_are_complete_in_an_incomplete_batch(interrupted: CommandLine) -> None:
    (use,) = interrupted("references", "module001", "--json").records
    assert use["path"] == "package0/module000.py"
    assert interrupted("errors", "--batch", "latest~1", "--json").records == []
    for described in (("status",), ("batch", "list"), ("tasks",)):
        assert "incomplete:" not in interrupted(*described).notes


def test_references_are_incomplete_if_content_is_missing(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q", "--pipeline", "parse")
    codebatch.shell("rm .codebatch/objects/*.pack")
    ended = codebatch("references", "x", "--json", status=3)
    assert (ended.json["complete"], ended.json["percent"], ended.json["records"]) == (False, 0.0, [])
    assert "incomplete: 1 file could not be read\n" in ended.notes


def test_failure_of_a_project_task_makes_the_answer_for_each_path_incomplete(codebatch: CommandLine) -> None:
    write(codebatch.directory / "whole.py", "def task(project):\n    raise ValueError\n")
    write(codebatch.directory / "codebatch.toml", '[tasks.whole]\npython = "whole.py:task"\n')
    codebatch("run", ".", "-q", status=3)
    for options in ((), ("--path", "whole.py")):
        ended = codebatch("findings", *options, "--json", status=3)
        assert ended.json["complete"] is False
        assert "(whole)" in ended.notes


def test_incomplete_batch_has_no_outputs_directory(interrupted: CommandLine) -> None:
    assert interrupted("batch", "show", "--outputs", "--json", status=3).error["code"] == "batch_incomplete"
    place = Path(interrupted("batch", "show", "--batch", "latest~1", "--outputs").text.removesuffix("\n"))
    assert place.is_absolute()
    assert list((place / "symbols").glob("000000-*.jsonl.zst"))
    assert interrupted("batch", "show", "--json").json["outputs"] is None


def test_complete_json_object_has_the_completeness_members(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    whole = {"complete": True, "percent": 100.0, "stale": False, "paths": []}
    summary = codebatch("summary", "--json").json
    assert whole.items() <= summary.items()
    assert summary.keys() == {"schema", *Summary.__struct_fields__, *AnswerScope.__struct_fields__}
    assert whole.items() <= codebatch("inspect", "a.py", "--json", "--explain").json.items()
    assert whole.items() <= codebatch("inspect", "a.py:1", "--json").json.items()
    assert {record["path"] for record in codebatch("inspect", "a.py", "--json").records} == {"a.py"}
    assert codebatch("errors", "--json").records == []


def test_query_for_records_that_no_task_produces_is_rejected(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "--pipeline", "parse", "-q")
    for question in (
        ("query", "outputs", "--kind", "symbol"),
        ("query", "outputs", "--name", "x"),
        ("inspect", "a.py", "--kinds", "edge"),
        ("impact", "a.py"),
        ("graph",),
    ):
        assert "full" in codebatch(*question, "--json", status=2).error["hint"]


def test_answers_of_the_only_executed_task_are_complete(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "--task", "parse", "-q")
    assert codebatch("query", "outputs", "--task", "parse", "--kind", "file", "--json").records[0]["path"] == "a.py"
    assert codebatch("query", "outputs", "--kind", "file", "--json").records[0]["path"] == "a.py", (
        "only parse returns these records"
    )
    assert codebatch("inspect", "a.py", "--kinds", "symbol", "--json", status=3).json["complete"] is False
    assert codebatch("errors", "--json", status=3).json["percent"] < 100


FAILING = """
def fails(file):
    if file.path == b"bad.py":
        raise ValueError("no")
    return []


def fails_too(project):
    raise ValueError("no")
"""


def test_answers_of_a_failed_task_are_incomplete(codebatch: CommandLine) -> None:
    """`errors` and queries for failures show the failure themselves. Other answers would hide it."""
    write(codebatch.directory / "tools" / "own.py", FAILING)
    own = '[tasks.own]\npython = "tools/own.py:fails"\n[tasks.all]\npython = "tools/own.py:fails_too"\n'
    write(codebatch.directory / "codebatch.toml", own)
    write(codebatch.directory / "bad.py", "import good\n")
    write(codebatch.directory / "good.py", "x = 1\n")
    codebatch("run", ".", "-q", status=3)
    assert codebatch("query", "diagnostics", "--task", "lint", "--json").records[0]["path"] == "bad.py"
    wrapped = codebatch("query", "diagnostics", "--task", "own", "--json", status=3)
    assert (wrapped.json["complete"], wrapped.json["records"]) == (False, [])
    assert wrapped.json["percent"] < 100
    assert "1 of 4 results" in wrapped.notes
    assert "(own); see: codebatch errors --batch" in wrapped.notes
    assert codebatch("query", "outputs", "--task", "own", "--kind", "failure", "--json").records[0]["path"] == "bad.py"
    assert len(codebatch("errors", "--json").records) == 2
    assert codebatch("query", "diagnostics", "--task", "own", "--path", "good", "--json").records == []
    assert codebatch("inspect", "good.py", "--json", status=3).json["complete"] is False, (
        "`all` has no records for any file"
    )
    assert codebatch("inspect", "good.py", "--kinds", "edge", "--json", status=3).records == []
    assert codebatch("impact", "good.py", "--json").records[0]["path"] == "bad.py"


# --- Changed trees


def stale_notes(ended: Ended) -> list[str]:
    return [line for line in ended.notes.splitlines() if line.startswith("results are out of date ")]


@pytest.fixture
def tree(codebatch: CommandLine) -> Path:
    """A tree of three files that was analysed."""
    root = codebatch.directory / "tree"
    for name in ("a.py", "src/b.py", "src/c.py"):
        write(root / name, "x = 1\n")
    write(root / ".gitignore", "*.log\nbuild/\n")
    write(root / ".codebatchignore", "vendor/\n")
    codebatch("run", "tree", "-q", "--exclude", "*.tmp", "--pipeline", "parse")
    return root


def test_changed_tree_is_reported_as_stale(codebatch: CommandLine, tree: Path) -> None:
    for question in (("errors",), ("summary",), ("inspect", "a.py"), ("references", "x"), ("files",)):
        assert stale_notes(codebatch(*question)) == []
    write(tree / "a.py", "def broken(:\n")
    again = f"codebatch run {tree} --pipeline parse --exclude '*.tmp'"
    for question in (("errors",), ("summary",), ("inspect", "a.py"), ("references", "x"), ("files",)):
        notes = stale_notes(codebatch(*question))
        assert notes == [f"results are out of date (a.py changed); update them with: {again}"]
    assert codebatch("summary", "--json").json["stale"] is True
    quiet = codebatch("errors", "-q", "--json")
    assert (quiet.json["stale"], len(stale_notes(quiet))) == (True, 1), "`-q` must not hide the note"
    write(codebatch.directory / "codebatch.toml", "jobs = 'none'")
    assert len(stale_notes(codebatch("errors"))) == 1, "the configuration is not needed for this answer"
    (codebatch.directory / "codebatch.toml").unlink()
    codebatch.shell(f"{again} -q")
    assert stale_notes(codebatch("errors")) == []
    assert "syntax-error" in codebatch("errors").text


def test_stale_note_appears_if_the_current_directory_was_removed(codebatch: CommandLine, tree: Path) -> None:
    write(tree / "a.py", "def broken(:\n")
    batch = codebatch("batch", "show", "--json").json["batch_id"]
    command = f"codebatch errors --store {tree.parent}/.codebatch --batch {batch}"
    ended = codebatch.shell(f"mkdir gone; cd gone; rmdir ../gone; {command}")
    assert len(stale_notes(ended)) == 1


CHANGES = {
    "gone": "rm src/b.py",
    "new": "echo >src/n.py",
    "new below": "mkdir -p new/below && echo >new/below/n.py",
    "same size": "echo 'x = 2' >a.py",
    "executable": "chmod +x a.py",
    "a directory": "rm a.py && mkdir a.py",
    "a link": "rm a.py && ln -s src/b.py a.py",
    "a rule": "echo c.py >src/.codebatchignore",
    "a rule less": "rm .gitignore",
    "all gone": "rm -r src",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_kind_of_change_makes_a_batch_stale(codebatch: CommandLine, tree: Path, change: str) -> None:
    assert codebatch("summary", "--json").json["stale"] is False
    codebatch.shell(f"cd {tree} && {change}")
    assert codebatch("summary", "--json").json["stale"] is True


def test_excluded_or_identical_files_do_not_make_a_batch_stale(codebatch: CommandLine, tree: Path) -> None:
    write(tree / "run.log", "x")
    write(tree / "src" / "build" / "made.py", "x = 1\n")
    write(tree / "vendor" / "v.py", "x = 1\n")
    write(tree / "src" / "d.tmp", "x = 1\n")
    write(tree / "deep" / "empty.log", "x = 1\n")
    os.utime(tree / "a.py", ns=(1, 1))
    write(tree / "src" / "b.py", (tree / "src" / "b.py").read_bytes())
    answer = codebatch("summary", "--json")
    assert answer.json["stale"] is False
    write(tree / "deep" / "not.py", "x = 1\n")
    assert codebatch("summary", "--json").json["stale"] is True


def test_gitignore_of_the_repository_root_applies_to_staleness(codebatch: CommandLine) -> None:
    top = codebatch.directory
    write(top / ".gitignore", "*.log\n.*\n!.gitignore\n")
    write(top / "sub" / "a.py", "x = 1\n")
    codebatch.shell("git init -q .")
    codebatch("run", ".", "-q")
    write(top / "sub" / "a.log", "x = 1\n")
    assert codebatch("summary", "--json").json["stale"] is False
    write(top / "sub" / "b.py", "x = 1\n")
    assert codebatch("summary", "--json").json["stale"] is True


def test_staleness_is_unknown_without_the_tree_or_the_cache(codebatch: CommandLine, tree: Path) -> None:
    tree.rename(tree.with_name("elsewhere"))
    ended = codebatch("summary", "--json")
    assert (ended.json["stale"], stale_notes(ended)) == (None, [])
    tree.with_name("elsewhere").rename(tree)
    write(tree / "a.py", "y = 1\n")
    codebatch.shell("rm -r .codebatch/cache")
    assert codebatch("summary", "--json").json["stale"] is None


def test_batch_of_a_snapshot_becomes_stale(codebatch: CommandLine, tree: Path) -> None:
    codebatch("snapshot", "tree")
    codebatch("batch", "init", "--pipeline", "parse")
    codebatch("run", "--batch", "latest", "-q")
    assert codebatch("summary", "--json").json["stale"] is False
    write(tree / "a.py", "y = 1\n")
    (note,) = stale_notes(codebatch("errors"))
    assert note.endswith(f"update them with: codebatch run {tree} --pipeline parse")


def test_staleness_of_a_superseded_batch_is_unknown(codebatch: CommandLine, tree: Path) -> None:
    first = codebatch("status", "--json").json["batch_id"]
    write(tree / "a.py", "y = 1\n")
    assert codebatch("summary", "--batch", first, "--json").json["stale"] is True
    codebatch("run", "tree", "-q", "--exclude", "*.tmp", "--pipeline", "parse")
    assert codebatch("summary", "--batch", first, "--json").json["stale"] is None
    assert codebatch("summary", "--json").json["stale"] is False


def test_later_snapshot_does_not_hide_a_change(codebatch: CommandLine, tree: Path) -> None:
    first = codebatch("status", "--json").json["batch_id"]
    write(tree / "a.py", "y = 1\n")
    codebatch("snapshot", "tree", "--exclude", "*.tmp")
    (note,) = stale_notes(codebatch("errors"))
    assert note.startswith("results are out of date (files changed); update them with: codebatch run ")
    codebatch("run", "tree", "-q", "--exclude", "*.tmp", "--pipeline", "parse")
    write(tree / "a.py", "x = 1\n")
    codebatch("snapshot", "tree", "--exclude", "*.tmp")
    (note,) = stale_notes(codebatch("errors"))
    assert (
        note == f"results are out of date (another batch has the current files); query that batch with --batch {first}"
    )
    codebatch("run", "tree", "--exclude", "*.tmp", "--pipeline", "parse")
    assert stale_notes(codebatch("errors")) == []


def test_reverted_change_does_not_make_a_batch_stale(codebatch: CommandLine, tree: Path) -> None:
    write(tree / "a.py", "y = 1\n")
    write(tree / "src" / "b.py", "y = 1\n")
    codebatch("snapshot", "tree", "--exclude", "*.tmp")
    write(tree / "a.py", "x = 1\n")
    (note,) = stale_notes(codebatch("errors"))
    assert note.startswith("results are out of date (src/b.py changed); ")
    write(tree / "src" / "b.py", "x = 1\n")
    assert codebatch("summary", "--json").json["stale"] is False
    write(tree / "src" / "b.py", "z = 1\n")
    assert codebatch("summary", "--json").json["stale"] is True
    write(tree / "src" / "b.py", "x = 1\n")
    write(tree / "new.py", "x = 1\n")
    (note,) = stale_notes(codebatch("errors"))
    assert note.startswith("results are out of date (new.py changed); ")


@pytest.mark.parametrize("is_repository", [False, True])
def test_staleness_is_unknown_after_an_excluded_gitignore_changed(codebatch: CommandLine, is_repository: bool) -> None:
    for path in ("a.py", "b.py"):
        write(codebatch.directory / path, "x = 1\n")
    ignore = write(codebatch.directory / ".gitignore", "c.py\n")
    if is_repository:
        codebatch.shell("git init -q")
    run = ("run", "-q", "--include", "*.py", "--pipeline", "parse")
    codebatch(*run)
    assert codebatch("summary", "--json").json["stale"] is False
    write(ignore, "b.py\n")
    assert codebatch("summary", "--json").json["stale"] is None
    codebatch(*run)
    assert codebatch("summary", "--json").json["stale"] is False
    assert [record["path"] for record in codebatch("files", "--json").records] == ["a.py"]
    ignore.unlink()
    assert codebatch("summary", "--json").json["stale"] is True, "b.py appears in a directory that changed"


def test_removed_nested_repository_makes_a_batch_stale(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    write(codebatch.directory / "tree" / "inner" / "b.py", "x = 1\n")
    codebatch.shell("git init -q tree/inner")
    codebatch("run", "tree", "-q", "--pipeline", "parse")
    assert codebatch("summary", "--json").json["stale"] is False
    codebatch.shell("rm -r tree/inner")
    assert codebatch("summary", "--json").json["stale"] is True
