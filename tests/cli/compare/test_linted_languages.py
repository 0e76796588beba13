"""`check` names the languages whose files no linter checked: without findings, a check of them means little."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, write

pytestmark = pytest.mark.slow

LINTER = '[tasks.l]\ncommand = ["true", "{files}"]\nrecords = "gcc"\nversion = ["echo", "1"]\nmatch = MATCH\n'


def unlinted_files(codebatch: CommandLine) -> dict[str, int]:
    """Check the present files, and return the number of files without a linter."""
    codebatch("run", ".")
    answer = codebatch("check", "--allow-no-base", "--json")
    found: dict[str, int] = answer.json["unlinted_files"]
    assert ("no linter checked" in answer.notes) == bool(found)
    return found


@pytest.fixture
def mixed(codebatch: CommandLine) -> CommandLine:
    """A project with files in several languages and classes."""
    for path, text in {
        "a.ts": "const a = 1;\n", "b.ts": "const b = 1;\n", "c.go": "package c\n", "d.py": "x = 1\n",
        "e.json": "{}\n", "f.md": "# f\n", "vendor/g.rb": "x = 1\n", "tests/test_h.rb": "x = 1\n",
    }.items():  # fmt: skip
        write(codebatch.directory / path, text)
    return codebatch


def test_languages_without_a_linter_are_counted(mixed: CommandLine) -> None:
    assert unlinted_files(mixed) == {"typescript": 2, "go": 1}


@pytest.mark.parametrize(
    ("match", "unlinted"),
    [
        ('["*.ts"]', {"go": 1}),
        ('["b.ts"]', {"go": 1}),
        ('["lang:go"]', {"typescript": 2}),
        ('["*", "!*.go"]', {"go": 1}),
        ('["lang:ts"]', {}),
        ("[]", {}),
    ],
)
def test_linter_checks_the_languages_that_it_selects(mixed: CommandLine, match: str, unlinted: dict[str, int]) -> None:
    """Another spelling of a language counts for all, because the languages of spellings are not known here."""
    write(mixed.directory / "codebatch.toml", LINTER.replace("MATCH", match))
    assert unlinted_files(mixed) == unlinted


def test_custom_task_may_check_any_language(mixed: CommandLine) -> None:
    write(mixed.directory / "own.py", "def task(file):\n    return []\n")
    write(mixed.directory / "codebatch.toml", "[tasks.own]\npython = 'own.py:task'\n")
    assert unlinted_files(mixed) == {}


def test_many_languages_are_not_all_named(mixed: CommandLine) -> None:
    for name in ("i.rb", "j.lua", "k.rs"):
        write(mixed.directory / name, "")
    mixed("run", ".")
    assert "no linter checked typescript (2 files), " in (notes := mixed("check", "--allow-no-base").notes)
    assert ", 2 more; to add one: codebatch help linters" in notes


def test_tasks_that_did_not_run_are_named(mixed: CommandLine) -> None:
    """Their findings are unknown: neither `--no-commands` nor a missing optional program makes a change clean."""
    table = LINTER.replace("MATCH", '["*.ts"]')
    optional = table.replace("tasks.l", "tasks.m").replace('"true"', '"not-installed"') + "optional = true\n"
    write(mixed.directory / "codebatch.toml", table + optional)
    write(mixed.directory / "e.py", "x = 1\n")
    mixed("run", ".")
    write(mixed.directory / "e.py", "x = 2\n")
    for options, tasks in (((), ["m"]), (("--no-commands",), ["l", "m"])):
        mixed("run", ".", *options)
        checked = mixed("check", "latest~1", "--json")
        assert checked.json["unchecked"]["tasks_not_run"] == tasks
        count = f"{len(tasks)} task{'s' * (len(tasks) > 1)}"
        text = f"the findings of {count} are unknown, because HEAD did not run: {', '.join(tasks)}"
        assert text in checked.notes.splitlines()
