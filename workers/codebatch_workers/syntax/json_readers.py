"""How the readers of a JSON file parse it: with comments, or strictly."""

from __future__ import annotations

from codebatch_workers.syntax.source import SourceFile

_STRICT_NAMES = frozenset(
    (b"package.json", b"package-lock.json", b"npm-shrinkwrap.json", b"composer.json", b"bower.json")
)


def has_tolerant_reader(file: SourceFile) -> bool:
    """Return whether a file is JSON with comments, by its name or since it holds some."""
    return file.language == "jsonc" or (file.language == "json" and bool(file.captures.get("comment")))


def has_strict_reader(file: SourceFile) -> bool:
    """Return whether a file is known to be read as JSON and nothing else: manifests of packages, formats of data."""
    name = file.path.rpartition(b"/")[2]
    return file.language == "json" and (name in _STRICT_NAMES or not name.endswith(b".json"))
