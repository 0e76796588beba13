"""`references` lists the locations of a name in the files of a batch."""

from __future__ import annotations

import shutil

from tests.support.command_line import CommandLine, write


def test_references_have_roles_and_come_from_the_snapshot(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "def go(): pass\n")
    write(codebatch.directory / "b.py", "from a import go\nclass C:\n    def m(self): go()\n")
    write(codebatch.directory / "\udcff.py", "go()\n")
    codebatch("run", ".", "--pipeline", "parse", "--quiet")
    write(codebatch.directory / "a.py", "")  # The batch is searched, not the tree. A note reports the difference.
    assert codebatch("references", "go").lines == [
        "a.py:1:5: definition in go",
        "b.py:1:15: import",
        "b.py:3:18: call in C.m",
        "\\xff.py:1:1: call",
    ]
    place = {"line": 3, "column": 18, "end_line": 3, "end_column": 20}
    assert codebatch("references", "go", "--role", "call", "--path", "b", "--json").records == [
        {"path": "b.py", "name": "go", **place, "role": "call", "scope": "C.m"}
    ]
    unknown = codebatch("references", "gone", "--json", status=2).error
    assert unknown["message"] == "the batch has no name 'gone'"
    assert unknown["hint"] == "files have changed since the batch was made; update it with: codebatch run"
    stale = codebatch("references", "go").notes
    for narrowed, note in (
        (("--path", "c"), "none: no references to go whose path contains 'c' in 0 files (all parsed)"),
        (
            ("--role", "call", "--path", "a"),
            "none: no references to go as call whose path contains 'a' in 1 file (all parsed)",
        ),
    ):
        assert codebatch("references", "go", *narrowed).notes.splitlines()[0] == note
    assert stale.startswith("results are out of date (a.py changed); ")
    assert codebatch("references", "a b", "--json", status=2).error["code"] == "invalid_input"


def test_references_are_the_same_with_and_without_an_index(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.c", "int f(void) { return go(1); }\n")
    write(codebatch.directory / "tree" / "b.c", "int go(int x) { return x; }\nint h(void) { return go(2); /* go */ }\n")
    write(codebatch.directory / "tree" / "c.c", "int f(void) { return go(1) + sizeof(go); }\n")
    codebatch("run", "tree", "-q")
    codebatch("index-build", "-q")
    answer = codebatch("references", "go", "--json", "--explain")
    assert "excluded by the index" in answer.notes
    shutil.rmtree(codebatch.directory / ".codebatch" / "indexes")
    assert codebatch("references", "go", "--json").stdout == answer.stdout
    assert [(row["path"], row["role"]) for row in answer.records] == [
        ("a.c", "call"), ("b.c", "definition"), ("b.c", "call"), ("c.c", "call"), ("c.c", "reference")
    ]  # fmt: skip


def test_note_on_partially_parsed_files_names_three_of_them(codebatch: CommandLine) -> None:
    for number, names in enumerate(("one three four", "three four", "three four", "four")):
        write(codebatch.directory / f"b{number}.py", f"def f(:\n    {names}\n")
    write(codebatch.directory / "a.py", "def one(): pass\ndef three(): pass\ndef four(): pass\n")
    codebatch("run", ".", "-q")
    for name, files in {
        "one": "b0.py is",
        "three": "b0.py, b1.py, b2.py are",
        "four": "b0.py, b1.py, b2.py and 1 more are",
    }.items():
        assert f"{files} partially parsed: " in codebatch("def", name).notes
