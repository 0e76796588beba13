"""Configuration files of ruff in a snapshot.

They are a context of lint if `[tasks.lint.ruff] config = "project"`. A context is a value computed from the snapshot
that the result of a task may depend on.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping

import msgspec

from codebatch.errors import InvalidConfiguration
from codebatch.model.entry import Entry, display_path, is_safe_path
from codebatch.model.nearest_directories import DirectoryMap, parent_directory
from codebatch.model.task import ContextFactory, SnapshotView
from codebatch.model.text.toml import TomlError, parse_toml, toml_value
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.settings import RuffSettings

RUFF_FILES_CONTEXT = "ruff"

_PYPROJECT_NAME = b"pyproject.toml"
_CONFIGURATION_NAMES = (b"ruff.toml", b".ruff.toml", _PYPROJECT_NAME)
_EXTENDS_DEPTH_MAX = 10
# The keys that ruff reads from pyproject.toml in addition to [tool.ruff].
_PYTHON_KEYS = ("requires-python", "requires_python")

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(tuple[tuple[bytes, str], ...])


def pinned_elsewhere(config: LintConfig, *, is_project: bool) -> tuple[LintConfig, str]:
    """Return a configuration of lint that does not use another tree's configuration of ruff, and a note for users.

    The files of another tree must not configure lint, so the pinned rules of ruff are used there. This function is
    `TaskDeclaration.prepare` of lint.
    """
    if is_project or config.ruff.config == "pinned":
        return config, ""
    return msgspec.structs.replace(config, ruff=RuffSettings()), "ruff: the pinned rules"


def ruff_contexts(config: LintConfig) -> Mapping[str, ContextFactory]:
    """Return the contexts of lint that depend on its configuration (`TaskDeclaration.configured_contexts`)."""
    return {RUFF_FILES_CONTEXT: ruff_files_context} if config.ruff.config == "project" else {}


def ruff_files_context(view: SnapshotView) -> Callable[[Entry], bytes]:
    """Return a function that returns the context of a file: the ruff configuration files that apply to the file.

    These are the files in directories above it, and the files that they extend. A pyproject.toml contributes only the
    part that ruff reads. Raises InvalidConfiguration if an extended file is missing.
    """
    files_by_directory: dict[bytes, dict[bytes, str]] = {}
    for entry in view.entries:
        directory, _, name = entry.path.rpartition(b"/")
        if entry.kind == "file" and name in _CONFIGURATION_NAMES and (files := dict(_with_extended(view, entry.path))):
            files_by_directory.setdefault(directory, {}).update(files)
    if not any(_ends_search(text, path) for path, text in files_by_directory.get(b"", {}).items() if b"/" not in path):
        # Without a configuration file at the root, ruff would search the directories above the source tree.
        files_by_directory.setdefault(b"", {})[b"ruff.toml"] = ""
    nearest: DirectoryMap[Mapping[bytes, str]] = DirectoryMap()
    for directory, files in files_by_directory.items():
        nearest.put(directory, files)
    encoded: dict[bytes, bytes] = {}

    def context(entry: Entry) -> bytes:
        directory = parent_directory(entry.path)
        value = encoded.get(directory)
        if value is None:
            merged = {path: text for files in nearest.values_above(entry.path) for path, text in files.items()}
            value = encoded[directory] = _encode(sorted(merged.items()))
        return value

    return context


def decode_ruff_files(context: bytes) -> tuple[tuple[bytes, str], ...]:
    """Return the paths and texts that a value of `ruff_files_context` encodes. Raises ValueError for unsafe paths."""
    files = _decoder.decode(context) if context else ((b"ruff.toml", ""),)
    if not all(is_safe_path(path) for path, _ in files):
        raise ValueError("a ruff configuration file points outside the project")
    return files


def _with_extended(view: SnapshotView, path: bytes) -> Iterator[tuple[bytes, str]]:
    source = path
    for _ in range(_EXTENDS_DEPTH_MAX):
        content = view.read(source)
        if content is None:
            raise InvalidConfiguration(
                f"ruff's configuration in {display_path(path)} extends {display_path(source)}, which is not in the "
                "snapshot",
                hint='set [tasks.lint.ruff] config = "pinned"',
            )
        text = content.decode("utf-8", "replace")
        settings: object = None
        try:
            document = parse_toml(text)
        except TomlError:
            pass  # ruff either accepts the file, or reports the error itself.
        else:
            settings = document
            if _is_pyproject(source):
                text, settings = _relevant_part(document, text)
        if text or source != path or not _is_pyproject(path):
            yield source, text
        extended = settings.get("extend") if isinstance(settings, dict) else None
        if not isinstance(extended, str):
            return
        source = posixpath.normpath(posixpath.join(parent_directory(source), extended.encode("utf-8")))


def _relevant_part(document: Mapping[str, object], text: str) -> tuple[str, object]:
    """Return the part of a pyproject.toml that ruff reads, as TOML text, and ruff's settings in this part.

    If the file is invalid, return its whole text and None.
    """
    tool, project = document.get("tool", {}), document.get("project", {})
    if not isinstance(tool, dict) or not isinstance(project, dict):
        return text, None
    relevant: dict[str, object] = {}
    if "ruff" in tool:
        relevant["tool"] = {"ruff": tool["ruff"]}
    if python := {key: project[key] for key in _PYTHON_KEYS if key in project}:
        relevant["project"] = python
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in relevant.items()), tool.get("ruff")


def _ends_search(text: str, path: bytes) -> bool:
    """Return whether a file at the root contains settings for ruff, so that ruff does not search above the tree."""
    return not _is_pyproject(path) or not text.startswith("project = ")


def _is_pyproject(path: bytes) -> bool:
    return path.rpartition(b"/")[2] == _PYPROJECT_NAME
