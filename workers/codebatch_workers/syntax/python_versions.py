"""The versions of Python that a project supports, as a context of its files (SPEC.md "Context")."""

from __future__ import annotations

import re
from collections.abc import Callable

from codebatch.model.entry import Entry
from codebatch.model.nearest_directories import DirectoryMap, parent_directory
from codebatch.model.task import SnapshotView
from codebatch.model.text.toml import TomlError, parse_toml

PYTHON_CONTEXT = "python"
ANY_CODE_IN_STRINGS = b"3.12"
"""The version of Python from which on an f-string may contain any code (PEP 701)."""
_FIRST_VERSION = (3, 12)
_LOWER_BOUND = re.compile(r"\s*(?:>=?|~=|===?|\^|~)\s*(\d+)\.(\d+)")
_PYPROJECT_NAME = b"pyproject.toml"
_SETUP_NAMES = (b"setup.cfg", b"setup.py")
_SETUP_REQUIREMENT = re.compile(r"\bpython_requires\s*=\s*[\"']?([^\"'\n]+)")


def python_context(view: SnapshotView) -> Callable[[Entry], bytes]:
    """Return a function that returns `3.12` for a file of a project that supports no older Python, otherwise nothing.

    The nearest file above that states the supported versions decides, `pyproject.toml` before others.
    """
    requirements: dict[bytes, str] = {}
    for entry in view.entries:  # Sorted by path.
        name = entry.path.rpartition(b"/")[2]
        if entry.kind == "file" and (name == _PYPROJECT_NAME or name in _SETUP_NAMES):
            text = (view.read(entry.path) or b"").decode("utf-8", "replace")
            required = _read_pyproject(text) if name == _PYPROJECT_NAME else _read_setup(text)
            if required:
                requirements.setdefault(parent_directory(entry.path), required)
    nearest: DirectoryMap[bytes] = DirectoryMap()
    for directory, required in requirements.items():
        nearest.put(directory, ANY_CODE_IN_STRINGS if _excludes_older(required) else b"")
    return lambda entry: next(iter(nearest.values_above(entry.path)), b"") if entry.kind == "file" else b""


def _excludes_older(required: str) -> bool:
    """Return whether a requirement, such as `>=3.12,<4`, excludes all versions before the first one."""
    bounds = [] if "|" in required else filter(None, map(_LOWER_BOUND.match, required.split(",")))
    return any((int(bound[1]), int(bound[2])) >= _FIRST_VERSION for bound in bounds)


def _read_pyproject(text: str) -> str:
    try:
        document = parse_toml(text)
    except TomlError:
        return ""
    stated = (
        _value_at(document, "project", "requires-python"),
        _value_at(document, "tool", "poetry", "dependencies", "python"),
    )
    return next((required for required in stated if isinstance(required, str)), "")


def _value_at(document: object, *keys: str) -> object:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _read_setup(text: str) -> str:
    match = _SETUP_REQUIREMENT.search(text)
    return match[1] if match else ""
