"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = sorted(path for folder in ("codebatch", "workers", "tests", "bench") for path in (ROOT / folder).rglob("*.py"))
SHIPPED = [path for path in OURS if path.is_relative_to(ROOT / "codebatch") or path.is_relative_to(ROOT / "workers")]

FILE_LINES_MAX = 500
SHIPPED_LINES_MAX = 400
METHODS_MAX = 20
# What stands in a docstring where more is right: a reason belongs to it.
LONG = re.compile(r"long as it is")
MANY = re.compile(r"[Mm]ethods\s+are\s+many|long as it is")
FUNCTION_LINES_MAX = 70
BANNED_NAMES = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py", "manager.py"}
TOP_LEVEL = {
    ".ci", ".git", ".github", ".gitignore", "LICENSE", "README.md", "SPEC.md",
    "bench", "codebatch", "pyproject.toml", "schemas", "tests", "workers",
}  # fmt: skip


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short_and_named_for_what_they_hold(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.name not in BANNED_NAMES
    assert text.count("\n") <= FILE_LINES_MAX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < FUNCTION_LINES_MAX, node.name


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_modules_say_what_they_are_and_leave_nothing_unfinished(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert not re.search(r"#.*\b(FIXME|XXX|HACK)\b|NotImplementedError", text)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_longer_than_others_says_why(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    about = ast.get_docstring(tree) or ""
    assert text.count("\n") <= SHIPPED_LINES_MAX or LONG.search(about)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(each, ast.FunctionDef) for each in node.body)
            assert methods <= METHODS_MAX or MANY.search(f"{about} {ast.get_docstring(node)}"), node.name


def test_fragments_of_the_changelog_begin_as_readers_of_it_expect() -> None:
    changelog = ROOT / ".github" / "changelog"
    for path in {*changelog.iterdir()} - {changelog / "README.md"}:
        title, nothing, text = path.read_text(encoding="utf-8").split("\n", 2)
        assert re.fullmatch(r"(New|Change|Fix): .*[^.]", title), path.name
        assert (nothing, bool(text.strip())) == ("", True), path.name


def test_the_top_level_is_as_the_owner_fixed_it() -> None:
    tracked = {path.name for path in ROOT.iterdir()} - _ignored()
    assert tracked <= TOP_LEVEL


def _ignored() -> set[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    names = {line.strip("/") for line in lines}
    return names | {path.name for path in ROOT.glob("*.egg-info")}
