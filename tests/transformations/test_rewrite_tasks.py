"""Tasks that consist of rewrites, from the configuration to the applied changes, with real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, set_apart, write

SETTINGS = """
[[tasks.modern.rewrites]]
lang = "python"
pattern = "old($X, $$$REST)"
rewrite = "new($X, $$$REST)"
bad = "old(1)\\n"
good = "new(1)\\n"

[[tasks.modern.rewrites]]
lang = "javascript"
pattern = "var $X = $Y;"
rewrite = "const $X = $Y;"
bad = "var a = 1;"
good = "const a = 1;"
"""


@pytest.fixture
def project(codebatch: CommandLine) -> CommandLine:
    """A project whose task `modern` rewrites two of three files."""
    write(codebatch.directory / "src" / "a.py", b"old(1, old(2))\r\n")
    write(codebatch.directory / "src" / "b.js", b"var x = old(1);\n")
    write(codebatch.directory / "src" / "c.py", b"new(1)\n")
    write(codebatch.directory / "codebatch.toml", SETTINGS)
    set_apart(codebatch, "src")
    return codebatch


def contents(root: Path) -> list[bytes]:
    return [(root / "src" / name).read_bytes() for name in ("a.py", "b.js", "c.py")]


def test_rewrites_are_proposed_applied_and_then_propose_nothing(project: CommandLine) -> None:
    ended = project("run", "src")
    assert "Proposed changes (2): codebatch changes" in ended.lines
    assert project("apply").lines == ["written  a.py", "written  b.js", "2 files written"]
    assert contents(project.directory) == [b"new(1, new(2))\r\n", b"const x = old(1);\n", b"new(1)\n"]
    project("run", "src")
    assert project("changes").notes == "no changes\n"


def test_rewrites_include_the_variants_of_their_language(codebatch: CommandLine) -> None:
    settings = SETTINGS.replace('"python"', '"typescript"')
    rewrite = '\n[[tasks.modern.rewrites]]\nlang = "typescript"\npattern = "<A>$X"\nrewrite = "$X as A"\n'
    write(codebatch.directory / "codebatch.toml", settings + rewrite + 'bad = "<A>b;"\ngood = "b as A;"\n')
    write(codebatch.directory / "a.ts", "old(1);\n<A>c;\n")
    write(codebatch.directory / "b.tsx", "old(<b/>);\n")
    codebatch("run", ".", "--quiet")
    codebatch("apply")
    contents = [(codebatch.directory / name).read_text() for name in ("a.ts", "b.tsx")]
    assert contents == ["new(1);\nc as A;\n", "new(<b/>);\n"]


def test_new_task_with_a_rewrite_works(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "frobnicate(1, 2)\n")
    created = codebatch("task", "new", "modern", "--rewrite")
    assert (
        created.lines[1] == "  # $X is one syntax node, $$$ARGS any number of nodes. `bad` must become exactly `good`."
    )
    assert codebatch("task", "try", "modern", "a.py").lines[-1] == "+adjust(1, 2)"
    assert "already exists" in codebatch("task", "new", "modern", "--rewrite", status=2).notes
    for other in ("--change", "--command=mypy"):
        notes = codebatch("task", "new", "x", "--rewrite", other, status=2).notes
        assert f"--rewrite cannot be used with {other.partition('=')[0]}" in notes


def test_key_covers_the_table(project: CommandLine) -> None:
    project("run", "src")
    write(project.directory / "src" / "d.py", "x = 1\n")
    again = project("run", "src", "--json").json
    assert again["executed"] < again["reused"]
    write(project.directory / "codebatch.toml", SETTINGS.replace("new(", "fresh("))
    changed = project("run", "src", "--json").json
    assert changed["executed"] == len(["a.py", "b.js", "c.py", "d.py"])
    assert b"+fresh(1, fresh(2))" in project("changes", "--patch").stdout


def test_task_commands_and_pipelines_know_the_task(project: CommandLine) -> None:
    tried = project("task", "try", "modern", "src/a.py").lines
    assert tried[0] == "src/a.py: change +1 -1 lines"
    assert "+new(1, new(2))" in tried[-1]
    assert project("task", "test", "modern", "src").lines == ["modern: 3 files, 2 records, identical"]
    full = next(row for row in project("pipelines", "--json").json if row["name"] == "full")
    assert full["tasks"][-1] == "modern"
    assert "modern" in project("run", "src", "--dry-run").text
    refused = project("run", "src", "--part", "1/2", "--json", status=2).error
    assert refused["message"] == "the task modern may propose changes of files, which part files do not contain"
    assert project("run", "src", "--no-commands", "--json").json["success"]
    assert len(project("changes", "modern", "--json").records) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('good = "new(1)\\n"', 'good = "new(2)\\n"', "rewrite 1: `bad` does not become `good`, but 'new(1)\\n'"),
        ('bad = "var a = 1;"', 'bad = "let a = 1;"', "rewrite 2: the pattern does not match in `bad`"),
        ('bad = "var a = 1;"\n', "", "Object missing required field `bad`"),
        ('"new($X, $$$REST)"', '"new($Y)"', "rewrite 1: `$Y` in the rewrite has no value"),
        ('"new($X, $$$REST)"', '"old(f($X))"', "rewrite 1: `bad` does not become `good`"),
        ('lang = "python"', 'lang = "pyton"', "rewrite 1: no grammar for 'pyton'; did you mean 'python'?"),
        ('lang = "python"', 'language = "python"', "unknown field `language`"),
        ("[[tasks.modern.rewrites]]", '[tasks.modern]\nextra = 1\n[[tasks.modern.rewrites]]', "has no setting 'extra'"),
        (SETTINGS, "[tasks.modern]\nrewrites = []\n", "`rewrites` must have at least one table"),
        ("tasks.modern", "tasks.Modern", "'Modern' is not a valid task name"),
        ("tasks.modern", "tasks.lint", "already provides a task 'lint'"),
    ],
)  # fmt: skip
def test_invalid_table_is_an_error_before_anything_runs(project: CommandLine, old: str, new: str, message: str) -> None:
    is_once = old == "[[tasks.modern.rewrites]]" or old == SETTINGS
    settings = SETTINGS.replace(old, new, 1 if is_once else -1)
    write(project.directory / "codebatch.toml", settings)
    for command in (["run", "src"], ["task", "try", "modern", "src/a.py"]):
        error = project(*command, "--json", status=2).error
        if command[0] == "run":
            assert message in error["message"] + str(error.get("hint"))


def test_example_that_is_rewritten_again_is_an_error(project: CommandLine) -> None:
    settings = SETTINGS.replace('"new($X, $$$REST)"', '"old($X, 0)"').replace('"new(1)\\n"', '"old(1, 0)\\n"')
    write(project.directory / "codebatch.toml", settings.replace('"old($X, $$$REST)"', '"old($X)"'))
    assert project("run", "src", "--json").json["success"]
    write(project.directory / "codebatch.toml", settings.replace('"old($X, 0)"', '"old($X, $$$REST, 0)"'))
    message = project("run", "src", "--json", status=2).error["message"]
    assert message.endswith("rewrite 1: `good` is rewritten again, into 'old(1, 0, 0)\\n'")


PLACES = """
[[tasks.places.rewrites]]
lang = "python"
pattern = "equal($A, $B)"
rewrite = "assert $A == $B"
bad = "equal(a, b)"
good = "assert a == b"

[[tasks.places.rewrites]]
lang = "python"
pattern = "tr($X)"
rewrite = 'tr($X, "app")'
bad = "tr(1)"
good = 'tr(1, "app")'

[[tasks.places.rewrites]]
lang = "javascript"
pattern = "setup($X)"
rewrite = "begin($X);\\nfinish($X)"
bad = "setup(1);"
good = "begin(1);\\nfinish(1);"

[[tasks.places.rewrites]]
lang = "yaml"
pattern = "a: $X"
rewrite = "b: $X"
bad = "a: 1"
good = "b: 1"
"""
FILES = {
    "a.py": ("equal(*a, b)\nequal(a, b)\n", "equal(*a, b)\nassert a == b\n", "the new code would be a syntax error"),
    "b.py": (
        'x = f"{tr(1)}"\ntr(2)\n',
        'x = f"{tr(1)}"\ntr(2, "app")\n',
        "the string around the match must not contain its own quotation mark there before Python 3.12",
    ),
    "c.js": (
        "if (a) setup(1);\nsetup(2);\n",
        "if (a) setup(1);\nbegin(2);\nfinish(2);\n",
        "the new code is several statements where one statement or expression stands",
    ),
    "d.yaml": ("a:\n  - 1\n---\na: 5\n", "a:\n  - 1\n---\nb: 5\n", "the new code would be a syntax error"),
}


def test_only_matches_in_whose_place_the_new_code_fits_are_rewritten(codebatch: CommandLine) -> None:
    for name, (before, _, _) in FILES.items():
        write(codebatch.directory / "src" / name, before)
    write(codebatch.directory / "src/new/pyproject.toml", '[project]\nname = "p"\nrequires-python = ">=3.12"\n')
    write(codebatch.directory / "src/new/b.py", FILES["b.py"][0])
    write(codebatch.directory / "codebatch.toml", PLACES)
    set_apart(codebatch, "src")
    codebatch("run", "src")
    rows = codebatch("query", "diagnostics", "--code", "not-rewritten", "--json").records
    assert [(row["path"], row["line"], row["message"].removeprefix("a pattern matches, but: ")) for row in rows] == [
        (name, 1, reason) for name, (_, _, reason) in FILES.items()
    ]
    codebatch("apply")
    for name, (_, after, _) in FILES.items():
        assert (codebatch.directory / "src" / name).read_text() == after
    assert (codebatch.directory / "src/new/b.py").read_text() == 'x = f"{tr(1, "app")}"\ntr(2, "app")\n'
    codebatch("run", "src")
    assert codebatch("query", "diagnostics", "--code", "syntax-error", "--json").records == []
    note = f"{len(FILES)} matches not rewritten: codebatch findings --code not-rewritten"
    assert codebatch("changes").notes == f"{note}\nno changes\n"
    assert note in codebatch("apply", "--json").notes
    assert note not in codebatch("changes", "--path", "new").notes
