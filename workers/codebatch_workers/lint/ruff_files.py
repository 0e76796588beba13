"""ruff's configuration files in a snapshot: with `[tasks.lint.ruff] config = "project"` they are part of lint's key."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator

import msgspec

from codebatch.errors import InvalidConfiguration
from codebatch.model.entry import path_fields
from codebatch.model.task import SnapshotView
from codebatch.model.toml import TomlError, parse_toml
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.settings import RuffSettings

_NAMES = ("ruff.toml", ".ruff.toml", "pyproject.toml")
_EXTENDS_MAX = 10


def with_ruff_files(config: LintConfig, load: Callable[[], SnapshotView] | None) -> tuple[LintConfig, str]:
    """`TaskDeclaration.prepare` of lint: with the tree's own files where the project is to say, pinned elsewhere."""
    if config.ruff.config == "pinned":
        return config, ""
    if load is None:
        return msgspec.structs.replace(config, ruff=RuffSettings()), "ruff: the pinned rules"
    ruff = RuffSettings(config="project", files=_ruff_files(load()))
    return msgspec.structs.replace(config, ruff=ruff), ""


def _ruff_files(snapshot: SnapshotView) -> dict[str, str]:
    """The files that configure ruff, and those that they extend, by path. Raises InvalidConfiguration.

    One below a directory whose name is no UTF-8 is passed over, for a configuration is JSON, which cannot say its path.
    """
    found: dict[str, str] = {}
    for entry in snapshot.entries:
        path, _ = path_fields(entry.path)
        if entry.kind == "file" and isinstance(path, str) and posixpath.basename(path) in _NAMES:
            found.update(_with_extended(snapshot, path))
    return dict(sorted(found.items()))


def _with_extended(snapshot: SnapshotView, path: str) -> Iterator[tuple[str, str]]:
    wanted = path
    for _ in range(_EXTENDS_MAX):
        content = snapshot.read(wanted.encode())
        if content is None:
            raise InvalidConfiguration(
                f"ruff's configuration in {path} extends {wanted}, which is not in the snapshot",
                hint='set [tasks.lint.ruff] config = "pinned"',
            )
        text = content.decode("utf-8", "replace")
        settings = _settings(text, wanted)
        # A pyproject.toml without a table for ruff still says which Python is meant.
        yield wanted, text
        extended = settings.get("extend")
        if not isinstance(extended, str):
            return
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(wanted), extended))


def _settings(text: str, path: str) -> dict[str, object]:
    try:
        document = parse_toml(text)
    except TomlError:
        return {}
    if posixpath.basename(path) != "pyproject.toml":
        return document
    tool = document.get("tool")
    ruff = tool.get("ruff") if isinstance(tool, dict) else None
    return ruff if isinstance(ruff, dict) else {}
