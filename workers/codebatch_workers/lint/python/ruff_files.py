"""ruff's configuration files in a snapshot: a context of lint where `[tasks.lint.ruff] config = "project"`."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterator, Mapping

import msgspec

from codebatch.errors import InvalidConfiguration
from codebatch.model.entry import Entry, display_path, is_safe_path
from codebatch.model.nearest_directories import Nearest, parent_of
from codebatch.model.task import Context, SnapshotView
from codebatch.model.text.toml import TomlError, parse_toml
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.settings import RuffSettings

CONTEXT = "ruff"

_PYPROJECT = b"pyproject.toml"
_NAMES = (b"ruff.toml", b".ruff.toml", _PYPROJECT)
_EXTENDS_MAX = 10
# What ruff asks a pyproject.toml for beside [tool.ruff].
_PYTHON_KEYS = ("requires-python", "requires_python")

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(tuple[tuple[bytes, str], ...])


def pinned_elsewhere(config: LintConfig, *, is_project: bool) -> tuple[LintConfig, str]:
    """`TaskDeclaration.prepare` of lint: in another tree than the project no file of it decides."""
    if is_project or config.ruff.config == "pinned":
        return config, ""
    return msgspec.structs.replace(config, ruff=RuffSettings()), "ruff: the pinned rules"


def contexts_of_ruff(config: LintConfig) -> Mapping[str, Context]:
    """`TaskDeclaration.configured_contexts` of lint."""
    return {CONTEXT: ruff_files_context} if config.ruff.config == "project" else {}


def ruff_files_context(view: SnapshotView) -> Callable[[Entry], bytes]:
    """Of a file: the files in the directories above it that configure ruff, and those that they extend.

    Of a pyproject.toml that is what ruff asks it for. Raises InvalidConfiguration where one extends what is not there.
    """
    own: dict[bytes, dict[bytes, str]] = {}
    for entry in view.entries:
        directory, _, name = entry.path.rpartition(b"/")
        if entry.kind == "file" and name in _NAMES and (files := dict(_with_extended(view, entry.path))):
            own.setdefault(directory, {}).update(files)
    if not any(_decides(text, path) for path, text in own.get(b"", {}).items() if b"/" not in path):
        # Else ruff would look for one above the tree.
        own.setdefault(b"", {})[b"ruff.toml"] = ""
    nearest: Nearest[Mapping[bytes, str]] = Nearest()
    for directory, files in own.items():
        nearest.put(directory, files)
    encoded: dict[bytes, bytes] = {}

    def context(entry: Entry) -> bytes:
        directory = parent_of(entry.path)
        value = encoded.get(directory)
        if value is None:
            together = {path: text for files in nearest.above(entry.path) for path, text in files.items()}
            value = encoded[directory] = _encode(sorted(together.items()))
        return value

    return context


def ruff_files_of(context: bytes) -> tuple[tuple[bytes, str], ...]:
    """What `ruff_files_context` said: paths and texts. Raises ValueError for what it never says: plans may lie."""
    files = _decoder.decode(context) if context else ((b"ruff.toml", ""),)
    if not all(is_safe_path(path) for path, _ in files):
        raise ValueError("a ruff configuration file points outside the project")
    return files


def _with_extended(view: SnapshotView, path: bytes) -> Iterator[tuple[bytes, str]]:
    wanted = path
    for _ in range(_EXTENDS_MAX):
        content = view.read(wanted)
        if content is None:
            raise InvalidConfiguration(
                f"ruff's configuration in {display_path(path)} extends {display_path(wanted)}, which is not in the "
                "snapshot",
                hint='set [tasks.lint.ruff] config = "pinned"',
            )
        text = content.decode("utf-8", "replace")
        settings: object = None
        try:
            document = parse_toml(text)
        except TomlError:
            pass  # ruff may know better, or says so.
        else:
            settings = document
            if _is_pyproject(wanted):
                text, settings = _asked_for(document, text)
        if text or wanted != path or not _is_pyproject(path):
            yield wanted, text
        extended = settings.get("extend") if isinstance(settings, dict) else None
        if not isinstance(extended, str):
            return
        wanted = posixpath.normpath(posixpath.join(parent_of(wanted), extended.encode("utf-8")))


def _asked_for(document: Mapping[str, object], text: str) -> tuple[str, object]:
    """Of a pyproject.toml what ruff asks for, as TOML, and its settings; all of it where it is not as it should be."""
    tool, project = document.get("tool", {}), document.get("project", {})
    if not isinstance(tool, dict) or not isinstance(project, dict):
        return text, None
    asked: dict[str, object] = {}
    if "ruff" in tool:
        asked["tool"] = {"ruff": tool["ruff"]}
    if python := {key: project[key] for key in _PYTHON_KEYS if key in project}:
        asked["project"] = python
    return "".join(f"{key} = {_toml(value)}\n" for key, value in asked.items()), tool.get("ruff")


def _decides(text: str, path: bytes) -> bool:
    """Whether ruff takes its settings from a file at the top, and looks no higher."""
    return not _is_pyproject(path) or not text.startswith("project = ")


def _is_pyproject(path: bytes) -> bool:
    return path.rpartition(b"/")[2] == _PYPROJECT


def _toml(value: object) -> str:
    """A value that TOML was read as."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{_toml(key)} = {_toml(held)}' for key, held in value.items())}}}"
        case _:
            # A number, a date or a time: Python writes them as TOML does.
            return str(value)
