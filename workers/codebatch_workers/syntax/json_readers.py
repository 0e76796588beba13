"""The JSON dialect that programs accept in a file: with comments, or strict."""

from __future__ import annotations

from codebatch_workers.syntax.source import SourceFile

_STRICT_NAMES = frozenset(
    (b"package.json", b"package-lock.json", b"npm-shrinkwrap.json", b"composer.json", b"bower.json")
)


def has_tolerant_reader(file: SourceFile) -> bool:
    """Return whether a file is JSON with comments: by its name, or because it has comments."""
    return file.language == "jsonc" or (file.language == "json" and bool(file.captures.get("comment")))


def has_strict_reader(file: SourceFile) -> bool:
    """Return whether a file is always read as strict JSON: package manifests and data formats."""
    name = file.path.rpartition(b"/")[2]
    return file.language == "json" and (name in _STRICT_NAMES or not name.endswith(b".json"))
