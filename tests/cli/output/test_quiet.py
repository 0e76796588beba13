"""With `-q`, commands that only do something print nothing. Those that answer a question print the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A project with an analysis and a rewrite."""
    root = tmp_path_factory.mktemp("quiet")
    (root / "a.py").write_text("x = old()\n")
    rewrite = 'lang = "python"\npattern = "old()"\nrewrite = "new()"\nbad = "old()"\ngood = "new()"\n'
    (root / "codebatch.toml").write_text(f"[[tasks.js.rewrites]]\n{rewrite}")
    codebatch = CommandLine(root)
    codebatch("-q", "run", ".")
    return codebatch


SILENT = [
    ("init",),
    ("init", "other"),
    ("pin", "latest"),
    ("unpin", "latest"),
    ("gc",),
    ("index", "build"),
    ("report",),
    ("export", "sarif", "--output", "x.sarif"),
    ("baseline", "create", "baseline.jsonl"),
    ("baseline", "update", "baseline.jsonl"),
    ("task", "new", "own"),
    ("rules", "new", "own-rule"),
]


def test_actions_are_not_confirmed(analysed: CommandLine) -> None:
    printed = {}
    for words in SILENT:
        ended = analysed("-q", *words)
        printed[" ".join(words)] = ended.text + _without_staleness(ended.notes)
    assert {name: text for name, text in printed.items() if text} == {}


def _without_staleness(notes: str) -> str:
    """Return notes without the warning that files have changed, which other tests cause."""
    return "".join(line for line in notes.splitlines(keepends=True) if "out of date" not in line)


def test_quiet_apply_prints_only_what_it_wrote(analysed: CommandLine, tmp_path: Path) -> None:
    ended = analysed("-q", "apply", "--dry-run")
    assert (ended.lines, ended.notes) == (["to write a.py", "1 file can be written"], "")


def test_answers_are_printed(analysed: CommandLine) -> None:
    assert analysed("-q", "status").text
    assert analysed("-q", "gc", "--dry-run").text
    assert analysed("-q", "init", "--json").json["created"] is False
