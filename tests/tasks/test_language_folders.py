"""The folders of languages: what each family defines, and that nothing else names a family."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import codebatch_workers.languages
from codebatch_workers.languages import registry
from codebatch_workers.syntax.language.languages import every_language, family_of

FOLDER = Path(codebatch_workers.languages.__path__[0])
FAMILIES = sorted(path.name for path in FOLDER.iterdir() if (path / "__init__.py").exists())
PARTS = {
    "duplicates": "DUPLICATES",
    "gaps": "GAPS",
    "implicit": "IMPLICIT_RULES",
    "imports": "IMPORT_RULES",
    "patterns": "PATTERNS",
    "symbols": "SYMBOLS",
    "syntax": "SYNTAX",
    "uses": "USES",
}
_FAMILY_IMPORT = re.compile(r"codebatch_workers\.languages\.(\w+)")


def languages_of(family: str) -> set[str]:
    return {name for name in every_language() if family_of(name) == family}


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_of_a_family_are_for_its_languages(family: str) -> None:
    parts = [part for part in PARTS if (FOLDER / family / f"{part}.py").exists()]
    defined = [getattr(import_module(f"codebatch_workers.languages.{family}.{part}"), PARTS[part]) for part in parts]
    assert parts
    assert set().union(*defined) == languages_of(family)
    assert import_module(f"codebatch_workers.languages.{family}").FACTS.keys() == languages_of(family)


def test_registry_finds_each_part_and_nothing_else() -> None:
    supported = {
        name: (
            registry.import_rule(name) is not None,
            registry.implicit_import_rule(name) is not None,
            registry.language_uses(name) is not None,
        )
        for name in every_language()
    }
    assert supported["python"] == (True, False, True)
    assert supported["cpp"] == (True, True, True)
    assert supported["swift"] == (False, True, True)
    assert supported["markdown"] == (False, False, False)
    assert registry.language_uses("no such language") is None


def test_only_a_family_imports_its_modules() -> None:
    for path in FOLDER.parent.rglob("*.py"):
        families = {name for name in _FAMILY_IMPORT.findall(path.read_text(encoding="utf-8")) if name in FAMILIES}
        own = path.relative_to(FOLDER).parts[0] if path.is_relative_to(FOLDER) else ""
        assert families <= {own}, path
