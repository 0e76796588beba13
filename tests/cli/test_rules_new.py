"""`rules new` appends a working example of a custom rule to the configuration, and changes nothing else."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from codebatch.errors import InvalidConfiguration, InvalidInput
from codebatch.operations.maintenance.rule_trials import test_rules as try_rules
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.scaffolding import scaffold_rule
from codebatch_workers.syntax.language.languages import every_language
from tests.support.command_line import CommandLine, write


def test_generated_rule_works_without_changes(codebatch: CommandLine) -> None:
    for name in ("a.go", "b.go", "c.py", "d.md", "node_modules/e.py", "node_modules/f.py", "node_modules/g.py"):
        write(codebatch.directory / name, "")
    made = codebatch("rules", "new", "no-print", "--json").json
    assert (made["language"], made["file"]) == ("go", str(codebatch.directory / "codebatch.toml"))
    assert "codebatch rules test" in codebatch("rules", "new", "other", "-l", "py").notes
    assert codebatch("rules", "test").lines == ["no-print: 2 examples, 0 failed", "other: 2 examples, 0 failed"]
    assert codebatch("rules", "new", "other", "--json", status=2).error["message"] == "a rule 'other' already exists"


def test_generated_rule_of_each_language_passes_its_examples(tmp_path: Path) -> None:
    for language in every_language():
        scaffold_rule(tmp_path, f"rule-{language}", language)
    tried = try_rules(load_configuration(tmp_path).settings.tasks["lint"], (), seconds=60)["rules"]
    assert [(rule["examples"], rule["failed_examples"]) for rule in tried] == [(2, [])] * len(every_language())


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("codebatch.toml", b'jobs = 2 # two\n[tasks.lint]\noff = ["F401"]'),
        ("codebatch.toml", b"jobs = 2\r\n"),
        ("codebatch.toml", b'[[tasks.lint.rules]]\nid = "a"\nlanguage = "python"\npattern = "f()"\nmessage = "m"\n'),
        ("pyproject.toml", b"[tool.codebatch]\njobs = 2\n[tool.other]\nx = 1\n"),
    ],
)
def test_rules_new_appends_without_changing_existing_bytes(tmp_path: Path, name: str, before: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(before)
    old = load_configuration(tmp_path).settings
    scaffold_rule(tmp_path, "new-rule", "python")
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == after.count(b"\r\n") or b"\r\n" not in before
    settings = load_configuration(tmp_path).settings
    rules = settings.tasks["lint"].pop("rules")
    assert isinstance(rules, list)
    assert [rule["id"] for rule in rules][-1] == "new-rule"
    assert rules[:-1] == old.tasks.get("lint", {}).pop("rules", [])
    assert (settings.jobs, settings.tasks.get("lint")) == (old.jobs, old.tasks.get("lint", {}))


@pytest.mark.parametrize(
    "before",
    [
        'tasks = {lint = {off = ["F401"]}}',
        '[tasks.lint]\nrules = [{id = "a", language = "python", pattern = "f()", message = "m"}]',
        '[tasks]\nlint = {off = ["F401"]}',
    ],
)
def test_configuration_that_cannot_be_extended_is_not_changed(tmp_path: Path, before: str) -> None:
    (tmp_path / "codebatch.toml").write_text(before)
    with pytest.raises(InvalidInput, match="cannot add \\[\\[tasks"):
        scaffold_rule(tmp_path, "new-rule", "python")
    assert (tmp_path / "codebatch.toml").read_text() == before


@pytest.mark.parametrize("rule_id", ["../x", 'a"b', "a\nb", "", "A", "x" * 300 + "!", "mixed-line-endings", "F401"])
def test_invalid_rule_id_is_rejected(tmp_path: Path, rule_id: str) -> None:
    with pytest.raises(InvalidInput):
        scaffold_rule(tmp_path, rule_id, "python")
    assert list(tmp_path.iterdir()) == []


def test_rules_new_rejects_symbolic_links_and_unknown_languages(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="in a language that custom rules support"):
        scaffold_rule(tmp_path, "a", None)
    (tmp_path / "other.toml").write_text("jobs = 2\n")
    (tmp_path / "codebatch.toml").symlink_to("other.toml")
    with pytest.raises(InvalidInput, match="is a symbolic link"):
        scaffold_rule(tmp_path, "a", "python")
    assert (tmp_path / "other.toml").read_text() == "jobs = 2\n"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('bad = "print(1)"', 'for example: bad = ["print(1)\\n"]; '),
        ("severity = 1", 'for example: severity = "warning"; '),
    ],
)
def test_invalid_existing_rule_gets_a_hint_with_the_correct_form(tmp_path: Path, line: str, hint: str) -> None:
    head = '[[tasks.lint.rules]]\nid = "a"\nlanguage = "python"\npattern = "f()"\n'
    for table, hint_start in ((f'{head}message = "m"\n{line}\n', hint), (head, "for example: message = ")):
        (tmp_path / "codebatch.toml").write_text(table)
        with pytest.raises(InvalidConfiguration) as caught:
            scaffold_rule(tmp_path, "b", "python")
        assert (caught.value.hint or "").startswith(hint_start)
        assert "codebatch rules new ID" in (caught.value.hint or "")


@pytest.mark.parametrize("before", [b"", b"jobs = 2\n"])
def test_full_disk_leaves_the_configuration_unchanged(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "codebatch.toml"
    if before:
        path.write_bytes(before)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            scaffold_rule(tmp_path, "new-rule", "python")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before if before else not path.exists()
