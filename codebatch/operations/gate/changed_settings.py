"""Settings, programs and tasks by which the change under review can hide its own findings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

import msgspec

from codebatch.compare.conditions import GATE_CHANGED, Condition, ConditionResult, Verdict
from codebatch.errors import BatchIncomplete
from codebatch.git.ancestry import Repository
from codebatch.git.changed_lines import changed_paths
from codebatch.git.repository import GitError
from codebatch.model.entry import display_path
from codebatch.model.gitignore import PatternList, parse_arguments
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
    paths = changed_paths(repository, base_commit, commit)
    changed = set[str]()
    named = _NamedFiles([_read_settings(repository, commit, name) for name in (_SETTINGS_FILE, _PYPROJECT)])
    for path in paths:
        name = path.rpartition(b"/")[2]
        if name in (_SETTINGS_FILE, _PYPROJECT):
            sides = [_read_settings(repository, at, path) for at in (base_commit, commit)]
            named.add(sides)
            if keys := _changed_keys(*sides):
                changed.add(f"{display_path(path)}: {', '.join(sorted(keys))}")
    linked = {os.path.realpath(os.path.join(repository.directory, name)) for name in (_SETTINGS_FILE, _PYPROJECT)}
    for path in paths:
        is_linked = path.rpartition(b"/")[2] != _PYPROJECT and os.path.join(repository.directory, path) in linked
        if path.rpartition(b"/")[2] in _OTHER_FILES or named.has(path) or (is_linked and path != _SETTINGS_FILE):
            changed.add(display_path(path))
    return tuple(sorted(changed))


def _read_settings(repository: Repository, commit: str | None, path: bytes) -> _Settings | None:
    """Return the settings in a file of a commit, or of the work tree. Return None if the file cannot be read.

    A link cannot be read. If the file does not exist, there are no settings.
    """
    try:
        if commit is None:
            place = os.path.join(repository.directory, path)
            data = read_regular(place, bytes_max=PYPROJECT_BYTES_MAX, is_link_followed=False)
        else:
            data = repository.query("cat-file", "blob", b"%s:./%s" % (commit.encode(), path))
    except (FileNotFoundError, GitError):
        return {}
    except OSError:
        return None
    try:
        document = parse_toml(data.decode())
    except (UnicodeDecodeError, TomlError):
        return None
    tool = document.get("tool") if path.endswith(_PYPROJECT) else {"codebatch": document}
    own = tool.get("codebatch") if isinstance(tool, dict) else None
    return own if isinstance(own, dict) else {}


class _NamedFiles:
    """The files that settings name and that decide about findings: configuration files, programs and custom tasks."""

    def __init__(self, tables: Iterable[_Settings | None]) -> None:
        self._patterns = set[str]()
        self._paths = set[str]()
        self.add(tables)

    def add(self, tables: Iterable[_Settings | None]) -> None:
        """Add the files that some settings name."""
        for name, value in chain.from_iterable(_flat(table or {}) for table in tables):
            texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
            key = name.rpartition(".")[2]
            if key == "config_files":
                self._patterns.update(texts)
            elif key in ("command", "python"):  # `tools/own.py:task` names a function in a file.
                self._paths.update(os.path.normpath(part) for text in texts for part in (text, text.rpartition(":")[0]))

    @cached_property
    def _selected(self) -> PatternList:
        return parse_arguments(sorted(self._patterns), "config_files")

    def has(self, path: bytes) -> bool:
        """Return whether the settings name a file."""
        return bool(self._selected.selects(path)) or os.fsdecode(path) in self._paths


def _changed_keys(old: _Settings | None, new: _Settings | None) -> set[str]:
    if old is None or new is None:
        return {"cannot be read"}
    before, after = (dict(_flat({name: table[name] for name in table.keys() & _DECIDING_KEYS})) for table in (old, new))
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _flat(table: _Settings, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
