"""The first screen of `run`: the main findings of a tree on one screen, and commands that show more."""

from __future__ import annotations

import pytest

from tests.cli.terminal import on_a_terminal
from tests.support.command_line import CommandLine, write

HARD = "def hard(a, b, c):\n" + "".join(
    f"    if a > {n}:\n        for x in b:\n            if x and c:\n                print(x, {n})\n" for n in range(3)
)
COPIED = "def copied(rows):\n    total = 0\n" + "".join(f"    total += rows[{n}] * {n + 7}\n" for n in range(20))
FOUND = {
    "app/__init__.py": "",
    "app/core.py": f"from app import tools\n\n\n{HARD}\n\ndef wrong():\n\treturn tools, undefined_name  # é\n",
    "app/tools.py": f"from app import core\n\n\n{COPIED}\n    return total, core\n",
    "app/more.py": f"from app import core\n\n\n{COPIED}\n    return core, total\n",
    "app/catalog.js": "{% if a %}\nvar x = 1;\n{% endif %}\n",
    "native/m.c": "int f(void) { x = va_arg(ap, long long); return 0; }\n",
    "tests/test_core.py": "def test():\n    return undefined_in_test\n",
    "tests/data/broken.py": "def broken(:\n",
}


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A tree with something to show in each section, and its batch."""
    codebatch = CommandLine(tmp_path_factory.mktemp("found"))
    for path, content in FOUND.items():
        write(codebatch.directory / path, content)
    codebatch("run", ".", "-q")
    return codebatch


def test_run_prints_highlights_and_next_commands(analysed: CommandLine) -> None:
    ended = analysed("run", ".")
    assert ended.lines[0].startswith("8 files in ")
    assert ended.lines[0].endswith(" s (up to date): python 6, c 1, javascript 1")
    assert ended.lines[1:] == [
        "Likely bugs (2): codebatch findings",
        "  app/core.py:20:16: error F821 Undefined name `undefined_name`",
        "      20 | return tools, undefined_name  # é",
        "         |               ^^^^^^^^^^^^^^",
        "  tests/test_core.py:2:12: warning F821 Undefined name `undefined_in_test`",
        "       2 | return undefined_in_test",
        "         |        ^^^^^^^^^^^^^^^^^",
        "Hard to change: codebatch hotspots",
        "  complexity  dependents",
        "          21    2 files  hard app/core.py:4",
        "Duplicate blocks (1): codebatch duplicates",
        "  22 lines  app/more.py:4 = tools.py:4",
        "Import cycles (1): codebatch graph --cycles",
        "  2 files  app/core.py -> tools.py -> core.py; cut at app/core.py:1",
        "2 files could only be parsed partially: codebatch files --parse partial",
        "1 minor finding hidden (1 hint): codebatch findings --all",
    ]
    assert ended.notes.splitlines()[-1] == "next: codebatch findings"


def test_every_command_that_run_suggests_prints_output(analysed: CommandLine) -> None:
    for line in analysed("run", ".").lines[1:]:
        if ": codebatch " in line:
            assert analysed.shell(line.rpartition(": ")[2]).stdout, line


def test_caches_of_the_first_screen_have_known_names(codebatch: CommandLine) -> None:
    write(codebatch.directory / "app.py", HARD)
    codebatch.shell("git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm 1")
    codebatch("run", ".")
    prefixes = {path.name.partition("-")[0] for path in (codebatch.directory / ".codebatch" / "cache").iterdir()}
    assert {"churn", "headline", "stat"} <= prefixes
    assert codebatch("gate-run", "no-foreign-files").lines[0].startswith("passed")


@pytest.mark.parametrize(("columns", "marked"), [(20, 0), (40, 1), (80, 2)])
def test_first_screen_fits_the_terminal(analysed: CommandLine, columns: int, marked: int) -> None:
    shown, _ = on_a_terminal(analysed, "run", ".", "-q", columns=columns, NO_COLOR="1")
    lines = shown.splitlines()
    assert len(lines) <= 22
    assert all(len(line) <= columns or len(line.removesuffix("…").split()) == 1 for line in lines), lines
    carets = [line.index("^") for line in lines if "^" in line]
    assert all(place < columns for place in carets)
    assert len(carets) == marked


def test_run_json_has_the_headline(analysed: CommandLine) -> None:
    answer = analysed("run", ".", "--json").json
    headline = answer["headline"]
    assert (answer["status"], answer["files"]) == ("COMPLETED", 8)
    assert headline["findings"][0]["findings"][0]["message"] == "Undefined name `undefined_name`"
    assert (headline["findings_count"], headline["minor_findings"]) == (2, {"hint": 1})
    hard = headline["hotspots"][0]
    assert (hard["path"], hard["symbol"], hard["cognitive"], hard["dependents"]) == ("app/core.py", "hard", 21, 2)
    assert headline["duplicates"][0]["lines"] == 22
    assert headline["cycles"][0]["files"] == ["app/core.py", "app/tools.py"]
    assert (headline["partially_parsed"], headline["with_syntax_errors"]) == (2, 1)


def test_unparsed_files_are_counted_by_kind_in_one_line(codebatch: CommandLine) -> None:
    for path in ("a.po", "b.po", "c.po", "d.ini", "e.ini", "LICENSE", "lib.min.js"):
        write(codebatch.directory / path, "x = 1\n")
    (codebatch.directory / "a.png").write_bytes(b"\x89PNG\0")
    write(codebatch.directory / "a.py", 'x = \'"lang":"go","class":"huge","parse":"skipped"}\'\n')
    ended = codebatch("run", ".")
    list_command = "codebatch files --parse skipped --parse unsupported"
    assert ended.lines[1:] == [f"8 files not parsed (1 minified, 3 gettext, 2 ini, 2 of other kinds): {list_command}"]
    assert len(codebatch.shell(f"{list_command} -q").lines) == 8
    shown, _ = on_a_terminal(codebatch, "run", ".", "-q", columns=80, NO_COLOR="1")
    assert shown.splitlines()[1] == f"8 files not parsed: {list_command}"
    kinds = {"gettext": 3, "ini": 2, "binary": 1, "minified": 1, "text": 1}
    assert codebatch("run", ".", "--json").json["headline"]["unparsed"] == kinds


def test_pattern_lists_count_as_parsed_and_one_line_is_singular(codebatch: CommandLine) -> None:
    write(codebatch.directory / ".gitattributes", "*.py text\n")
    write(codebatch.directory / "tests/test_a.py", "def test():\n    return undefined\n")
    write(codebatch.directory / "tests/.gitignore", "*.pyc\n*.so\n")
    ended = codebatch("run", ".")
    assert ended.lines[0].endswith(": python 1, gitattributes 1, gitignore 1")
    # If a tree has only tests, their findings are shown like others.
    assert ended.lines[1].startswith("Likely bugs (1)")
    assert len(ended.lines) == 5
    listed = codebatch("files", "--parse", "ok", "--limit", "2").lines
    assert listed == [".gitattributes  gitattributes  1 line", "tests/.gitignore  gitignore  2 lines"]
    queried = codebatch("query", "files", "--lang", "gitattributes").lines
    assert queried == [".gitattributes: gitattributes, 1 line, text, parse ok"]


def test_documentation_samples_are_not_listed_as_likely_bugs(codebatch: CommandLine) -> None:
    write(codebatch.directory / "app.py", "x = 1\n")
    write(codebatch.directory / "tests/sample.py", "print(nobody_defines_this)\n")
    write(codebatch.directory / "docs/sample.py", "print(nobody_defines_this)\n")
    assert codebatch("run", ".").lines[1].startswith("Likely bugs (2)")
    write(codebatch.directory / ".gitattributes", "tests/** linguist-documentation\ndocs/** linguist-documentation\n")
    assert codebatch("run", ".").lines[1].startswith("Likely bugs (1)")
    ended = codebatch("findings")
    assert ended.lines[::4] == [
        "warning F821  1 in 1 file, all in non-production files: Undefined name `nobody_defines_this`"
    ]
    assert ended.lines[1] == "  docs/sample.py:1:7"
    assert ended.notes == "1 hint hidden; show them with --all\n"


def test_run_without_findings_suggests_no_command(codebatch: CommandLine) -> None:
    write(codebatch.directory / "Cargo.toml", '[package]\nname = "a"\n')
    write(codebatch.directory / "src/lib.rs", "pub mod a;\npub fn f() { a::g() }\n")
    write(codebatch.directory / "src/a.rs", "use crate::f;\npub fn g() { f() }\n")
    ended = codebatch("run", ".")
    assert len(ended.lines) == 1
    cycles = codebatch("graph", "--cycles")
    assert cycles.lines == []
    assert "no import cycles\n1 import cycle hidden; to list all, use --all" in cycles.notes
    assert codebatch("graph", "--cycles", "--all").lines == [
        "2 files: src/a.rs -> src/lib.rs -> src/a.rs; cut at src/a.rs:1"
    ]
    assert "next:" not in ended.notes
    assert codebatch("findings").notes == "no findings\n"


def test_unfinished_run_prints_its_status_and_known_findings(codebatch: CommandLine) -> None:
    for path, content in FOUND.items():
        write(codebatch.directory / path, content)
    ended = codebatch("run", ".", "--task", "lint")
    assert ended.lines[0].startswith("RUNNING: batch batch-")
    assert "Likely bugs (2): codebatch findings" in ended.lines
    assert not any(line.startswith(("Hard", "Import")) for line in ended.lines)


def test_findings_are_grouped_by_rule_with_tests_last(analysed: CommandLine) -> None:
    ended = analysed("findings")
    assert ended.lines == [
        "error F821  1 in 1 file: Undefined name `undefined_name`",
        "  app/core.py:20:16",
        "      20 | return tools, undefined_name  # é",
        "         |               ^^^^^^^^^^^^^^",
        "warning F821  1 in 1 file, all in non-production files: Undefined name `undefined_in_test`",
        "  tests/test_core.py:2:12",
        "       2 | return undefined_in_test",
        "         |        ^^^^^^^^^^^^^^^^^",
    ]
    assert ended.notes.splitlines()[-1] == "1 hint hidden; show them with --all"


def test_findings_accepts_the_options_of_queries(analysed: CommandLine) -> None:
    rules = analysed("findings", "--path", "tests", "--json").json["rules"]
    assert [(rule["code"], rule["severity"], rule["non_production"]) for rule in rules] == [("F821", "warning", 1)]
    rows = analysed("findings", "--code", "syntax*", "-o", "csv", "--severity", "hint").lines
    assert [row.split(",")[1] for row in rows] == ["path", "tests/data/broken.py"]
    limited = analysed("findings", "--limit", "1")
    assert len(limited.lines) == 4
    assert limited.notes == "1 more; show them with --limit 2\n1 hint hidden; show them with --all\n"
    assert analysed("findings", "--all", "--severity", "info", status=2).stdout == b""
    assert "no findings" in analysed("findings", "--lang", "c").notes


def test_findings_of_a_frequent_rule_are_limited(codebatch: CommandLine) -> None:
    for number in range(21):
        write(codebatch.directory / f"pages/{number:02}.html", "<p>a\rb</p>\n")
    for number in range(21):
        write(codebatch.directory / f"tests/{number:02}.py", f"print(undefined_{number})\n")
    write(codebatch.directory / "z.py", "def f():\n    x = 1\n")
    codebatch("run", ".", "-q")
    ended = codebatch("findings")
    assert "info F841  1 in 1 file: Local variable `x` is assigned to but never used" in ended.lines
    # Findings with different messages are not limited.
    assert sum(line.startswith("  tests/") for line in ended.lines) == 21
    assert [line for line in ended.lines if line.startswith("  pages/")] == [f"  pages/0{n}.html:1:5" for n in range(3)]
    assert ended.notes == "18 more; show them with --limit 43\n"
    every = codebatch("findings", "--limit", "43")
    assert (sum(line.startswith("  pages/") for line in every.lines), every.notes) == (21, "")
    assert codebatch("findings", "--json").json["rules"][2]["count"] == 21
    (codebatch.directory / "pages/20.html").unlink()
    codebatch("run", ".", "-q")
    assert sum(line.startswith("  pages/") for line in codebatch("findings").lines) == 20


def test_hints_are_counted_and_shown_with_all(codebatch: CommandLine) -> None:
    write(codebatch.directory / "codebatch.toml", "[tasks.lint]\non = ['todo-comment']\n")
    write(codebatch.directory / "a.py", "# TODO: all\n")
    assert "1 minor finding hidden (1 hint): codebatch findings --all" in codebatch("run", ".").lines
    ended = codebatch("findings")
    assert (ended.stdout, ended.notes) == (b"", "no findings\n1 hint hidden; show them with --all\n")
    assert codebatch("findings", "--all").lines[0] == "hint todo-comment  1 in 1 file: TODO comment"


def test_files_filters_by_class_and_parse_state(analysed: CommandLine) -> None:
    def paths(*arguments: str) -> list[str]:
        return [row["path"] for row in analysed("files", *arguments, "--json").records]

    assert paths("--parse", "partial") == ["app/catalog.js", "native/m.c"]
    assert paths("--parse", "errors", "--class", "fixture") == ["tests/data/broken.py"]
    assert paths("--class", "test", "--class", "template", "--limit", "1") == ["app/catalog.js"]
    assert analysed("files", "--class", "vendored").notes == "no matching files\n"
    analysed("files", "--class", "test", "--why", "app", status=2)


def test_source_lines_are_escaped_and_hidden_unless_utf_8(codebatch: CommandLine) -> None:
    wrong = "def f():\n    return '\x1b[31m' + undefined\n"
    write(codebatch.directory / "a\x1b[2J.py", wrong)
    for name, encoding in (("b.py", "utf-16"), ("c.py", "latin-1")):
        content = f"# coding: {encoding}\ndef f():\n    return 'é' + undefined\n".encode(encoding)
        (codebatch.directory / name).write_bytes(content)
    codebatch("run", ".", "-q")
    lines = codebatch("findings", "--code", "F821").lines
    assert lines[1:] == [
        "  a\\x1b[2J.py:2:22",
        "       2 | return '\\x1b[31m' + undefined",
        "         |                     ^^^^^^^^^",
        "  b.py:3:18",
        "  c.py:3:18",
    ]
    shown, _ = on_a_terminal(codebatch, "findings", columns=60, NO_COLOR="1")
    assert "\x1b" not in shown
    assert "\x1b" not in codebatch("run", ".").text


def test_findings_notes_missing_source_and_shows_other_files(codebatch: CommandLine) -> None:
    packs = codebatch.directory / ".codebatch" / "objects"
    write(codebatch.directory / "tree" / "b.py", "print(there)\n")
    codebatch("run", "tree", "-q")
    before = {*packs.glob("*.pack")}
    write(codebatch.directory / "tree" / "a.py", "print(lost)\n")
    codebatch("run", "tree", "-q")
    (added,) = {*packs.glob("*.pack")} - before
    added.unlink()
    ended = codebatch("findings")
    assert "the source of 1 file is missing or damaged" in ended.notes
    assert [line for line in ended.lines if "print(" in line] == ["       1 | print(there)"]
