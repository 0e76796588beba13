"""Trees in memory in which imports are resolved."""

from __future__ import annotations

import random
from collections.abc import Mapping

from codebatch_workers.resolution import JvmDefinitions, ProjectResolver

Files = dict[str, str]


def tree(paths: str) -> Files:
    """Empty files at these paths."""
    return dict.fromkeys(paths.split(), "")


def resolver(files: Files) -> ProjectResolver:
    """A resolver over a tree in memory."""
    return ProjectResolver(files, lambda path: files[path].encode())


def answer(
    files: Files, path: str, language: str, target: str, definitions: Mapping[str, JvmDefinitions] | None = None
) -> tuple[str, str]:
    """What a resolver says, and that it says so whatever the order of the paths."""
    defined = definitions or {}
    resolved = ProjectResolver(files, lambda name: files[name].encode(), lambda: defined).resolve(
        path, language, target
    )
    shuffled = list(files)
    random.Random(target).shuffle(shuffled)
    turned = dict(reversed(list(defined.items())))
    again = ProjectResolver(shuffled, lambda name: files[name].encode(), lambda: turned)
    assert again.resolve(path, language, target) == resolved
    return resolved.resolution, " ".join(resolved.paths)
