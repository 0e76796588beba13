"""Trees in memory in which imports are resolved."""

from __future__ import annotations

import random

from codebatch_workers.resolution import Resolver

Files = dict[str, str]


def tree(paths: str) -> Files:
    """Empty files at these paths."""
    return dict.fromkeys(paths.split(), "")


def resolver(files: Files) -> Resolver:
    """A resolver over a tree in memory."""
    return Resolver(files, lambda path: files[path].encode())


def answer(files: Files, path: str, language: str, target: str) -> tuple[str, str]:
    """What a resolver says, and that it says so whatever the order of the paths."""
    resolved = resolver(files).resolve(path, language, target)
    shuffled = list(files)
    random.Random(target).shuffle(shuffled)
    assert Resolver(shuffled, lambda name: files[name].encode()).resolve(path, language, target) == resolved
    return resolved.resolution, " ".join(resolved.paths)
