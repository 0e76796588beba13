"""Trees in memory, to resolve imports in."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from codebatch_workers.languages.registry import import_rule
from codebatch_workers.resolution.import_rule import ImportContext, PackageDefinitions
from codebatch_workers.resolution.resolver import ProjectResolver
from codebatch_workers.resolution.tree import PathTree

Files = dict[str, str]


def project_resolver(
    tree: PathTree, definitions: Callable[[], Mapping[str, PackageDefinitions]] = dict
) -> ProjectResolver:
    """Return a resolver with the rules of all languages."""
    return ProjectResolver(ImportContext(tree, definitions), import_rule)


def tree(paths: str) -> Files:
    """Return empty files at these paths."""
    return dict.fromkeys(paths.split(), "")


def resolver(files: Files) -> ProjectResolver:
    """Return a resolver over a tree in memory."""
    return project_resolver(PathTree(files, lambda path: files[path].encode()))


def answer(
    files: Files, path: str, language: str, target: str, definitions: Mapping[str, PackageDefinitions] | None = None
) -> tuple[str, str]:
    """Return the answer of a resolver, and check that it does not depend on the order of paths."""
    defined = definitions or {}
    resolved = project_resolver(PathTree(files, lambda name: files[name].encode()), lambda: defined).resolve(
        path, language, target
    )
    shuffled = list(files)
    random.Random(target).shuffle(shuffled)
    turned = dict(reversed(list(defined.items())))
    second = project_resolver(PathTree(shuffled, lambda name: files[name].encode()), lambda: turned)
    assert second.resolve(path, language, target) == resolved
    return resolved.resolution, " ".join(resolved.paths)
