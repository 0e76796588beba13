"""House rules that a machine can check. Each rule is one test, which lists all violations.

One test per file would take more time for collection and reports than for reading the files.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
OURS = sorted(path for folder in ("codebatch", "workers", "tests", "bench") for path in (ROOT / folder).rglob("*.py"))
SHIPPED = [path for path in OURS if path.is_relative_to(ROOT / "codebatch") or path.is_relative_to(ROOT / "workers")]

FILE_LINES_MAX = 520
SHIPPED_LINES_MAX = 425
METHODS_MAX = 20
# Phrases that a docstring must contain if its module or class exceeds a limit. They must be followed by a reason.
LONG = re.compile(r"long as it is")
MANY = re.compile(r"many\s+methods|long as it is")
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 25
WIRE_FORMATS = {
    "codebatch/model/work/event.py",
    "codebatch/model/work/request.py",
    "codebatch/protocol/messages.py",
    "codebatch/store/batches/journal.py",
}
"""Modules whose class names are the names of members, messages or events in a format of SPEC.md."""
BANNED_NAMES = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py", "manager.py"}
TOP_LEVEL = {
    ".ci", ".git", ".git-blame-ignore-revs", ".github", ".gitignore", "LICENSE", "README.md", "SPEC.md",
    "bench", "codebatch", "pyproject.toml", "schemas", "tests", "workers",
}  # fmt: skip


def test_files_and_functions_are_short_and_not_named_generically() -> None:
    wrong: list[str] = []
    for path, text, tree in _read(OURS):
        wrong += [str(path)] if path.name in BANNED_NAMES or text.count("\n") > FILE_LINES_MAX else []
        for node in _iter_statements(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                if node.end_lineno - node.lineno >= FUNCTION_LINES_MAX:
                    wrong.append(f"{path} {node.name}")
    assert wrong == []


def test_shipped_modules_have_docstrings_and_no_unfinished_code() -> None:
    unfinished = re.compile(r"#.*\b(FIXME|XXX|HACK)\b|NotImplementedError")
    assert [path for path, text, tree in _read(SHIPPED) if not ast.get_docstring(tree) or unfinished.search(text)] == []


def test_long_modules_and_large_classes_state_a_reason() -> None:
    wrong: list[str] = []
    for path, text, tree in _read(SHIPPED):
        about = ast.get_docstring(tree) or ""
        wrong += [] if text.count("\n") <= SHIPPED_LINES_MAX or LONG.search(about) else [str(path)]
        for node in _iter_statements(tree):
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(statement, ast.FunctionDef) for statement in node.body)
                if methods > METHODS_MAX and not MANY.search(f"{about} {ast.get_docstring(node)}"):
                    wrong.append(f"{path} {node.name}")
    assert wrong == [], "split these, or state a reason: `It is as long as it is because …`"


def _iter_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements below a node. Expressions are skipped for speed, because they contain no definitions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from _iter_statements(child)


def _read(paths: Sequence[Path]) -> Iterator[tuple[Path, str, ast.Module]]:
    assert len(paths) > 300
    for path in paths:
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(ROOT), text, ast.parse(text)


def test_changelog_fragments_have_the_expected_form() -> None:
    changelog = ROOT / ".github" / "changelog"
    for path in {*changelog.iterdir()} - {changelog / "README.md"}:
        title, second_line, text = path.read_text(encoding="utf-8").split("\n", 2)
        assert re.fullmatch(r"(New|Change|Fix): .*[^.]", title), path.name
        assert (second_line, bool(text.strip())) == ("", True), path.name


def test_top_level_contains_only_expected_entries() -> None:
    tracked = {path.name for path in ROOT.iterdir()} - _ignored()
    assert tracked <= TOP_LEVEL


def _ignored() -> set[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    names = {line.strip("/") for line in lines}
    return names | {path.name for path in ROOT.glob("*.egg-info")}


def test_class_names_are_unique_except_in_wire_formats() -> None:
    modules: dict[str, list[str]] = {}
    for path, _, tree in _read(SHIPPED):
        for node in _iter_statements(tree):
            if isinstance(node, ast.ClassDef) and str(path) not in WIRE_FORMATS:
                modules.setdefault(node.name, []).append(str(path))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}, "a class name occurs twice"


def test_folders_have_a_limited_number_of_files() -> None:
    counts = Counter(path.parent.relative_to(ROOT) for path in OURS)
    assert {str(folder): count for folder, count in counts.items() if count > FOLDER_FILES_MAX} == {}, (
        f"more than {FOLDER_FILES_MAX} modules: use an existing module or a subfolder"
    )


def test_texts_name_no_moved_module() -> None:
    """`moved-modules.txt` lists the former names of modules, by package, as paths and as dotted names."""
    former = (ROOT / "tests" / "moved-modules.txt").read_text(encoding="utf-8").split()
    pattern = re.compile(rf"(?<![\w./])(?:{'|'.join(map(re.escape, former))})(?!\w)")
    texts = [
        *OURS,
        *ROOT.glob("*.md"),
        *(ROOT / ".github").rglob("*.*"),
        *(ROOT / ".ci").iterdir(),
        *ROOT.glob("*.toml"),
    ]
    texts += [*(ROOT / "codebatch" / "help").iterdir(), ROOT / "workers" / "TASKS.md"]
    wrong = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts
        if path.is_file() and path.suffix != ".png"
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []
