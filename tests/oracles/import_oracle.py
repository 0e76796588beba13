"""Resolutions of imports compared with the tools of the languages.

A fact is (resolution, importing file, target, resolved file). A fact that only a tool reports has the class `leads`.
"""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from codebatch_workers.resolution.tree import PathTree
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Explain, Fact, compare
from tests.support import corpora
from tests.tasks.resolution.resolving import project_resolver

_HERE = Path(__file__).parent


class Lead(NamedTuple):
    """An import with its target, and the file that it refers to."""

    source: str
    target: str
    file: str


# A function of a tool: it yields the resolved files of (file, target) pairs.
Ask = Callable[[Sequence[tuple[str, str]]], Iterable[Lead]]


def agree(
    root: Path,
    files: Iterable[SourceFile],
    ask: Ask,
    explain: Explain = lambda _side, _fact: None,
) -> Agreement:
    """Compare the resolutions of the imports of files below a root with the answers of `ask`."""
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    resolver = project_resolver(PathTree(paths, lambda path: (root / path).read_bytes()))
    resolutions: dict[Lead, str] = {}
    imports: dict[tuple[str, str], None] = {}
    for file in files:
        path = file.path.decode()
        for edge in file_outline(file).edges:
            if edge.edge_type == "imports":
                resolved = resolver.resolve(path, file.language, edge.target, is_module=edge.is_module)
                imports[path, edge.target] = None
                resolutions.update({Lead(path, edge.target, to): resolved.resolution for to in resolved.paths})
    actual_facts: list[Fact] = [(resolution, *lead) for lead, resolution in resolutions.items()]
    expected_facts: list[Fact] = [(resolutions.get(lead, "leads"), *lead) for lead in set(ask(list(imports)))]
    return compare(actual_facts, expected_facts, explain)


# -- Python -----------------------------------------------------------------------------------------------------------


def importlib_leads(root: Path, roots: Sequence[str]) -> Ask:
    """Return a function that uses importlib's PathFinder.

    Its path has `roots`, and the directory of a script or of the outermost package.
    """

    def ask(imports: Sequence[tuple[str, str]]) -> Iterator[Lead]:
        places = tuple(str((root / search_root).resolve()) for search_root in roots)
        for source in dict.fromkeys(source for source, _ in imports):
            directory = (root / source).parent
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    tree = ast.parse((root / source).read_bytes())
            except (SyntaxError, ValueError):
                continue
            for node in _statements(tree):
                for target, level, names in _imported_names(node):
                    resolved = _resolved_file(directory, level, names, places)
                    if resolved is not None and resolved.is_relative_to(root):
                        yield Lead(source, target, resolved.relative_to(root).as_posix())

    return ask


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement. Expressions contain no imports."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, name, ())


def _imported_names(node: ast.AST) -> Iterator[tuple[str, int, list[list[str]]]]:
    """Yield for each imported name: the target as in codebatch's edges, the level, and the modules that it may mean."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            parts = alias.name.split(".")
            yield alias.name, 0, [parts[:count] for count in range(len(parts), 0, -1)]
    elif isinstance(node, ast.ImportFrom):
        module = node.module.split(".") if node.module else []
        for alias in node.names:
            prefix = "." * node.level + (f"{node.module}." if node.module else "")
            choices = [module] if alias.name == "*" else [[*module, alias.name], module]
            yield prefix + alias.name, node.level, choices


@functools.cache
def _outermost_package(directory: Path) -> str:
    """Return the directory that contains the outermost package of a directory."""
    while (directory / "__init__.py").exists():
        directory = directory.parent
    return str(directory)


def _resolved_file(directory: Path, level: int, choices: list[list[str]], roots: tuple[str, ...]) -> Path | None:
    top = _outermost_package(directory)
    for _ in range(level - 1):
        directory = directory.parent
    for parts in choices:
        if not parts:
            package = directory / "__init__.py"
            return package if package.exists() else None
        for path in [(str(directory),)] if level else [(top,), roots]:
            resolved = _by_path_finder(tuple(parts), path)
            if resolved is not None:
                return resolved
            if parts[0] in sys.stdlib_module_names and not level:
                break
    return None


@functools.cache
def _by_path_finder(parts: tuple[str, ...], path: tuple[str, ...]) -> Path | None:
    spec = _spec(parts, path)
    return None if spec is None or spec.origin is None else Path(spec.origin)


@functools.cache
def _spec(parts: tuple[str, ...], path: tuple[str, ...]) -> importlib.machinery.ModuleSpec | None:
    locations: Sequence[str] = path
    if parts[:-1]:
        package = _spec(parts[:-1], path)
        if package is None or package.submodule_search_locations is None:
            return None
        # The list of locations of a namespace package looks up its parent by name. Here, it has none.
        locations = getattr(package.submodule_search_locations, "_path", package.submodule_search_locations)
    return importlib.machinery.PathFinder.find_spec(parts[-1], list(locations))


# -- JavaScript, TypeScript -------------------------------------------------------------------------------------------


def tsc_leads(root: Path) -> Ask:
    """Return a function that uses `ts.resolveModuleName`, with the options of the nearest tsconfig.json."""

    def ask(imports: Sequence[tuple[str, str]]) -> Iterator[Lead]:
        library = corpora.npm("typescript", "5.6.3") / "lib" / "typescript.js"
        command = ["node", str(_HERE / "resolve.js"), str(library), str(root)]
        done = subprocess.run(command, input=json.dumps(imports), check=True, capture_output=True, encoding="utf-8")
        for source, target, found in json.loads(done.stdout):
            if Path(found).is_relative_to(root):
                yield Lead(source, target, Path(found).relative_to(root).as_posix())

    return ask


_COMPILER_READS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json")


def explain_tsc(side: str, fact: Fact) -> str | None:
    """The compiler resolves only modules of its own languages, and `.json` files only if the import has the suffix."""
    source, target, file = (str(part) for part in fact[1:])
    if side == "extra" and not file.endswith(_COMPILER_READS):
        return "reads no such file"
    is_json = file.endswith(".json") and not target.endswith(".json") and source.endswith(".js")
    return "looks for no such file, which node does" if side == "extra" and is_json else None


# -- Go ---------------------------------------------------------------------------------------------------------------


def go_list_leads(root: Path) -> Ask:
    """Return a function that uses `go list` on the packages of each module.

    The go.mod has no requirements, because `go list` would download them.
    """

    def ask(imports: Sequence[tuple[str, str]]) -> Iterator[Lead]:
        modules = [file for file in sorted(root.rglob("go.mod")) if "testdata" not in file.parts]
        for module in modules:
            packages = {package["ImportPath"]: package for package in _packages_of(module)}
            for source, target in imports:
                nearest = next(
                    directory
                    for directory in (root / source).parents
                    if (directory / "go.mod").exists() or directory == root
                )
                if nearest == module.parent and target in packages:
                    package = packages[target]
                    for kind in ("GoFiles", "CgoFiles", "IgnoredGoFiles"):
                        for name in package.get(kind, ()):
                            if not name.endswith("_test.go"):
                                yield Lead(source, target, (Path(package["Dir"]) / name).relative_to(root).as_posix())

    return ask


def _packages_of(module: Path) -> Iterator[dict[str, Any]]:
    environment = {**os.environ, "GOPROXY": "off", "GOFLAGS": "-mod=mod", "GO111MODULE": "on", "GOWORK": "off"}
    with tempfile.TemporaryDirectory() as scratch:
        bare = Path(scratch) / "go.mod"
        lines = module.read_text(encoding="utf-8").splitlines()
        bare.write_text("\n".join(line for line in lines if line.startswith(("module ", "go "))), encoding="utf-8")
        command = ["go", "list", "-e", "-find", f"-modfile={bare}", "-json", "./..."]
        done = subprocess.run(
            command, cwd=module.parent, env=environment, check=True, capture_output=True, encoding="utf-8"
        )
    yield from _documents(done.stdout)


def _documents(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    place = 0
    while place < len(text.rstrip()):
        document, place = decoder.raw_decode(text, place)
        place += len(text[place:]) - len(text[place:].lstrip())
        yield document


# -- Java -------------------------------------------------------------------------------------------------------------


def javac_leads(root: Path, roots: Sequence[str]) -> Ask:
    """Return a function that uses javac to find the source of each class, with `roots` as the source path."""

    def ask(imports: Sequence[tuple[str, str]]) -> Iterator[Lead]:
        path = os.pathsep.join(str(root / source_root) for source_root in roots)
        targets = sorted({target for _, target in imports})
        command = ["java", str(_HERE / "Sources.java"), path]
        done = subprocess.run(command, input="\n".join(targets), check=True, capture_output=True, encoding="utf-8")
        sources: dict[str, list[str]] = {}
        for line in done.stdout.splitlines():
            target, file = line.split("\t")
            sources.setdefault(target, []).append(Path(file).relative_to(root).as_posix())
        for source, target in imports:
            yield from (Lead(source, target, file) for file in sources.get(target, ()))

    return ask


# -- C, C++ -----------------------------------------------------------------------------------------------------------

_ENTERED = re.compile(r"(\.+) (.+)")
_MISSING = re.compile(r"fatal error: ([^:\n]+): No such file")
_MISSING_MAX = 50


def compiler_leads(root: Path, options: Sequence[str]) -> Ask:
    """Return a function that uses the preprocessor's list of included files.

    Headers that this system does not have are replaced by empty files.
    """

    def ask(imports: Sequence[tuple[str, str]]) -> Iterator[Lead]:
        targets: dict[str, list[str]] = {}
        for source, target in imports:
            targets.setdefault(source, []).append(target)
        entered: set[tuple[str, str]] = set()
        with tempfile.TemporaryDirectory() as empty:
            for source in sorted(targets):
                if not source.endswith((".h", ".hpp")):
                    entered.update(_entered_files(root, source, options, Path(empty)))
        for source, file in sorted(entered):
            for target in targets.get(source, ()):
                if f"/{file}".endswith(f"/{os.path.normpath(target).lstrip('./')}"):
                    yield Lead(source, target, file)

    return ask


def _entered_files(root: Path, source: str, options: Sequence[str], empty: Path) -> Iterator[tuple[str, str]]:
    written = [f"-I{root / option}" for option in options]
    report = ""
    for _ in range(_MISSING_MAX):
        command = ["cc", "-E", "-H", "-o", os.devnull, *written, "-idirafter", str(empty), str(root / source)]
        done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", errors="replace")
        report = done.stderr
        missing = _MISSING.search(report)
        if missing is None:
            break
        stub = empty / missing[1]
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.touch()
    stack = [root / source]
    for match in filter(None, map(_ENTERED.fullmatch, report.splitlines())):
        file = Path(os.path.normpath(match[2]))
        del stack[len(match[1]) :]
        if stack[-1].is_relative_to(root) and file.is_relative_to(root):
            yield stack[-1].relative_to(root).as_posix(), file.relative_to(root).as_posix()
        stack.append(file)


def _explain_conditional(leads: Iterable[Lead], side: str, fact: Fact) -> str | None:
    """A compiler enters one arm of a conditional, a guarded header once, and only headers that something includes."""
    is_known = any((lead.source, lead.target) == fact[1:3] for lead in leads)
    return "enters one arm of a conditional, and a header once" if side == "extra" and not is_known else None


def agree_with_compiler(root: Path, files: Iterable[SourceFile], options: Sequence[str]) -> Agreement:
    """Compare the resolutions of includes with the preprocessor's, for the includes that it reports."""
    leads: list[Lead] = []

    def ask(imports: Sequence[tuple[str, str]]) -> list[Lead]:
        leads.extend(compiler_leads(root, options)(imports))
        return leads

    return agree(root, files, ask, partial(_explain_conditional, leads))
