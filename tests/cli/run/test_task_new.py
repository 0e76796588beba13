"""`task new` generates a working task; `task try` prints the records of one file, or the exception that was raised."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.errors import InvalidInput
from codebatch.model.record import Diagnostic
from codebatch.operations.project.scaffolding import scaffold_task
from codebatch.operations.project.task_example import FINDING_EXAMPLE
from codebatch.operations.queries.failure_evidence import group_equal_failures, parse_traceback
from codebatch.query.fields import JsonRecord
from codebatch_workers.api import SourceFile
from codebatch_workers.runtime.record_validation import validate_records, with_default_names
from tests.support.command_line import CommandLine, set_apart, write


@pytest.mark.slow
def test_generated_task_works_and_can_be_tried_on_a_file(codebatch: CommandLine) -> None:
    write(codebatch.directory / "src" / "a b.txt", "one\nto frobnicate\n")
    write(codebatch.directory / "src" / "c.txt", "frobnicate\n")
    created = codebatch("task", "new", "my-words", "--json").json
    assert Path(created["file"]).name == "my_words.py"
    assert (codebatch.directory / "codebatch.toml").read_text().endswith('python = "tools/my_words.py:task"\n')
    before = sorted(codebatch.directory.iterdir())
    line = "src/a b.txt:2:4: warning my-words `frobnicate` is here [my-words]"
    assert codebatch("task", "try", "my-words", "src/a b.txt").lines == [line]
    assert "has no records for codebatch.toml" in codebatch("task", "try", "my-words", "codebatch.toml").notes
    assert sorted(codebatch.directory.iterdir()) == before
    code = codebatch.directory / "tools" / "my_words.py"
    code.write_text(
        code.read_text().replace("            yield", "            raise ValueError(file.path)\n            yield")
    )
    ended = codebatch("task", "try", "my-words", "src/a b.txt", status=1)
    assert ended.lines[:2] == ["my-words failed: exception", "  ValueError: b'src/a b.txt'"]
    assert "my_words.py" in ended.lines[2]
    answer = codebatch("task", "try", "my-words", "src/a b.txt", "--json", status=1).json
    assert (answer["records"], answer["reason"]) == ([], "exception")
    set_apart(codebatch, "src")
    codebatch("run", "src", status=3)
    assert [row["path"] for row in codebatch("errors", "--json").records] == ["a b.txt", "c.txt"]
    first, *_, last = codebatch("errors").lines
    assert first == "a b.txt: my-words failed: exception, and in 1 other file"
    assert last == "    ValueError: b'a b.txt'"


COMMANDS = """
[tasks.fails]
command = ["sh", "-c", "cat settings.txt >&2; exit 4", "sh", "{file}"]
match = ["*.txt", "!settings.txt"]
config_files = ["settings.txt"]
records = "gcc"
version = false

[tasks.quiet]
command = ["sh", "-c", "echo $1:3: other line; echo other.txt:1: other file", "sh", "{file}"]
match = ["*.txt"]
records = "gcc"
version = false

[tasks.project]
command = ["sh", "-c", "cat */*.txt; echo src/a.txt:1: here"]
match = ["a.txt"]
scope = "project"
records = "gcc"
version = false
"""


@pytest.mark.slow
def test_task_that_calls_a_program_can_be_tried_on_a_file(codebatch: CommandLine) -> None:
    for name, text in (("a.txt", "one\n"), ("b.txt", "src/a.txt:1: from b\n"), ("c.py", "")):
        write(codebatch.directory / "src" / name, text)
    write(codebatch.directory / "settings.txt", "cannot read it\n")
    write(codebatch.directory / "codebatch.toml", COMMANDS)
    failed = codebatch("task", "try", "fails", "src/a.txt", status=1)
    assert failed.lines == ["fails failed: exception", "  cannot read it", "  sh: it ended with status 4"]
    quiet = codebatch("task", "try", "quiet", "src/a.txt")
    assert quiet.notes.splitlines() == [
        "2 findings of quiet left out: not at a place in a file of the call, such as other.txt:1",
        "quiet has no records for src/a.txt: its program was called, and reported nothing in this file",
    ]
    assert codebatch("task", "try", "quiet", "src/a.txt", "--json").json["records"] == []
    unmatched = codebatch("task", "try", "quiet", "src/c.py", status=3)
    assert (
        "was not called: src/c.py does not match the settings `match` and `class` of [tasks.quiet]" in unmatched.notes
    )
    project = [f"src/a.txt:1:1: warning project {text} [project]" for text in ("from b", "here")]
    assert codebatch("task", "try", "project", "src/a.txt").lines == project


@pytest.mark.slow
def test_recipe_is_written_to_the_configuration(codebatch: CommandLine) -> None:
    created = codebatch("task", "new", "shell", "--command", "shellcheck", "--json").json
    assert (created["name"], created["file"], created["test"]) == ("shell", "", "")
    assert (codebatch.directory / "codebatch.toml").read_text() == created["text"]
    shown = codebatch("task", "new", "types", "--command", "mypy")
    assert shown.lines[0] == f"{codebatch.directory / 'codebatch.toml'}:"
    assert "try it on a file with: codebatch task try types FILE" in shown.notes
    refused = codebatch("task", "new", "x", "--command", "mypi", "--json", status=2)
    assert refused.error["hint"] == "did you mean 'mypy'?"


def test_generated_test_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scaffold_task(tmp_path, "words", FINDING_EXAMPLE)
    module: dict[str, object] = {}
    exec(Path(made.test).read_text(), module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "worked").mkdir()
    test = module["test_words_finds_the_word"]
    assert callable(test)
    test(tmp_path / "worked")


@pytest.mark.parametrize("name", ["../x", 'a"b', "a\nb", "", "A", "lint", "x" * 65])
def test_invalid_task_name_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        scaffold_task(tmp_path, name, FINDING_EXAMPLE)
    assert list(tmp_path.iterdir()) == []


def test_task_new_does_not_overwrite_existing_files(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    test = tmp_path / "tests" / "test_words.py"
    test.write_text("mine")
    with pytest.raises(InvalidInput, match="already exists"):
        scaffold_task(tmp_path, "words", FINDING_EXAMPLE)
    assert (test.read_text(), (tmp_path / "tools").exists()) == ("mine", False)
    test.unlink()
    (tmp_path / "codebatch.toml").write_text("tasks = {}\n")
    with pytest.raises(InvalidInput, match=r"cannot add \[tasks\.words\]"):
        scaffold_task(tmp_path, "words", FINDING_EXAMPLE)
    assert (list((tmp_path / "tests").iterdir()), (tmp_path / "tools").exists()) == ([], False)
    (tmp_path / "codebatch.toml").unlink()
    (tmp_path / "tools").symlink_to("/tmp")
    with pytest.raises(InvalidInput, match="is outside the project"):
        scaffold_task(tmp_path, "words", FINDING_EXAMPLE)


def test_reported_finding_has_location_and_task_name_by_default() -> None:
    file = SourceFile(b"a.txt", "one\né two\n".encode(), executable=False, contexts={})
    record = with_default_names(validate_records([file.report(2, "no")], file)[0], "words")
    place = {"line": 2, "column": 1, "end_line": 2, "end_column": 6}
    whole = {"severity": "warning", "code": "words", "message": "no", "tool": "words"}
    assert record == Diagnostic(path="a.txt", **place, **whole)  # type: ignore[arg-type]
    other = with_default_names(file.report(2, "no", column=3, code="two", severity="error"), "words")
    assert isinstance(other, Diagnostic)
    assert (other.column, other.code, other.severity, other.tool) == (3, "two", "error", "words")
    assert SourceFile(b"b", b"", executable=False, contexts={}).report(1, "empty").line == 1
    for line, column in ((0, 1), (3, 1), (2, 0), (2, 7)):
        with pytest.raises(ValueError, match="the finding is at"):
            file.report(line, "no", column=column)


TRACE = """Traceback (most recent call last):
  File "/x/codebatch_workers/runtime/own.py", line 1, in _call
    f()
    ^^^
  File "/p/tools/a.py", line 3, in task
    raise ValueError("one")
ValueError: one
two
"""


def test_traceback_is_split_into_exception_and_frames() -> None:
    raised = parse_traceback(TRACE)
    assert raised.exception_lines == ("ValueError: one", "two")
    assert raised.frames == ('  File "/p/tools/a.py", line 3, in task', '    raise ValueError("one")')
    assert parse_traceback("killed\n").exception_lines == ("killed",)
    assert parse_traceback("") == ((), ())


def test_failures_are_grouped_by_location_and_exception_type() -> None:
    def failure(path: str, evidence: str) -> JsonRecord:
        return {"path": path, "task": "words", "reason": "exception", "evidence": evidence}

    rows = [
        failure("a", TRACE),
        failure("b", TRACE.replace("ValueError: one", "ValueError: other")),
        failure("c", TRACE.replace("line 3", "line 4")),
        failure("d", TRACE.replace("ValueError: one", "KeyError: one")),
    ]
    assert [(row["path"], count) for row, count in group_equal_failures(rows)] == [("a", 2), ("c", 1), ("d", 1)]
