"""Tests of the gates that a worker checks: `parse`, `repeat` and `findings`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codebatch_workers.runtime.changes.gates import EVIDENCE_CHARACTERS_MAX, find_refusal
from codebatch_workers.syntax.edited_files import EditedFile
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.syntax_errors import SyntaxErrors
from tests.support.command_line import CommandLine, set_apart, write

KEY = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj"] * 4) + "\n-----END\n"


def source(content: str | bytes, path: str = "a.py") -> SourceFile:
    data = content.encode() if isinstance(content, str) else content
    return SourceFile(path.encode(), data, executable=False, contexts={})


def replacing(old: str, new: str) -> Callable[[SourceFile], Iterator[EditedFile]]:
    """Return a task that replaces a text."""

    def task(file: SourceFile) -> Iterator[EditedFile]:
        yield file.change(file.content.replace(old.encode(), new.encode()))

    return task


Refusal = Callable[[SourceFile, Callable[[SourceFile], Iterator[EditedFile]]], "tuple[str, str] | None"]


@pytest.fixture
def refusal(errors: SyntaxErrors) -> Refusal:
    """A function that returns the gate that refuses the change of a task, and its evidence."""

    def find(file: SourceFile, task: Callable[[SourceFile], Iterator[EditedFile]]) -> tuple[str, str] | None:
        (edited,) = task(file)
        found = find_refusal(file, edited, task, errors.find)
        return None if found is None else (found.gate, found.evidence)

    return find


@pytest.mark.parametrize(
    ("path", "old", "find", "replacement", "gate", "evidence"),
    [
        ("a.py", "x = 1\n", "1", "(1", "parse", "the new content has 1 syntax error, the first in line 2; the old one"),
        ("a.json", '{"a": 1}\n', "1", '"\x01"', "parse", "1 syntax error, the first in line 1; the old one has 0"),
        ("a.js", "f(1);\n", "1", "1, )) {", "parse", "the old one has 0"),
        (
            "a.py",
            "x = = 1\n\ny = old\n",
            "old",
            "= 1",
            "parse",
            "2 syntax errors, the first in line 1; the old one has 1",
        ),
        # Only the exact parser of Python finds these.
        (
            "a.py",
            "x = 1\nequal(*a, b)\n",
            "equal(*a, b)",
            "assert *a == b",
            "parse",
            "error, the first in line 2; the old",
        ),
        ("a.py", "x = 1\ny\n", "y", "return", "parse", "1 syntax error, the first in line 2; the old one has 0"),
        # The error begins before the change that causes it.
        (
            "a.yaml",
            "x: 1\ny: 2\na:\n  - 1\n",
            "a:\n  -",
            "b: -",
            "parse",
            "1 syntax error, the first in line 3; the old",
        ),
        ("a.py", "f(1)\n", "f(1)", "f(1, f(1))", "repeat", "changes the new content again: 1 line added, 1 removed"),
        ("a.txt", "a\n", "a\n", "a\na\n", "repeat", "changes the new content again: 2 lines added, 0 removed"),
        ("a.py", "x = 'key'\n", "key'", f"'''{KEY}'''", "findings", "new finding in line 1: warning private-key"),
        ("a.c", "// old\n", "old", "\u202e", "findings", "new finding in line 1: warning bidi-control bidirectional"),
    ],
)
def test_bad_change_is_refused(
    path: str, old: str, find: str, replacement: str, gate: str, evidence: str, refusal: Refusal
) -> None:
    refused = refusal(source(old, path), replacing(find, replacement))
    assert refused is not None
    assert refused[0] == gate
    assert evidence in refused[1]


@pytest.mark.parametrize(
    ("path", "old", "find", "replacement"),
    [
        ("a.py", "x = 1\n", "1", "2"),
        ("a.py", "x = (\nold\n", "old", "new"),
        ("a.py", "x = 'old'\n", "'old'", "t'{y}'"),
        ("a.unknown", "x ( old\n", "old", "}}"),
        ("a.js", "import a from 'a';\nold();\n", "old", "fresh"),
        ("a.js", "old(a);\n", "old(a)", "1; // codebatch: ignore-file \u202e"),
        ("a.py", "<<<<<<< a\n=======\n>>>>>>> b\nx = 'old'\n", "old", "new"),
        ("a.bin", "a\0old", "old", "new"),
        ("vendor/a.js", "// old\n", "old", "\u202e"),
    ],
)
def test_good_change_passes(path: str, old: str, find: str, replacement: str, refusal: Refusal) -> None:
    assert refusal(source(old, path), replacing(find, replacement)) is None


def test_each_finding_counts_once(refusal: Refusal) -> None:
    """A second finding with the message of an old one is new."""
    conflict = "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n"
    twice = refusal(source(f"{conflict}old\n", "a.txt"), replacing("old\n", conflict))
    assert twice == ("findings", "new finding in line 6: error merge-conflict merge conflict left in the file")
    moved = refusal(source(f"{conflict}old\n", "a.txt"), replacing(f"{conflict}old\n", f"\n\n{conflict}"))
    assert moved is None


def test_deletion_passes_although_the_task_would_fail_for_no_content(refusal: Refusal) -> None:
    def task(file: SourceFile) -> Iterator[EditedFile]:
        yield file.change(None)

    assert refusal(source("x = (\n"), task) is None


def test_second_application_that_deletes_or_fails_is_evidence(refusal: Refusal) -> None:
    def deleting(file: SourceFile) -> Iterator[EditedFile]:
        yield file.change(None if b"new" in file.content else b"new\n")

    assert refusal(source("old\n"), deleting) == (
        "repeat",
        "the task deletes the file if it is applied to the new content",
    )

    def failing(file: SourceFile) -> Iterator[EditedFile]:
        if b"new" in file.content:
            raise ValueError(f"{object()!r} " + "x" * EVIDENCE_CHARACTERS_MAX)
        yield file.change(b"new\n")

    refused = refusal(source("old\n"), failing)
    assert refused is not None
    assert refused[1].startswith("the task fails for the new content: ValueError: <object object at 0x…> xxx")
    assert len(refused[1]) == EVIDENCE_CHARACTERS_MAX


def test_gates_see_the_executable_bit_and_the_contexts(refusal: Refusal) -> None:
    seen: list[tuple[bool, str]] = []

    def task(file: SourceFile) -> Iterator[EditedFile]:
        seen.append((file.executable, file.language))
        yield file.change(b"x = 1\n", executable=True)

    contexts = {"attributes": b"language=python"}
    file = SourceFile(b"a", b"x = 2\n", executable=False, contexts=contexts)
    assert refusal(file, task) is None
    assert seen == [(False, "python"), (True, "python")]


TASK = """
def task(file):
    if file.path.endswith(b"bad.py"):
        yield file.change(file.content + b"(")
    elif file.path == b"gone.py":
        yield file.change(None)
    else:
        yield file.change(file.content.replace(b"old", b"new"))
"""


def test_refusals_are_stored_reused_and_counted(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path)
    for name in ("a", "bad", "gone"):
        write(tmp_path / "src" / f"{name}.py", "old = 1\n")
    write(tmp_path / "tools" / "edit.py", TASK)
    write(tmp_path / "codebatch.toml", "[tasks.edit]\npython = 'tools/edit.py:task'\n")
    set_apart(codebatch, "src")
    assert "Proposed changes (3, 1 refused): codebatch changes" in codebatch("run", "src").lines
    (row,) = codebatch("changes", "--refused", "--json").records
    assert (row["path"], row["refused"]["gate"]) == ("bad.py", "parse")
    write(tmp_path / "src" / "other.py", "x = 1\n")
    assert codebatch("run", "src", "--json").json["reused"] > 0
    assert codebatch("changes", "--refused", "--json").records == [row]
    tried = codebatch("task", "try", "edit", "src/bad.py").lines[0]
    assert tried.startswith("src/bad.py: change +1 -0 lines, refused by parse: the new content has 1 syntax error")
    assert codebatch("task", "test", "edit", "src").lines[-1].endswith("identical")
    assert [line.split()[1] for line in codebatch("apply").lines[:2]] == ["a.py", "gone.py"]
