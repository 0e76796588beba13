"""Tests of the cache key of a task: it covers all code that can affect the output, as far as imports show."""

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
# Every task writes records and configurations and reads TOML files with these packages.
_USED_BY_ALL = {"msgspec", "tomli"}


@cache
def _file(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


@cache
def _imported(module: str) -> frozenset[str]:
    """Return the names that a module imports anywhere. An imported name that is a module counts itself."""
    path = _file(module)
    assert path is not None
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            assert node.module is not None
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            names.update(name if node.module.startswith(_OURS) and _file(name) else node.module for name in inside)
    return frozenset(names)


def _closure(module: str) -> Iterator[str]:
    """Yield all modules reachable from a module, including their parent packages.

    For foreign packages, yield only the name.

    `codebatch` itself is left out: it only re-exports the modules below, which does not affect results.
    """
    visited: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name.partition(".")[0] not in _OURS:
            name = name.partition(".")[0]
        if name in visited or name in sys.stdlib_module_names:
            continue
        visited.add(name)
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
    assert not {name for name in ours if not any(name == prefix or name.startswith(f"{prefix}.") for prefix in covered)}
    distributions = packages_distributions()
    keys = [declaration, *(_DECLARED[need] for need in declaration.needs)]
    tools = {*_USED_BY_ALL, *(tool for prefix in keys for tool in (*prefix.tools, *prefix.optional_tools))}
    for name in _reachable_modules(declaration) - ours:
        assert tools.intersection(distributions.get(name, [name])), name


def test_task_key_covers_decisive_model_modules() -> None:
    assert "codebatch.model.gitignore" in _reachable_modules(tasks.LINT)
    assert "codebatch.model.graph" in _reachable_modules(tasks.DEPENDENCIES)
    assert "codebatch_workers.lint.query_rules" in _reachable_modules(tasks.PARSE), (
        "an import within a function was not followed"
    )


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
