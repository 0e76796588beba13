"""SPEC.md and what stands beside it: what cites a section finds it, and the tables are those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPECIFICATIONS = {"SPEC.md": ROOT / "SPEC.md", "TASKS.md": ROOT / "workers" / "TASKS.md"}
DOCUMENTS = (*SPECIFICATIONS.values(), ROOT / "tests" / "oracles" / "README.md")
CITED = re.compile(r'\b(SPEC|TASKS)\.md,?\s+(?:#\s+|//\s+)?((?:"[^"]+"(?:, | and )?)+)')
FOLDERS = ("codebatch", "workers", "tests", "bench", "schemas", ".ci", ".github")
KINDS = {".py", ".md", ".json", ".js", ".toml", ".scm", ".yml", ""}


def _sections(path: Path) -> list[str]:
    return re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)


def _texts() -> Iterator[tuple[Path, str]]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    for path in [*found, *ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
        if path.is_file() and "golden" not in path.parts:
            yield path, path.read_text(encoding="utf-8", errors="replace").replace('\\"', '"')


def test_every_section_that_is_cited_exists() -> None:
    known = {name: set(_sections(path)) for name, path in SPECIFICATIONS.items()}
    cited = [
        (str(path.relative_to(ROOT)), f"{match[1]}.md", section)
        for path, text in _texts()
        for match in CITED.finditer(text)
        for section in re.findall(r'"([^"]+)"', match[2])
    ]
    assert len(cited) > 40
    assert [one for one in cited if one[2] not in known[one[1]]] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_cites_itself_rightly_and_lists_its_sections(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    sections = _sections(path)
    listed = re.search(r"^Contents: (.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert re.split(r"\s+·\s+", listed[1]) == sections
    paragraphs = re.findall(r"^\*\*([^*]+?)[.:]?\*\*", text, re.MULTILINE)
    cited = {" ".join(name.split()) for name in re.findall(r'\("([A-Z][^"]+)"[,)]', text)}
    assert cited <= {*sections, *paragraphs}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_a_document_names_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"\b((?:codebatch|codebatch_workers|tests|schemas|workers)/[\w/.]+\.(?:py|json|md))\b", text)
    assert [name for name in named if not any((ROOT / below / name).is_file() for below in ("", "workers"))] == []
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(re.findall(r"\((test_\w+\.py)\)", text)) <= tests
