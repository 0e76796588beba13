"""What a task's key covers: all code that its output may depend on, as far as imports tell."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration
from codebatch.model.digest import Digest
from codebatch.model.task import TaskDeclaration
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import implementation_digest, package_digest, tool_versions
from codebatch_workers import tasks

_DECLARED: dict[str, TaskDeclaration] = {name.lower(): getattr(tasks, name) for name in tasks.__all__}
_OURS = ("codebatch", "codebatch_workers")
# How records and configurations are written, and files of TOML read, whoever runs the task.
_OF_ALL = {"msgspec", "tomli"}


@cache
def _file(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


@cache
def _imported(module: str) -> frozenset[str]:
    """What a module imports, wherever in it; of a name that is a module itself, that one."""
    path = _file(module)
    assert path is not None
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            assert node.module is not None
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if node.module.startswith(_OURS) and _file(name) else node.module for name in inside)
    return frozenset(found)


def _closure(module: str) -> Iterator[str]:
    """All modules that a module leads to, the packages around them too; of others' packages, the name alone.

    `codebatch` itself says for people what is below it: that decides nothing.
    """
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name.partition(".")[0] not in _OURS:
            name = name.partition(".")[0]
        if name in seen or name in sys.stdlib_module_names:
            continue
        seen.add(name)
        yield name
        if name.startswith(_OURS):
            waiting += _imported(name)
            around = name.rpartition(".")[0]
            waiting += [around] if around and around != "codebatch" else []


def _reachable_modules(declaration: TaskDeclaration) -> set[str]:
    return set(_closure(declaration.implementation.partition(":")[0]))


@pytest.mark.parametrize("declaration", _DECLARED.values(), ids=_DECLARED)
def test_task_key_covers_every_imported_module(declaration: TaskDeclaration) -> None:
    covered = ("codebatch_workers", *declaration.sources)
    ours = {name for name in _reachable_modules(declaration) if name.startswith(_OURS)}
    assert not {name for name in ours if not any(name == each or name.startswith(f"{each}.") for each in covered)}
    distributions = packages_distributions()
    keys = [declaration, *(_DECLARED[need] for need in declaration.needs)]
    tools = {*_OF_ALL, *(tool for each in keys for tool in (*each.tools, *each.optional_tools))}
    for name in _reachable_modules(declaration) - ours:
        assert tools.intersection(distributions.get(name, [name])), name


def test_task_key_covers_decisive_model_modules() -> None:
    assert "codebatch.model.gitignore" in _reachable_modules(tasks.LINT)
    assert "codebatch.model.graph" in _reachable_modules(tasks.DEPENDENCIES)
    assert "codebatch_workers.lint.query_rules" in _reachable_modules(tasks.PARSE), "imported by a function"


def test_digest_covers_the_sources_and_the_implementation_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("its_own", "its_source", "beside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    declaration = TaskDeclaration(
        name="x", version="1", summary="", implementation="its_own.x:f", records=(), sources=("its_source.rules",)
    )

    def digest_after(change: str) -> Digest:
        (tmp_path / change).write_text("changed = True\n")
        package_digest.cache_clear()
        return implementation_digest(TaskCatalogue(), declaration)

    first = digest_after("its_source/rules.py")
    assert digest_after("beside/rules.py") == digest_after("its_source/other.py") == first
    second = digest_after("its_own/rules.py")
    (tmp_path / "its_source" / "rules.py").write_text("")
    assert len({first, second, digest_after("beside/more.py")}) == 3
    with pytest.raises(InvalidConfiguration, match=r"'nowhere\.x' is not installed"):
        implementation_digest(TaskCatalogue(), replace(declaration, sources=("nowhere.x",)))


def test_default_sources_cover_both_packages() -> None:
    declaration = TaskDeclaration(name="x", version="1", summary="", implementation="venom:f", records=())
    assert declaration.sources == _OURS


def test_key_covers_the_interpreter_version() -> None:
    assert tool_versions(tasks.DEPENDENCIES) == {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
