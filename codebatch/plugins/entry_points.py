"""Tasks by entry point `codebatch.tasks`. The built-in ones come through the same door as anyone's."""

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
from codebatch.model.text.lazy_patterns import LatePattern
from codebatch.model.text.suggestions import closest
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.input_audit import is_in
from codebatch.plugins.user_tasks import OwnSource, OwnTask, importing, said
from codebatch.system.files.regular_files import file_fingerprint

_DIGESTS_MAX = 4096

_PACKAGES_OF_CODEBATCH = ("codebatch", "codebatch_workers")

# Of a line `Requires-Dist` (PEP 508): its name, and whether it is for an extra alone.
_REQUIRED = LatePattern(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = LatePattern(r"\bextra\s*==")


def describe_task(catalogue: TaskCatalogue, name: str) -> TaskDescription:
    """Return the description of a task. If the catalogue is isolated, a task of others is not imported for it.

    Raises InvalidConfiguration.
    """
    isolated = catalogue.isolation_of(name)
    if isolated is not None:
        _refuse_taken_name(catalogue, name)
        return isolated.describe(name)
    return load_declaration(catalogue, name)


def load_declaration(catalogue: TaskCatalogue, name: str) -> TaskDeclaration:
    """The declaration of an installed task, of one of the project's own, or of an import.

    Raises InvalidConfiguration.
    """
    if name in catalogue.own_places:
        _refuse_taken_name(catalogue, name)
        own = catalogue.own_task(name)
        assert own is not None
        return _with_all_that_decides(own, load_declaration(catalogue, "parse"))
    if name in catalogue.imports and name not in catalogue.installed:
        return replace(load_declaration(catalogue, IMPORT_TASK), name=name)
    entry_point = catalogue.installed.get(name)
    if entry_point is None or not TASK_NAME_PATTERN.match(name):
        meant = closest(name, [*catalogue.installed, *catalogue.own_places])
        hint = f"did you mean {meant!r}?" if meant else "see: codebatch pipelines"
        raise InvalidConfiguration(f"no installed package provides the task {name!r}", hint=hint)
    is_foreign = catalogue.is_foreign(name)
    assert not is_foreign or catalogue.isolated is None, "a coordinator imports no module of others"
    try:
        with importing() if is_foreign else contextlib.nullcontext():
            declaration = entry_point.load()
    except Exception as error:
        raise InvalidConfiguration(
            f"the task {name!r} ({entry_point.value}) cannot be loaded: {said(error)}"
        ) from error
    if not isinstance(declaration, TaskDeclaration) or declaration.name != name:
        raise InvalidConfiguration(f"{entry_point.value} does not provide the task {name!r}")
    return declaration


def _refuse_taken_name(catalogue: TaskCatalogue, name: str) -> None:
    if name in catalogue.own_places and name in catalogue.installed:
        raise InvalidConfiguration(
            f"an installed package already provides a task {name!r}", hint="choose another name for your task"
        )


def load_implementation(declaration: TaskDeclaration) -> object:
    """What a declaration's `implementation` names. Workers only: this imports the heavy libraries."""
    module, _, attribute = declaration.implementation.partition(":")
    loaded: object = getattr(importlib.import_module(module), attribute)
    return loaded


def normalized(name: str) -> str:
    """Return the name of a distribution in the form in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.cache
def package_digest(package: str) -> Digest:
    """The digest of all files of an installed package or module, by relative path; caches and bytecode left out."""
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


@functools.lru_cache(maxsize=_DIGESTS_MAX)
def _digest_in_state(path: str, _state: tuple[int, ...]) -> Digest:
    """The digest of a file that is read again where its state is another."""
    with open(path, "rb", buffering=0) as file:
        return digest_bytes(file.readall())


def _iter_files(directory: str, above: str = "") -> Iterator[str]:
    """The files below a directory, relative to it. Every worker asks, and `Path.rglob` takes twice as long."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if not entry.is_dir():
                yield above + entry.name
            elif entry.name != "__pycache__":
                yield from _iter_files(entry.path, f"{above}{entry.name}/")


def implementation_digest(catalogue: TaskCatalogue, task: TaskDescription) -> Digest:
    """The digest of the package that implements a task and of its sources.

    Of one of the project's own, of its file with the function's name and of the `files` that it reads, of all of ours,
    and for want of a version of what it imports that no distribution has brought.
    """
    if task.name not in catalogue.own_places:
        packages = {task.implementation.partition(":")[0].partition(".")[0], *task.sources}
        return digest_pairs((name, package_digest(name)) for name in sorted(packages))
    own = catalogue.own_source(task.name)
    return digest_pairs([("", own.digest), *((name, package_digest(name)) for name in packages_in_key(own))])


def packages_in_key(own: OwnSource) -> list[str]:
    """The packages and modules of which an own task's key has all files, for no version tells when they change."""
    brought = (name for name in own.imports if _has_files(name) and not _lies_with_its_version(name))
    return sorted({*_PACKAGES_OF_CODEBATCH, *brought})


def _with_all_that_decides(own: OwnTask, parse: TaskDeclaration) -> TaskDeclaration:
    """The declaration of an own task, to which a file's tree and language are what they are to `parse`."""
    tools = [*own.declaration.tools, *(tool for name in own.source.imports for tool in providers(name))]
    for tool in tools:  # Which grows.
        known = set(map(normalized, tools))
        tools += (each for each in _requirements(tool) if normalized(each) not in known)
    return replace(
        own.declaration,
        tools=tuple({normalized(tool): tool for tool in (*tools, *parse.tools)}.values()),
        optional_tools=parse.optional_tools,
        contexts=parse.contexts,
    )


@functools.cache
def _requirements(distribution: str) -> tuple[str, ...]:
    """The distributions that one requires, as far as they are installed, but for its extras."""
    try:
        lines = metadata.requires(distribution) or ()
    except metadata.PackageNotFoundError:
        return ()
    found = (_REQUIRED.match(line) for line in lines if not _EXTRA.search(line))
    return tuple(match[0] for match in found if match and _installed_version(match[0]) is not None)


@functools.cache
def providers(module: str) -> tuple[str, ...]:
    """The installed distributions that a module is of: nearly always the one that is called so."""
    if _installed_version(module) is not None:
        return (module,)
    return tuple(sorted(set(metadata.packages_distributions().get(module, ()))))


def _lies_with_its_version(module: str) -> bool:
    """Whether a module is installed where its distribution is; one that is no copy (editable) lies anywhere."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    lies = os.path.realpath(str(spec.origin))
    return any(
        is_in(lies, os.path.realpath(str(metadata.distribution(owner).locate_file("")))) for owner in providers(module)
    )


def _has_files(module: str) -> bool:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.has_location


def tool_versions(declaration: TaskDescription) -> dict[str, str]:
    """The versions of the distributions a task depends on; of the optional ones, those that are installed.

    `python` is the one of the interpreter, whose minor releases bring new tables of Unicode and other codecs.
    Raises InvalidConfiguration where one is missing that must be there.
    """
    versions = {"python": "{}.{}".format(*sys.version_info)}
    for tool in (*declaration.tools, *declaration.optional_tools):
        version = _installed_version(tool)
        if version is not None:
            versions[tool] = version
        elif tool in declaration.tools:
            raise InvalidConfiguration(f"the task {declaration.name!r} needs {tool}, which is not installed")
    return versions


def check_planned(catalogue: TaskCatalogue, task: PlannedTask) -> None:
    """Refuse a task of a plan of which this process has another version. Raises ToolMismatch."""
    declaration = load_declaration(catalogue, task.name)
    here = {
        "version": declaration.version,
        "implementation_digest": implementation_digest(catalogue, declaration),
        "tools": tool_versions(declaration),
    }
    different = [field for field, value in here.items() if value != getattr(task, field)]
    if different:
        raise mismatch(task.name, different)


def mismatch(task: str, different: Sequence[str]) -> ToolMismatch:
    """What is raised where fields of a planned task are others here; without any, it is a task that it needs."""
    return ToolMismatch(
        f"the batch was planned with another version of {task} ({', '.join(different) or 'needed task'} differ)",
        hint="use the installation that created the batch, or make a new batch with: codebatch run PATH",
    )


def look_again() -> None:
    """Forget what was known of the packages that are installed: they may have been replaced."""
    package_digest.cache_clear()
    _installed_version.cache_clear()
    providers.cache_clear()
    _requirements.cache_clear()


@functools.cache
def _installed_version(distribution: str) -> str | None:
    """A distribution's version, None where it is not installed. Tasks share most of theirs."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
