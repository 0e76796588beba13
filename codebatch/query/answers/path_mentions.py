"""Mentions of a file by its path or module name in the text of other files, outside of imports.

Loaders, bundlers, build files and configuration name files as `new URL("./w.js", …)`, `import_module("a.w")`,
`<script src="w.js">`, `url(w.css)`, `run: python tools/w.py` or `"pkg.w:main"`. Such mentions are not resolved like
imports, but they show that the file is used.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence

import msgspec

from codebatch.model.analysis.language_facts import LanguageFacts
from codebatch.plugins.worker_services import fact_services

_NAME_OF_DIRECTORY = re.compile(r"__(?:init|main)__\.pyi?\Z|index\.\w+\Z|mod\.rs\Z|init\.lua\Z")
"""File names of files that are also named by their directory."""
_COMPILED_ENDINGS = tuple(
    frozenset(endings.split())
    for endings in (
        ".js .mjs .cjs .jsx .ts .mts .cts .tsx",
        ".css .scss .sass .less",
        ".html .htm .pug",
        ".py .pyc .pyi",
    )
)
"""Endings of a source file and of the files that are made from it, which can be named in its place."""
_OTHER_ENDINGS = frozenset(b"csv erb jpg less pdf png rst scss svg txt vue xml".split())
"""Endings of files in languages without a grammar."""
_NAMES_OF_MODULES = frozenset(b"bash builder command cp cu har inl markdown nomad rake ru sc thor wsgi zsh".split())
"""Endings of files with code that are also names of modules, such as `app.wsgi`."""
_HASH_COMMENTS = re.compile(rb"\s*#(?!\s*(?:include|import|embed)\b)")
_SLASH_COMMENTS = re.compile(rb"\s*(?://|/\*|\*(?:\s|\Z)|<!--)")
_TOKEN_BEFORE = re.compile(rb"[\w.@~/\\:$#{}%+\x80-\xff-]*\Z")
_TOKEN_AFTER = re.compile(rb"[\w.\x80-\xff-]*(?::[\w.]+)?")
_TOKEN_BYTES_MAX = 300
_LINE_BYTES_MAX = 1000
_OPENING = frozenset(b"\"'`(<=")
_CLOSING = frozenset(b"\"'`)>?#!&")
_LOADER = re.compile(
    rb"\b\w*(?:import|require|load|include|worker|resolve|mock|script|source|module|plugin|extend|url|glob)\w*"
    rb"[\s\"'`:=]{0,4}[\s(\[]{0,3}[\"'`]?\Z",
    re.IGNORECASE,
)
_MENTIONS_MAX = 1000


class FileNames(msgspec.Struct, frozen=True):
    """The names of a file.

    - `directories`: the names of the directories around it, outermost first.
    - `base`, `stem`, `ending`: its file name, and the parts of this name.
    - `is_unique`: no other file of the batch has this file name.
    """

    directories: tuple[str, ...]
    base: str
    stem: str
    ending: str
    is_unique: bool

    @property
    def is_directory(self) -> bool:
        """Whether the name of the directory is another name of the file."""
        return bool(self.directories) and _NAME_OF_DIRECTORY.match(self.base) is not None


def file_names(path: str, *, is_unique: bool) -> FileNames:
    """Return the names of the file at a path."""
    *directories, base = path.split("/")
    stem, ending = os.path.splitext(base)
    return FileNames(tuple(directories), base, stem.removesuffix(".d") or base, ending, is_unique)


def mentioned_words(names: FileNames) -> tuple[str, ...]:
    """Return the words of which each mention of a file has at least one."""
    return (names.stem, names.directories[-1]) if names.is_directory else (names.stem,)


def find_mentions(content: bytes, names: FileNames, source: str, language: str) -> Iterator[int]:
    """Yield the number of each line in which a text names a file. `source` is the path of the text."""
    facts = fact_services().language_facts(language)
    if facts.mentions == "none":
        return
    directory = source.split("/")[:-1]
    for word in mentioned_words(names):
        bounded = re.compile(rb"(?<![\w\x80-\xff])%s(?![\w\x80-\xff])" % re.escape(word.encode()))
        known = -1
        for count, match in enumerate(bounded.finditer(content)):
            line_start = content.rfind(b"\n", 0, match.start()) + 1
            is_other = line_start != known and match.start() - line_start <= _LINE_BYTES_MAX
            if is_other and _is_mention(content, line_start, match, names, directory, facts):
                known = line_start
                yield content.count(b"\n", 0, line_start) + 1
            if count == _MENTIONS_MAX:
                return


def _is_mention(
    content: bytes,
    line_start: int,
    match: re.Match[bytes],
    names: FileNames,
    directory: Sequence[str],
    facts: LanguageFacts,
) -> bool:
    before = content[max(line_start, match.start() - _TOKEN_BYTES_MAX) : match.start()]
    comment = _HASH_COMMENTS if facts.has_hash_comments else _SLASH_COMMENTS
    if comment.match(content, line_start, match.start() + 1):
        return False
    left, right = _TOKEN_BEFORE.search(before), _TOKEN_AFTER.match(content, match.end())
    if left is None or right is None:
        return False
    start, end = match.start() - len(left[0]), right.end()
    token = content[start:end].decode("utf-8", "replace")
    is_quoted = start > 0 and content[start - 1] in _OPENING and (end == len(content) or content[end] in _CLOSING)
    is_loaded = is_quoted and _LOADER.search(content, max(line_start, start - 60), start) is not None
    in_string = facts.mentions == "plain" or is_quoted or _is_in_string(content[line_start:start])
    return names_file(token, names, directory, is_loaded=is_loaded, is_quoted=is_quoted) and in_string


def _is_in_string(before: bytes) -> bool:
    """Return whether a place is in a string literal, given the line before it."""
    return any(before.replace(b"\\" + quote, b"").count(quote) % 2 for quote in (b'"', b"'", b"`"))


def names_file(
    token: str, names: FileNames, directory: Sequence[str], *, is_loaded: bool = False, is_quoted: bool = True
) -> bool:
    """Return whether a path or module name in a text in some directory can name a file.

    `is_loaded` is set if a loader gets the text, so that a name without directories counts.
    """
    path, _, attribute = token.replace("::", "/").replace("\\", "/").partition(":")
    is_relative = path.startswith(("./", "../"))
    parts = [part for part in path.split("/") if part not in ("", ".", "..") and part[0] not in "@~$#{%"]
    if not parts:
        return False
    if is_relative and _resolve(directory, path) in _own_places(names):
        return True
    # A loader can get `tool.config` for `tool.config.ts`.
    is_base = parts[-1] == names.base or (parts[-1] == names.stem and "." in names.stem)
    if is_base or _is_compiled(parts[-1], names):
        has_place = len(parts) > 1 or not is_relative
        return names.is_unique or (has_place and _ends_with(names.directories, parts[:-1]))
    if "/" in path:
        has_name = parts[-1] == names.stem and _ends_with(names.directories, parts[:-1])
        has_directory = names.is_directory and _ends_with(names.directories, parts)
        return (len(parts) > 1 and (has_name or has_directory)) or (is_loaded and has_name and not is_relative)
    return _names_module(parts[0].strip("."), names, is_loaded=is_loaded or (bool(attribute) and is_quoted))


def is_named_module(target: str, module: str, member: str) -> bool:
    """Return whether an import ends with the name of a module, or of a member of this module, after other names."""
    components = re.sub(r"\.[cm]?[jt]sx?\Z", "", target).replace("/", ".").split(".")
    if components[0] in sys.stdlib_module_names:
        return False
    return components[-1] == module or components[-2:] == [module, member]


def _names_module(dotted: str, names: FileNames, *, is_loaded: bool) -> bool:
    """Return whether a dotted name is that of the module in a file, or of a member of the module."""
    modules = names.directories if names.is_directory else (*names.directories, names.stem)
    components = dotted.split(".")
    ending = components[-1].encode()
    if ending in _OTHER_ENDINGS or (ending in fact_services().code_endings() and ending not in _NAMES_OF_MODULES):
        return False  # It is the name of another file.
    for module in (components, components[:-1]):
        if module and _ends_with(modules, module) and (len(module) > 1 or is_loaded):
            return True
        if len(modules) > 1 and _ends_with(module, modules):
            return True  # The text begins with the name of the project or of a directory above it.
    return False


def _ends_with(parts: Sequence[str], ends: Sequence[str]) -> bool:
    return not ends or list(parts[-len(ends) :]) == list(ends)


def _own_places(names: FileNames) -> tuple[tuple[str, ...], ...]:
    """Return the paths by which relative imports name a file, without an ending, and with each possible one."""
    file = (*names.directories, names.stem)
    return (file, names.directories) if names.is_directory else (file,)


def _resolve(directory: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the components of a relative path from the top of the project, without the ending of the file."""
    place = list(directory)
    for part in path.split("/"):
        if part == "..":
            place = place[:-1]
        elif part not in ("", "."):
            place.append(part)
    if place:
        place[-1] = os.path.splitext(place[-1])[0] if place[-1].count(".") == 1 else place[-1]
    return tuple(place)


def _is_compiled(file: str, names: FileNames) -> bool:
    stem, ending = os.path.splitext(file)
    return stem == names.stem and any(ending in endings and names.ending in endings for endings in _COMPILED_ENDINGS)
