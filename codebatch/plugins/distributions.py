"""Installed distributions, their versions and entry points, with the results of importlib.metadata.

importlib.metadata is slow to import, so `*.dist-info` directories on Python's path are read directly.
importlib.metadata is used if there may be other sources (eggs, archives, custom finders) or a file is malformed.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder

import msgspec

from codebatch.model.text.lazy_patterns import LatePattern

_RUN_OF_SEPARATORS = LatePattern(r"[-_.]+")
_VERSION_HEADER = b"version:"


class EntryPoint(msgspec.Struct, frozen=True):
    """An entry point of a distribution: a name and `module:attribute`."""

    name: str
    value: str

    def load(self) -> object:
        """Import the module and return the attribute. Raises ValueError, or any error of the import."""
        module, _, attributes = self.value.partition("[")[0].partition(":")
        if not module.strip():
            raise ValueError(f"{self.value!r} is not a module")
        loaded: object = importlib.import_module(module.strip())
        for attribute in filter(None, attributes.strip().split(".")):
            loaded = getattr(loaded, attribute)
        return loaded


class Installed:
    """The distributions on the path at construction. The first of several with one name counts."""

    def __init__(self) -> None:
        self._places = _dist_infos(sys.path) if _is_plain() else None

    def version(self, distribution: str) -> str | None:
        """Return a distribution's version, or None if it is not installed."""
        if self._places is not None:
            place = self._places.get(normalized(distribution))
            if place is None:
                return None
            version = _version_in(place)
            if version is not None:
                return version
        from importlib import metadata

        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            return None

    def entry_points(self, group: str) -> Iterable[EntryPoint]:
        """Return the entry points of a group."""
        if self._places is None:
            from importlib import metadata

            return [
                EntryPoint(entry_point.name, entry_point.value) for entry_point in metadata.entry_points(group=group)
            ]
        return [entry_point for place in self._places.values() for entry_point in _entry_points_in(place, group)]


@functools.cache
def installed_here() -> Installed:
    """Return the distributions at the first call in this process. `look_again` (entry_points.py) clears the cache."""
    return Installed()


def _is_plain() -> bool:
    """Return whether all distributions are in directories on the path."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    return finders == [PathFinder] and not any(os.path.isfile(entry) for entry in sys.path)


def _dist_infos(path: Iterable[str]) -> dict[str, str] | None:
    """Map normalized names to dist-info directories. None if some distributions have another form."""
    directories_by_name: dict[str, str] = {}
    for entry in path:
        directory = entry or "."
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            lower = name.lower()
            if lower.endswith((".egg-info", ".egg")) or lower == "egg-info":
                return None
            if lower.endswith(".dist-info"):
                directories_by_name.setdefault(
                    normalized(lower[: -len(".dist-info")].partition("-")[0]), f"{directory}/{name}"
                )
    return directories_by_name


def normalized(name: str) -> str:
    """Return the normalized name of a distribution (PEP 503)."""
    return _RUN_OF_SEPARATORS.sub("-", name).lower()


def _version_in(place: str) -> str | None:
    """Return the version in the headers of METADATA, or None."""
    for line in _read(f"{place}/METADATA").splitlines():
        if not line:
            break
        if line[: len(_VERSION_HEADER)].lower() == _VERSION_HEADER:
            return line[len(_VERSION_HEADER) :].decode("utf-8", "replace").strip() or None
    return None


def _entry_points_in(place: str, group: str) -> Iterable[EntryPoint]:
    section = ""
    for line in _read(f"{place}/entry_points.txt").decode("utf-8").splitlines():
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            section = text[1:-1]
        elif section == group and text and not text.startswith("#") and "=" in text:
            name, _, value = text.partition("=")
            yield EntryPoint(name.strip(), value.strip())


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        return file.read()
