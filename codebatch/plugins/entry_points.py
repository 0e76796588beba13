"""Tasks from the entry point group `codebatch.tasks`. Built-in tasks are loaded in the same way as all others."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration, ToolMismatch
from codebatch.model.analysis.imports import IMPORT_TASK
from codebatch.model.digest import Digest, digest_bytes, digest_pairs
from codebatch.model.plan import PlannedTask
from codebatch.model.task import TASK_NAME_PATTERN, TaskDeclaration, TaskDescription
from codebatch.model.text.suggestions import closest_word
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.command_tasks import command_declaration
from codebatch.plugins.input_audit import is_below_directory
from codebatch.plugins.user_tasks import CustomTask, CustomTaskSource, exception_text, restoring_process_state
from codebatch.system.files.regular_files import file_fingerprint

_CACHED_DIGESTS_MAX = 4096

REWRITES_DECLARATION = "codebatch_workers.tasks:REWRITES"
"""The declaration of tasks that consist of rewrites. It has no entry point, because no task has its name."""

_OWN_PACKAGES = ("codebatch", "codebatch_workers")

# Parts of a line `Requires-Dist` (PEP 508): the name of the required distribution, and the condition of a requirement
# that is only for an extra.
_REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA_MARKER = re.compile(r"\bextra\s*==")


def describe_task(catalogue: TaskCatalogue, name: str) -> TaskDescription:
    """Return the description of a task.

    If the catalogue is isolated, a foreign task is described by a fork that imports it. Raises InvalidConfiguration.
    """
    isolated = catalogue.task_isolation(name)
    if isolated is not None:
        _reject_taken_name(catalogue, name)
        return isolated.describe(name)
    return load_declaration(catalogue, name)


def may_propose_changes(catalogue: TaskCatalogue, name: str) -> bool:
    """Return whether a task may propose changes of files, as far as this is known before its code runs.

    For a custom task, its code decides; for an installed task, the kinds of records that it declares. Raises
    InvalidConfiguration.
    """
    if name in catalogue.rewrites:
        return True
    if name in catalogue.custom_locations:
        return catalogue.custom_source(name).may_change_files
    return catalogue.is_external(name) and "change" in describe_task(catalogue, name).records


def load_declaration(catalogue: TaskCatalogue, name: str) -> TaskDeclaration:
    """Return the declaration of an installed task, a custom task or an import.

    Raises InvalidConfiguration.
    """
    if name in catalogue.commands:
        _reject_taken_name(catalogue, name)
        return command_declaration(name, catalogue.commands[name], load_declaration(catalogue, "parse"))
    if name in catalogue.custom_locations:
        _reject_taken_name(catalogue, name)
        custom_task = catalogue.custom_task(name)
        assert custom_task is not None
        return _add_inputs_of_parse(custom_task, load_declaration(catalogue, "parse"))
    if name in catalogue.rewrites:
        _reject_taken_name(catalogue, name)
        module, _, attribute = REWRITES_DECLARATION.partition(":")
        declaration: TaskDeclaration = getattr(importlib.import_module(module), attribute)
        return replace(declaration, name=name)
    if name in catalogue.import_names and name not in catalogue.installed:
        return replace(load_declaration(catalogue, IMPORT_TASK), name=name)
    entry_point = catalogue.installed.get(name)
    if entry_point is None or not TASK_NAME_PATTERN.match(name):
        suggestion = closest_word(name, [*catalogue.installed, *catalogue.locations])
        hint = f"did you mean {suggestion!r}?" if suggestion else "see: codebatch pipelines"
        raise InvalidConfiguration(f"no installed package provides the task {name!r}", hint=hint)
    is_foreign = catalogue.is_external(name)
    assert not is_foreign or catalogue.isolated_loader is None, "a coordinator imports no module of others"
    try:
        with restoring_process_state() if is_foreign else contextlib.nullcontext():
            declaration = entry_point.load()
    except Exception as error:
        raise InvalidConfiguration(
            f"the task {name!r} ({entry_point.value}) cannot be loaded: {exception_text(error)}"
        ) from error
    if not isinstance(declaration, TaskDeclaration) or declaration.name != name:
        raise InvalidConfiguration(f"{entry_point.value} does not provide the task {name!r}")
    return declaration


def _reject_taken_name(catalogue: TaskCatalogue, name: str) -> None:
    if name in catalogue.locations and name in catalogue.installed:
        raise InvalidConfiguration(
            f"an installed package already provides a task {name!r}", hint="choose another name for your task"
        )


def load_implementation(declaration: TaskDeclaration) -> object:
    """Return the object that `implementation` of a declaration names. Only for workers: it imports large libraries."""
    module, _, attribute = declaration.implementation.partition(":")
    loaded: object = getattr(importlib.import_module(module), attribute)
    return loaded


def normalized_distribution(name: str) -> str:
    """Return the name of a distribution in the form for comparison (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.cache
def package_digest(package: str) -> Digest:
    """Return the digest of all files of a package or module with their relative paths, without bytecode.

    Raises InvalidConfiguration if the package is not installed, or is a namespace package.
    """
    try:
        spec = importlib.util.find_spec(package)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None:
        raise InvalidConfiguration(f"the package {package!r} is not installed, or is a namespace package")
    origin = Path(spec.origin)
    root = origin.parent
    names = sorted(_iter_files(str(root))) if spec.submodule_search_locations else [origin.name]
    return digest_pairs((name, _file_digest(f"{root}/{name}")) for name in names)


def _file_digest(path: str) -> Digest:
    return _digest_in_state(path, file_fingerprint(path))


@functools.lru_cache(maxsize=_CACHED_DIGESTS_MAX)
def _digest_in_state(path: str, _state: tuple[int, ...]) -> Digest:
    """Return the digest of a file. Results are cached by path and by `_state`, the fingerprint of the file."""
    with open(path, "rb", buffering=0) as file:
        return digest_bytes(file.readall())


def _iter_files(directory: str, above: str = "") -> Iterator[str]:
    """Yield the paths of the files below a directory, relative to it. `__pycache__` is omitted.

    `Path.rglob` would be slower, and every worker calls this function.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            if not entry.is_dir():
                yield above + entry.name
            elif entry.name != "__pycache__":
                yield from _iter_files(entry.path, f"{above}{entry.name}/")


def implementation_digest(catalogue: TaskCatalogue, task: TaskDescription) -> Digest:
    """Return the digest of the code of a task: its package and its `sources`.

    For a custom task, the digest covers the task's file with the name of the function, its `files`, and all packages of
    codebatch. It also covers the files of imported packages that can change without a new version. For a task that
    calls a program, the digest covers its table, the version of the program, and the files in `lock`.
    """
    if task.name not in catalogue.custom_locations:
        packages = {task.implementation.partition(":")[0].partition(".")[0], *task.sources}
        digests = [(name, package_digest(name)) for name in sorted(packages)]
        if task.name in catalogue.commands:
            catalogue.look_up_commands([task.name])
            digests.insert(0, ("", catalogue.commands[task.name].digest))
        return digest_pairs(digests)
    source = catalogue.custom_source(task.name)
    return digest_pairs(
        [("", source.digest), *((name, package_digest(name)) for name in packages_covered_by_key(source))]
    )


def packages_covered_by_key(source: CustomTaskSource) -> list[str]:
    """Return the packages and modules whose files are part of a custom task's key.

    They have no version number that covers their files.
    """
    unversioned = (name for name in source.imports if _has_files(name) and not _is_installed_with_version(name))
    return sorted({*_OWN_PACKAGES, *unversioned})


def _add_inputs_of_parse(custom_task: CustomTask, parse: TaskDeclaration) -> TaskDeclaration:
    """Return the declaration of a custom task with the tools and contexts of the task `parse`.

    A custom task gets its syntax trees.

    The distributions of imported modules, and their requirements, are added to the tools.
    """
    tools = [
        *custom_task.declaration.tools,
        *(tool for name in custom_task.source.imports for tool in providing_distributions(name)),
    ]
    for tool in tools:  # The loop appends to the list.
        known = set(map(normalized_distribution, tools))
        tools += (
            requirement
            for requirement in _installed_requirements(tool)
            if normalized_distribution(requirement) not in known
        )
    return replace(
        custom_task.declaration,
        tools=tuple({normalized_distribution(tool): tool for tool in (*tools, *parse.tools)}.values()),
        optional_tools=parse.optional_tools,
        contexts=parse.contexts,
    )


@functools.cache
def _installed_requirements(distribution: str) -> tuple[str, ...]:
    """Return the distributions that a distribution requires and that are installed.

    Requirements of extras are omitted.
    """
    try:
        lines = metadata.requires(distribution) or ()
    except metadata.PackageNotFoundError:
        return ()
    matches = (_REQUIREMENT_NAME.match(line) for line in lines if not _EXTRA_MARKER.search(line))
    return tuple(match[0] for match in matches if match and _installed_version(match[0]) is not None)


@functools.cache
def providing_distributions(module: str) -> tuple[str, ...]:
    """Return the installed distributions that provide a module. Usually this is one distribution with the same name."""
    if _installed_version(module) is not None:
        return (module,)
    return tuple(sorted(set(metadata.packages_distributions().get(module, ()))))  # Slow, and rarely needed.


def _is_installed_with_version(module: str) -> bool:
    """Return whether a module's version covers its files. False for an editable install.

    True if the module is in the directory in which its distribution is installed.
    """
    spec = importlib.util.find_spec(module)
    assert spec is not None
    location = os.path.realpath(str(spec.origin))
    roots = (
        os.path.realpath(str(metadata.distribution(owner).locate_file(""))) for owner in providing_distributions(module)
    )
    return any(is_below_directory(location, root) for root in roots)


def _has_files(module: str) -> bool:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.has_location


def tool_versions(declaration: TaskDescription) -> dict[str, str]:
    """Return the versions of programs and distributions that a task needs, and of optional distributions if installed.

    `python` is the minor version of the interpreter, because minor versions change Unicode tables and codecs. Raises
    InvalidConfiguration if a required distribution is missing.
    """
    versions = {"python": "{}.{}".format(*sys.version_info), **declaration.programs}
    for tool in (*declaration.tools, *declaration.optional_tools):
        version = _installed_version(tool)
        if version is not None:
            versions[tool] = version
        elif tool in declaration.tools:
            raise InvalidConfiguration(f"the task {declaration.name!r} needs {tool}, which is not installed")
    return versions


def check_planned_task(catalogue: TaskCatalogue, task: PlannedTask) -> None:
    """Raise ToolMismatch if the version of a task that this process would run differs from the planned one."""
    declaration = load_declaration(catalogue, task.name)
    installed = {
        "version": declaration.version,
        "implementation_digest": implementation_digest(catalogue, declaration),
        "tools": tool_versions(declaration),
    }
    different = [field for field, value in installed.items() if value != getattr(task, field)]
    if different:
        raise task_mismatch_error(task.name, different)


def task_mismatch_error(task: str, different: Sequence[str]) -> ToolMismatch:
    """Return the error that a task differs from its plan in the fields `different`.

    If `different` is empty, only a task that this task needs differs.
    """
    return ToolMismatch(
        f"the batch was planned with another version of {task} (different {', '.join(different) or 'needed task'})",
        hint="use the installation that created the batch, or make a new batch with: codebatch run PATH",
    )


def clear_package_caches() -> None:
    """Clear all caches about installed packages, because packages may have been replaced."""
    package_digest.cache_clear()
    _installed_version.cache_clear()
    providing_distributions.cache_clear()
    _installed_requirements.cache_clear()


@functools.cache
def _installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None.

    Cached, because many tasks use the same distributions.
    """
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
