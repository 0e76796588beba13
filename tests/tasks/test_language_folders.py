"""The folders of languages: what each family defines, and that nothing else names a family."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import codebatch_workers.languages
from codebatch_workers.languages import registry
from codebatch_workers.languages.facts import _WITHOUT_FOLDER
from codebatch_workers.syntax.comments import _LANGUAGES_WITHOUT_GRAMMAR
from codebatch_workers.syntax.language.languages import every_language, family_of

FOLDER = Path(codebatch_workers.languages.__path__[0])
FAMILIES = sorted(path.name for path in FOLDER.iterdir() if (path / "__init__.py").exists())
PARTS = ("duplicates", "gaps", "implicit", "imports", "patterns", "symbols", "syntax", "uses")
# Modules that name a language, and why. The name "json" is left out: it is the format of answers and records, too.
_REGISTRY = "the registry of languages"
_INTERPRETER = "Python, the interpreter or a setting with this name"
_SHELL = "a shell that runs commands"
_FORMAT = "a format of documents that codebatch itself reads"
_SQL = "the command `codebatch sql`"
MODULES_WITH_NAMES = {
    "codebatch/cli/__init__.py": _SQL,
    "codebatch/cli/framework/explain_answers.py": _SQL,
    "codebatch/cli/reference/describe.py": _SHELL,
    "codebatch/cli/reference/interface.py": _SQL,
    "codebatch/cli/run/engine.py": _INTERPRETER,
    "codebatch/model/analysis/language_groups.py": "languages that users name together, also those without a folder",
    "codebatch/model/task.py": _INTERPRETER,
    "codebatch/model/text/markdown.py": _FORMAT,
    "codebatch/model/work/placeholders.py": _SHELL,
    "codebatch/operations/gate/changed_settings.py": _INTERPRETER,
    "codebatch/operations/gate/linted_languages.py": "the language that ruff, the linter of the task `lint`, checks",
    "codebatch/operations/project/configuration.py": _INTERPRETER,
    "codebatch/operations/project/scaffolding.py": _INTERPRETER,
    "codebatch/operations/project/task_example.py": "an example of a record",
    "codebatch/operations/queries/sql.py": _SQL,
    "codebatch/plugins/command_tasks.py": _INTERPRETER,
    "codebatch/plugins/entry_points.py": _INTERPRETER,
    "codebatch/plugins/key_coverage.py": _INTERPRETER,
    "codebatch/plugins/user_tasks.py": _INTERPRETER,
    "codebatch/testing/tasks.py": _INTERPRETER,
    "codebatch/work/definition/task_files.py": _FORMAT,
    "workers/codebatch_workers/syntax/language/first_lines.py": _REGISTRY,
    "workers/codebatch_workers/syntax/language/languages.py": _REGISTRY,
    "workers/codebatch_workers/syntax/language/linguist_names.py": _REGISTRY,
    "workers/codebatch_workers/syntax/language/notebooks.py": "types of cells, and the only language of notebooks",
    "workers/codebatch_workers/syntax/python_versions.py": "a context of tasks, and a key of Poetry",
}
_FAMILY_IMPORT = re.compile(r"codebatch_workers\.languages\.(\w+)")


def languages_of(family: str) -> set[str]:
    return {name for name in every_language() if family_of(name) == family}


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_of_a_family_are_for_its_languages(family: str) -> None:
    parts = [part for part in PARTS if (FOLDER / family / f"{part}.py").exists()]
    defined = [getattr(import_module(f"codebatch_workers.languages.{family}.{part}"), part.upper()) for part in parts]
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


def test_only_folders_and_listed_modules_name_a_language() -> None:
    names = {*every_language()} - {"json"}
    root = FOLDER.parents[2]
    found = {
        path.relative_to(root).as_posix()
        for path in (*(root / "codebatch").rglob("*.py"), *FOLDER.parent.rglob("*.py"))
        if not path.is_relative_to(FOLDER)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    }
    assert found == MODULES_WITH_NAMES.keys()


def test_tables_of_languages_without_a_folder_have_no_other_language() -> None:
    without = {*" ".join((*_WITHOUT_FOLDER.values(), *_LANGUAGES_WITHOUT_GRAMMAR.values())).split()}
    assert without.isdisjoint(every_language())
