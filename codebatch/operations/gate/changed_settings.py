"""Settings of the check that the change under review changes: it can hide its own findings by them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from codebatch.compare.conditions import GATE_CHANGED, Condition, ConditionResult, Verdict
from codebatch.errors import BatchIncomplete, CodebatchError
from codebatch.git.ancestry import Repository
from codebatch.git.changed_lines import changed_paths
from codebatch.git.repository import GitError
from codebatch.model.entry import display_path
from codebatch.model.gitignore import parse_arguments
from codebatch.model.text.toml import TomlError, parse_toml
from codebatch.operations.history.checkouts import find_source_repository
from codebatch.operations.project.configuration import PYPROJECT_BYTES_MAX
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.system.files.regular_files import read_regular

_SETTINGS_FILE = b"codebatch.toml"
_PYPROJECT = b"pyproject.toml"
_OTHER_FILES = frozenset({b".codebatchignore", b".gitattributes"})
# All other settings decide how the work is done, and not what is found.
_DECIDING_KEYS = frozenset(
    {"exclude", "file_seconds_max", "include", "memory_mb_max", "pipeline", "pipelines", "project_seconds_max", "tasks"}
)
_Settings = Mapping[str, object]


def changed_settings_of(head: BatchDir, base: BatchDir, conditions: Sequence[Condition]) -> tuple[str, ...] | None:
    """Return the settings that the change changes. Return None if the commit of the base is not in the clone.

    Raises BatchIncomplete if a condition needs them nevertheless.
    """
    about = base.about
    try:
        return _find_changed_settings(head, about.commit) if about.is_clean else ()
    except GitError as error:
        if all(condition.text != GATE_CHANGED for condition in conditions):
            return None
        message = f"cannot tell which settings of the check changed since commit {about.commit[:12]}: {error}"
        raise BatchIncomplete(message, hint="fetch this commit, or give a base: codebatch check BASE") from error


def with_settings(result: ConditionResult, changed: Sequence[str]) -> ConditionResult:
    """Return the result of a condition. That of `gate-changed` depends on the changed settings."""
    if result.condition != GATE_CHANGED:
        return result
    verdict: Verdict = "failed" if changed else "passed"
    return msgspec.structs.replace(result, value=len(changed), violations=len(changed), verdict=verdict)


def _find_changed_settings(head: BatchDir, base_commit: str) -> tuple[str, ...]:
    """Return the files, and the keys in them, that decide about findings and differ from a commit, sorted.

    Return none outside of git. Raises GitError.
    """
    repository_and_directory = find_source_repository(head.about.sources) if base_commit else None
    if repository_and_directory is None:
        return ()
    repository = Repository(*repository_and_directory)
    commit = head.about.commit if head.about.is_clean else None
    changed: list[str] = []
    config_files = set[str]()
    paths = changed_paths(repository, base_commit, commit)
    for path in paths:
        if path.rpartition(b"/")[2] in (_SETTINGS_FILE, _PYPROJECT):
            sides = [_read_settings(repository, at, path) for at in (base_commit, commit)]
            config_files.update(*map(_config_files, sides))
            keys = sorted(_changed_keys(*sides))
            changed += [f"{display_path(path)}: {', '.join(keys)}"] * bool(keys)
        elif path.rpartition(b"/")[2] in _OTHER_FILES:
            changed.append(display_path(path))
    for name in (_SETTINGS_FILE, _PYPROJECT):
        config_files |= _config_files(_read_settings(repository, commit, name))
    selected = parse_arguments(sorted(config_files), "config_files")
    changed += [display_path(path) for path in paths if selected.selects(path)]
    return tuple(sorted(set(changed)))


def _read_settings(repository: Repository, commit: str | None, path: bytes) -> _Settings:
    """Return the settings in a file of a commit, or of the work tree. They are empty if the file cannot be read."""
    with suppress(GitError, OSError, UnicodeDecodeError, TomlError, CodebatchError):
        if commit is None:
            data = read_regular(
                os.path.join(repository.directory, path), bytes_max=PYPROJECT_BYTES_MAX, is_link_followed=False
            )
        else:
            data = repository.query("cat-file", "blob", b"%s:./%s" % (commit.encode(), path))
        document = parse_toml(data.decode())
        if not path.endswith(_PYPROJECT):
            return document
        tool = document.get("tool")
        own = tool.get("codebatch") if isinstance(tool, dict) else None
        return own if isinstance(own, dict) else {}
    return {}


def _changed_keys(old: _Settings, new: _Settings) -> set[str]:
    before, after = (dict(_flat({name: table[name] for name in table.keys() & _DECIDING_KEYS})) for table in (old, new))
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _flat(table: _Settings, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _config_files(settings: _Settings) -> set[str]:
    """Return the patterns of configuration files of linters."""
    values = (value for name, value in _flat(settings) if name.endswith(".config_files") and isinstance(value, list))
    return {pattern for patterns in values for pattern in patterns if isinstance(pattern, str)}
