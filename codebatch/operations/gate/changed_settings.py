"""Settings, programs and tasks by which the change under review can hide its own findings."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import msgspec

from codebatch.compare.conditions import GATE_CHANGED, ConditionResult, Verdict
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
_RUFF_FILES = (b"ruff.toml", b".ruff.toml")
_RUFF = "tool.ruff"
# All other settings decide how the work is done, and not what is found.
_DECIDING_KEYS = frozenset(
    {"exclude", "file_seconds_max", "include", "memory_mb_max", "pipeline", "pipelines", "project_seconds_max", "tasks"}
)
_Settings = Mapping[str, object]


class ChangedSettings(NamedTuple):
    """The settings that a change changes.

    - `texts`: the files, and the keys in them, sorted.
    - `paths`: the paths of these files below the source.
    - `programs`: the changed files that a task executes.
    - `unknown_reason`: why the settings are unknown, or empty.
    """

    texts: tuple[str, ...] = ()
    paths: tuple[bytes, ...] = ()
    programs: tuple[str, ...] = ()
    unknown_reason: str = ""


def changed_settings_of(head: BatchDir, base: BatchDir, *, is_required: bool) -> ChangedSettings:
    """Return the settings that the change changes.

    Raises BatchIncomplete if they are unknown and `is_required` is set.
    """
    about = base.about
    try:
        if not about.is_clean:
            raise GitError("the base has uncommitted changes" if about.commit else "the base is not a git commit")
        return _find_changed_settings(head, about.commit)
    except GitError as error:
        if not is_required:
            return ChangedSettings(unknown_reason=str(error))
        message = (
            f"cannot tell which settings of the check changed since {about.commit[:12] or about.batch_id}: {error}"
        )
        raise BatchIncomplete(message, hint="fetch the commit, or give another base: codebatch check BASE") from error


def with_settings(result: ConditionResult, changed: Sequence[str]) -> ConditionResult:
    """Return the result of a condition. That of `gate-changed` depends on the changed settings."""
    if result.condition != GATE_CHANGED:
        return result
    verdict: Verdict = "failed" if changed else "passed"
    return msgspec.structs.replace(result, value=len(changed), violations=len(changed), verdict=verdict)


def _find_changed_settings(head: BatchDir, base_commit: str) -> ChangedSettings:
    """Return the settings that decide about findings and differ from a commit. Raises GitError."""
    repository_and_directory = find_source_repository(head.about.sources)
    if repository_and_directory is None:
        raise GitError("the directory that was analysed is not in a git work tree here")
    repository = Repository(*repository_and_directory)
    commit = head.about.commit if head.about.is_clean else None
    paths = changed_paths(repository, base_commit, commit)
    changed: dict[bytes, str] = {}
    programs = list[str]()
    root_files = (_SETTINGS_FILE, _PYPROJECT, *_RUFF_FILES)
    named = _NamedFiles([_read_settings(repository, commit, name) for name in root_files])
    for path in paths:
        name = path.rpartition(b"/")[2]
        if name in (_SETTINGS_FILE, _PYPROJECT):
            sides = [_read_settings(repository, at, path) for at in (base_commit, commit)]
            named.add(sides)
            if keys := _changed_keys(_DECIDING_KEYS | ({_RUFF} if named.uses_ruff else set()), *sides):
                changed[path] = f"{display_path(path)}: {', '.join(sorted(keys))}"
    linked = {os.path.realpath(os.path.join(repository.directory, name)) for name in (_SETTINGS_FILE, _PYPROJECT)}
    for path in paths:
        is_linked = path.rpartition(b"/")[2] != _PYPROJECT and os.path.join(repository.directory, path) in linked
        is_selected = path.rpartition(b"/")[2] in _OTHER_FILES or named.selects(path)
        if is_selected or named.executes(path) or (is_linked and path != _SETTINGS_FILE):
            changed.setdefault(path, display_path(path))
        if not is_selected and named.executes(path):
            programs.append(display_path(path))
    return ChangedSettings(tuple(sorted(changed.values())), tuple(sorted(changed)), tuple(programs))


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
    ruff = {_RUFF: tool["ruff"]} if path.endswith(_PYPROJECT) and isinstance(tool, dict) and "ruff" in tool else {}
    return (own if isinstance(own, dict) else {}) | ruff


class _NamedFiles:
    """The files that settings name and that decide about findings: configuration files, programs and custom tasks.

    `uses_ruff` is set if lint uses the project's configuration of ruff.
    """

    def __init__(self, tables: Iterable[_Settings | None]) -> None:
        self._patterns = set[str]()
        self._paths = set[str]()
        self._extended = set[bytes]()
        self.uses_ruff = False
        self.add(tables)

    def add(self, tables: Iterable[_Settings | None]) -> None:
        """Add the files that some settings name."""
        for name, value in chain.from_iterable(_flat(table or {}) for table in tables):
            texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
            key = name.rpartition(".")[2]
            if key == "config_files":
                self._patterns.update(texts)
            elif name == "tasks.lint.ruff.config" and value == "project":
                self.uses_ruff = True
            elif key == "extend":  # A file with settings of ruff extends another file.
                self._extended.update(os.path.normpath(text).encode() for text in texts)
            elif key in ("command", "files", "python"):  # `tools/own.py:task` names a function in a file.
                self._paths.update(os.path.normpath(part) for text in texts for part in (text, text.rpartition(":")[0]))

    @cached_property
    def _selected(self) -> PatternList:
        return parse_arguments(sorted(self._patterns), "config_files")

    def selects(self, path: bytes) -> bool:
        """Return whether a file configures a program."""
        is_of_ruff = path.rpartition(b"/")[2] in _RUFF_FILES or path in self._extended
        return bool(self._selected.selects(path)) or (is_of_ruff and self.uses_ruff)

    def executes(self, path: bytes) -> bool:
        """Return whether a file is a program, or an argument or input of one."""
        return os.fsdecode(path) in self._paths


def _changed_keys(keys: Collection[str], old: _Settings | None, new: _Settings | None) -> set[str]:
    if old is None or new is None:
        return {"cannot be read"}
    before, after = (dict(_flat({name: table[name] for name in table.keys() & keys})) for table in (old, new))
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _flat(table: _Settings, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
