"""Attributes from `.gitattributes` files: the language of a file, and whether it is generated or vendored.

The names of the attributes are those of GitHub's linguist, and the rules are those of gitattributes(5). The nearest
`.gitattributes` wins, and in one file the last matching line. If two macros have the same name, the later one wins.
Only files in the snapshot are read. `.git/info/attributes` and user settings are not read, because a snapshot must mean
the same on every machine.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from codebatch.model.entry import Entry
from codebatch.model.gitignore import parse_pattern
from codebatch.model.globs import GlobSet, GlobToken
from codebatch.model.nearest_directories import DirectoryMap
from codebatch.model.task import SnapshotView

GITATTRIBUTES_NAME = b".gitattributes"
_LINGUIST_PREFIX = b"linguist-"
_KNOWN_ATTRIBUTES = (b"language", b"generated", b"vendored", b"documentation")
_KNOWN_FULL_NAMES = frozenset(_LINGUIST_PREFIX + name for name in _KNOWN_ATTRIBUTES)
_MACRO_PREFIX = b"[attr]"
_FIRST_FIELD = re.compile(rb'[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^ \t]+))')
_PATTERN_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED_BYTES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}

# The values of attributes by name. The value is b"" for false, and None for `!attribute` (unspecified).
AttributeValues = Mapping[bytes, bytes | None]


def attributes_context(view: SnapshotView) -> Callable[[Entry], bytes]:
    """Return a function that computes the `attributes` context of a file: `name=value` for each linguist attribute.

    The pairs are NUL-separated. If the value is false, it is empty. Attributes that are not set are left out.
    """
    macros: dict[bytes, dict[bytes, bytes | None]] = {}
    rules: DirectoryMap[tuple[int, GlobSet[AttributeValues]]] = DirectoryMap()
    # Only the root file can define macros, so it is read first.
    files = (entry.path for entry in view.entries if entry.kind == "file" and entry.path.endswith(GITATTRIBUTES_NAME))
    for path in sorted(files, key=lambda path: (path.count(b"/"), path)):
        if path.rpartition(b"/")[2] != GITATTRIBUTES_NAME:
            continue
        directory = path.rpartition(b"/")[0]
        globs, settings = _read_attribute_lines(view.read(path) or b"", macros, is_root=not directory)
        if globs:
            matcher = GlobSet(globs, functools.partial(_merged_settings, settings))
            rules.put(directory, (len(directory) + 1 if directory else 0, matcher))

    def context(entry: Entry) -> bytes:
        if not rules or entry.kind != "file":
            return b""
        attributes = _path_attributes(rules, entry.path)
        return b"\0".join(
            b"%s=%s" % (name, value) for name in _KNOWN_ATTRIBUTES if (value := attributes.get(name)) is not None
        )

    return context


def file_attributes(context: bytes) -> dict[str, str]:
    """Return the attributes in a value of the `attributes` context. If the value is false, it is the empty string."""
    if not context:
        return {}
    pairs = (part.decode("utf-8", "replace").partition("=") for part in context.split(b"\0") if part)
    return {name: value for name, _, value in pairs}


def _path_attributes(
    rules: DirectoryMap[tuple[int, GlobSet[AttributeValues]]], path: bytes
) -> dict[bytes, bytes | None]:
    attributes: dict[bytes, bytes | None] = {}
    for cut, globs in rules.values_above(path):
        attributes = {**globs.find(path[cut:]), **attributes}
    return attributes


def _merged_settings(settings: Sequence[AttributeValues], matching: Iterator[int]) -> AttributeValues:
    """Return the merged settings of the lines in one file that match a path.

    `matching` has the indexes of these lines, last line first. The last line wins.
    """
    attributes: dict[bytes, bytes | None] = {}
    for index in matching:
        attributes = {**settings[index], **attributes}
    return attributes


def _read_attribute_lines(
    content: bytes, macros: dict[bytes, dict[bytes, bytes | None]], *, is_root: bool
) -> tuple[list[Sequence[GlobToken]], list[AttributeValues]]:
    """Return the patterns of those lines in a `.gitattributes` that set linguist attributes, and the settings of each.

    If `is_root` is set, add the macros that the file defines to `macros`.
    """
    globs: list[Sequence[GlobToken]] = []
    all_settings: list[AttributeValues] = []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        match = _FIRST_FIELD.match(line.removesuffix(b"\r"))
        if match is None or (match[2] or b"").startswith(b"#"):
            continue
        name = match[2] if match[1] is None else _PATTERN_ESCAPE.sub(_unescape_match, match[1])
        settings = _line_settings(line[match.end() :].split(), macros)
        if name.startswith(_MACRO_PREFIX):
            if is_root:
                macros[name.removeprefix(_MACRO_PREFIX)] = settings
            continue
        known = {key.removeprefix(_LINGUIST_PREFIX): value for key, value in settings.items()}
        pattern = parse_pattern(name, number) if known else None
        # A line with a negated pattern has no effect, and attributes of a directory do not apply to the files in it.
        if pattern is not None and not pattern.negated and not pattern.directory_only:
            globs.append(pattern.glob)
            all_settings.append(known)
    return globs, all_settings


def _line_settings(
    words: Sequence[bytes], macros: Mapping[bytes, dict[bytes, bytes | None]]
) -> dict[bytes, bytes | None]:
    """Return the linguist attributes that a line sets. Macros are expanded.

    If an attribute occurs twice, the last one wins. As in git, this also applies to macros: `m -m` does not expand `m`.
    """
    settings: dict[bytes, bytes | None] = {}
    for word in reversed(words):
        name, has_value, value = word.lstrip(b"-!").partition(b"=")
        if name in settings:
            continue
        if word.startswith(b"!"):
            settings[name] = None
        elif word.startswith(b"-"):
            settings[name] = b""
        elif has_value:
            settings[name] = b"" if value == b"false" else value
        else:
            settings = {name: b"true", **macros.get(name, {}), **settings}
    return {name: value for name, value in settings.items() if name in _KNOWN_FULL_NAMES}


def _unescape_match(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    return bytes([int(escape, 8) & 0xFF]) if len(escape) == 3 else _ESCAPED_BYTES.get(escape, escape)
