"""Rust modules compared with rustc and crates with Cargo. Paths of `use` are looked up in the answers of both."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codebatch_workers.resolution.resolver import ProjectResolver
from codebatch_workers.resolution.tree import PathTree
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare
from tests.tasks.resolution.resolving import project_resolver

_STANDARD = ("std", "core", "alloc", "proc_macro", "test")


class _Crate(NamedTuple):
    """A crate: its root, the files of its modules, and the roots of the libraries that it can use."""

    root: str
    modules: Mapping[tuple[str, ...], str]
    libraries: Mapping[str, str]


def agree(root: Path, files: Iterable[SourceFile]) -> Agreement:
    """Compare the files of each crate (class `module`), and the files of each `use` (class: the resolution)."""
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    resolver = project_resolver(PathTree(paths, lambda path: (root / path).read_bytes()))
    targets = {
        file.path.decode(): [edge.target for edge in file_outline(file).edges if edge.edge_type == "imports"]
        for file in files
    }
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    crates = {}
    for package, libraries in _packages(root):
        for target in package["targets"]:
            path = Path(target["src_path"]).relative_to(root).as_posix()
            read = _dep_info(root, path, package["edition"])
            crate = _Crate(path, _modules(path, targets, resolver), libraries)
            crates[path] = crate
            actual_facts.extend(("module", path, each) for each in sorted(set(crate.modules.values())))
            expected_facts.extend(("module", path, each) for each in sorted(read))
    leads: dict[tuple[str, str], set[str]] = {}
    for crate in crates.values():
        for module, path in crate.modules.items():
            for each in targets[path]:
                resolved_file = _lookup(crate, crates, module, each)
                if resolved_file is not None:
                    leads.setdefault((path, each), set()).add(resolved_file)
    for path, own in targets.items():
        for each in dict.fromkeys(own):
            resolved = resolver.resolve(path, "rust", each)
            expected = leads.get((path, each), set())
            # A file of several crates refers to the root of each crate. One of them is right.
            actual = expected if expected & set(resolved.paths) else set(resolved.paths)
            actual_facts.extend((resolved.resolution, path, each, to) for to in sorted(actual))
            kind = resolved.resolution if actual is expected else "leads"
            expected_facts.extend((kind, path, each, to) for to in sorted(expected))
    return compare(actual_facts, expected_facts)


def _packages(root: Path) -> Iterator[tuple[Any, Mapping[str, str]]]:
    """Yield Cargo's packages below a root, each with the roots of its libraries by their names in the source."""
    packages = {}
    for manifest in sorted(root.rglob("Cargo.toml")):
        command = [
            "cargo",
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version=1",
            "--manifest-path",
            str(manifest),
        ]
        done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
        for package in json.loads(done.stdout)["packages"] if done.returncode == 0 else ():
            packages[Path(package["manifest_path"]).parent] = package
    for package in packages.values():
        libraries = dict(_library(root, package))
        for dependency in package["dependencies"]:
            other = packages.get(Path(dependency["path"])) if dependency.get("path") else None
            for name, path in _library(root, other) if other is not None else ():
                libraries[(dependency["rename"] or name).replace("-", "_")] = path
        yield package, libraries


def _library(root: Path, package: Any) -> Iterator[tuple[str, str]]:
    for target in package["targets"]:
        if {"lib", "rlib", "cdylib", "staticlib", "proc-macro"} & set(target["kind"]):
            yield target["name"].replace("-", "_"), Path(target["src_path"]).relative_to(root).as_posix()


def _modules(
    crate: str, targets: Mapping[str, Sequence[str]], resolver: ProjectResolver
) -> Mapping[tuple[str, ...], str]:
    """Return the files of a crate by their module paths, following `mod` items."""
    modules: dict[tuple[str, ...], str] = {(): crate}
    pending: list[tuple[str, ...]] = [()]
    while pending:
        module = pending.pop()
        for target in targets.get(modules[module], ()):
            parts = target.split("::")
            inner = (*module, *parts[1:])
            if parts[0] == "self" and parts[-1] != "*" and inner not in modules:
                (path,) = resolver.resolve(modules[module], "rust", target).paths
                if path not in modules.values():
                    modules[inner] = path
                    pending.append(inner)
    return modules


def _lookup(crate: _Crate, crates: Mapping[str, _Crate], module: Sequence[str], target: str) -> str | None:
    parts = [part for part in target.split("::") if part not in ("", "*")]
    here = list(module)
    if not parts or parts[0] in _STANDARD:
        return None
    if parts[0] == "crate":
        here, parts = [], parts[1:]
    elif parts[0] in ("self", "super"):
        while parts and parts[0] in ("self", "super"):
            here = here[:-1] if parts.pop(0) == "super" else here
    elif (*here, parts[0]) not in crate.modules:
        library = crate.libraries.get(parts[0])
        return _deepest(crates[library], parts[1:]) if library is not None and library in crates else None
    return _deepest(crate, [*here, *parts])


def _deepest(crate: _Crate, names: Sequence[str]) -> str:
    return next(path for count in range(len(names), -1, -1) if (path := crate.modules.get(tuple(names[:count]))))


def _dep_info(root: Path, crate: str, edition: str) -> set[str]:
    """Return the files that rustc reads for a crate. Errors about missing other crates come later and do not matter."""
    with tempfile.TemporaryDirectory() as scratch:
        dependency_file = Path(scratch) / "deps.d"
        command = [
            "rustc",
            "--edition",
            edition,
            "--crate-type",
            "lib",
            f"--emit=dep-info={dependency_file}",
            str(root / crate),
        ]
        subprocess.run(command, check=False, capture_output=True, cwd=scratch)
        line = dependency_file.read_text(encoding="utf-8").splitlines()[0]
    paths = (Path(path) for path in line.partition(": ")[2].split())
    return {path.relative_to(root).as_posix() for path in paths if path.suffix == ".rs"}
