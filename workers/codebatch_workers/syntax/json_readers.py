"""The dialect of JSON that the readers of a file accept: strict JSON, or JSON with comments."""

from __future__ import annotations

from codebatch_workers.syntax.source import SourceFile

_STRICT_NAMES = frozenset(
    (b"package.json", b"package-lock.json", b"npm-shrinkwrap.json", b"composer.json", b"bower.json")
)


def has_tolerant_reader(file: SourceFile) -> bool:
    """Return whether the readers of a JSON file accept comments. Its name shows this, or it contains comments."""
    return file.syntax.json_dialect == "tolerant" or (
        file.syntax.json_dialect == "strict" and bool(file.captures.get("comment"))
    )


def has_strict_reader(file: SourceFile) -> bool:
    """Return whether the readers of a file certainly accept only strict JSON.

    Examples are package manifests and data formats.
    """
    name = file.path.rpartition(b"/")[2]
    return file.syntax.json_dialect == "strict" and (name in _STRICT_NAMES or not name.endswith(b".json"))
