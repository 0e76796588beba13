"""Which distributions are installed, and what they declare: as importlib.metadata says, which takes 20 ms to import.

Read are the `*.dist-info` directories on Python's path, as every installer of today leaves them. Where anything else
could tell of distributions (eggs, archives, finders of others), or a file is not as it should be, importlib.metadata
is asked.
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
    """What a distribution declares under a name: `module:attribute`."""

    name: str
    value: str

    def load(self) -> object:
        """Import the module; the attribute in it. Raises whatever importing it does, or ValueError."""
        module, _, attributes = self.value.partition("[")[0].partition(":")
        if not module.strip():
            raise ValueError(f"{self.value!r} is not a module")
        loaded: object = importlib.import_module(module.strip())
        for attribute in filter(None, attributes.strip().split(".")):
            loaded = getattr(loaded, attribute)
        return loaded


class Installed:
    """The distributions on the path as it is now: the first of a name counts."""

    def __init__(self) -> None:
        self._places = _dist_infos(sys.path) if _is_plain() else None

    def version(self, distribution: str) -> str | None:
        """A distribution's version, None where it is not installed."""
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
        """What is declared in a group."""
        if self._places is None:
            from importlib import metadata

            return [EntryPoint(each.name, each.value) for each in metadata.entry_points(group=group)]
        return [each for place in self._places.values() for each in _entry_points_in(place, group)]


@functools.cache
def installed_here() -> Installed:
    """What was on the path when this process first asked. `look_again` (plugins.py) forgets it."""
    return Installed()


def _is_plain() -> bool:
    """Whether only directories on the path tell of distributions."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    return finders == [PathFinder] and not any(os.path.isfile(entry) for entry in sys.path)


def _dist_infos(path: Iterable[str]) -> dict[str, str] | None:
    """Where the distributions lie, by normalized name; None where some are of another kind."""
    found: dict[str, str] = {}
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
                found.setdefault(normalized(lower[: -len(".dist-info")].partition("-")[0]), f"{directory}/{name}")
    return found


def normalized(name: str) -> str:
    """A distribution's name as it is compared (PEP 503)."""
    return _RUN_OF_SEPARATORS.sub("-", name).lower()


def _version_in(place: str) -> str | None:
    """What the headers of METADATA say, before the first empty line."""
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
