"""The names that a file uses without an import, in languages that make names of other files visible.

A name is a chain as written (`shop.Price`), or only its first name in languages in which other files cannot be named
by a chain. In Java, Kotlin and Scala, it ends with the first name that has a capital letter: `shop.Price` of
`shop.Price.of`. There, `.total` is a name for the call `x.total()`, which can call an extension function. Names that
the file itself defines or imports are left out. The project task `dependencies` looks the names up in the package,
namespace or module of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from codebatch.model.record import Names, Symbol
from codebatch_workers.symbols.c_names import DeclaredNames, classes_with_bodies, external_uses
from codebatch_workers.symbols.go_names import go_package_names
from codebatch_workers.symbols.outline import FileOutline
from codebatch_workers.symbols.ruby_constants import used_constants
from codebatch_workers.symbols.rust_paths import rust_paths
from codebatch_workers.symbols.used_types import csharp_names, php_names
from codebatch_workers.syntax.language.header_files import is_header
from codebatch_workers.syntax.language.languages import LANGUAGES_WITH_MACROS
from codebatch_workers.syntax.names import NAME_BYTES_MAX, RESERVED_WORDS
from codebatch_workers.syntax.source import SourceFile

LANGUAGES_WITH_IMPLICIT_IMPORTS = frozenset(
    {"c", "cpp", "csharp", "go", "java", "kotlin", "php", "ruby", "rust", "scala", "swift"}
)
NAMES_MAX = 10_000
"""Maximum number of names of a file. A file with more names is data, and has no names."""

# Languages in which several files can define one name, so a definition in the file does not hide the others.
_LANGUAGES_WITH_OPEN_DEFINITIONS = frozenset({"csharp", "swift"})
# Languages whose reader leaves out the names that the file defines or imports.
_LANGUAGES_WITH_OWN_HIDING = frozenset({"php"})
# Languages in which a local variable or type parameter hides a name of another file, unless the name is called.
_LANGUAGES_WITH_HIDING_LOCALS = frozenset({"java", "kotlin", "scala"})
# Languages in which a function outside a class can be called like a method.
_LANGUAGES_WITH_EXTENSIONS = frozenset({"kotlin", "scala"})
_USING_CAPTURES = ("use", "call", "base")
_FIRST_NAME = re.compile(rb"[\w\x80-\xff]+")
_CAPITALS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_CAPITAL_CHAIN = re.compile(rb"[A-Z]\w*(?:\s*\.\s*[A-Z]\w*){0,9}")
_PLAIN_NAME = re.compile(rb"[a-z_]\w*\Z")
_CHAIN = re.compile(rb"(?:\\|::)?[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:(?:\.|::|\\)[A-Za-z_\x80-\xff][\w\x80-\xff]*){0,9}")
_NAMES_BEFORE_CAPITAL = rb"(?:[a-z_\x80-\xff][\w\x80-\xff]*\.)*[A-Z][\w$\x80-\xff]*"
_NAME_PATTERNS = {
    "java": re.compile(_NAMES_BEFORE_CAPITAL),
    "kotlin": re.compile(_NAMES_BEFORE_CAPITAL + rb"|[\w\x80-\xff]+"),
    "scala": re.compile(_NAMES_BEFORE_CAPITAL + rb"|[\w\x80-\xff]+"),
}
# The names that an import in Kotlin or Scala binds: `C` and `E` of `a.b.{C, D => E}`.
_IMPORTED_NAME = re.compile(rb"([\w$\x80-\xff]+)[`\s;]*(?:[,}]|\Z)")
_MEMBER_NAME = re.compile(rb"\.[a-z_]\w*\Z")


def used_names(file: SourceFile, outline: FileOutline) -> Iterator[Names]:
    """Yield the record with the names that a file uses without an import. Yield nothing if there are none."""
    if file.language not in LANGUAGES_WITH_IMPLICIT_IMPORTS or file.tree is None:
        return
    if file.language == "ruby":
        yield from _used_constants(file)
    elif file.language in LANGUAGES_WITH_MACROS:
        yield from _used_c_names(file, outline)
    elif file.language in _FINDERS:
        names = _FINDERS[file.language](file, outline)
        yield from _make_names(file, {name: names[name] for name in sorted(names) if len(name) <= NAME_BYTES_MAX}, ())
    else:
        yield from _used_plain_names(file, outline)


def _used_plain_names(file: SourceFile, outline: FileOutline) -> Iterator[Names]:
    utf8 = file.utf8
    local = {utf8[node.start_byte : node.end_byte] for node in file.captures.get("local", ())}
    if file.language == "csharp":
        offsets, local = csharp_names(file, outline.symbols)
    elif file.language == "php":
        offsets = php_names(file, outline.symbols)
    elif file.language == "swift":
        offsets = _swift_names(file)
    else:
        offsets = _name_offsets(file, local if file.language in _LANGUAGES_WITH_HIDING_LOCALS else frozenset())
    known: set[bytes] = set()
    if file.language not in _LANGUAGES_WITH_OWN_HIDING:
        known = {symbol.name.encode() for symbol in outline.symbols if symbol.symbol_type == "import"}
    if file.language not in _LANGUAGES_WITH_OWN_HIDING and file.language not in _LANGUAGES_WITH_OPEN_DEFINITIONS:
        # A package or namespace can have the name of a type that it contains.
        known.update(
            symbol.name.encode()
            for symbol in outline.symbols
            if not symbol.scope and symbol.symbol_type not in ("module", "namespace")
        )
    if file.language in _LANGUAGES_WITH_EXTENSIONS:
        # Imports of these languages are not symbols.
        for node in file.captures.get("import", ()):
            known.update(_imported_names(utf8[node.start_byte : node.end_byte]))
    if file.language == "kotlin":
        # A function can have the name of a class in another file, so that the file uses both.
        factories = {symbol.name.encode() for symbol in outline.symbols if _is_factory(symbol)}
        known -= factories
        local |= factories
    reserved = RESERVED_WORDS.get(file.language) or frozenset()
    names = {
        name: offset
        for name, offset in sorted(offsets.items())
        if len(name) <= NAME_BYTES_MAX and not _is_hidden(name, known, reserved)
    }
    yield from _make_names(file, names, sorted(local & names.keys()))


def _make_names(file: SourceFile, names: Mapping[bytes, int], local: Iterable[bytes]) -> Iterator[Names]:
    """Yield the record of names with their offsets, unless there are none or too many."""
    if not 0 < len(names) <= NAMES_MAX:
        return
    lines = file.line_starts
    path, path_b64 = file.path_fields
    yield Names(
        path=path,
        path_b64=path_b64,
        names=_as_texts(names),
        lines=tuple(bisect_right(lines, offset) for offset in names.values()),
        local=_as_texts(local),
    )


def _name_offsets(file: SourceFile, hiding: Set[bytes]) -> dict[bytes, int]:
    """Return the offset of the first use of each name. Names in `hiding` count only if they are called directly."""
    pattern = _NAME_PATTERNS.get(file.language, _CHAIN)
    utf8, offsets = file.utf8, dict[bytes, int]()
    has_extensions = file.language in _LANGUAGES_WITH_EXTENSIONS
    for capture in _USING_CAPTURES:
        # Most texts occur several times. The nodes are in text order, so the first node of each text is kept.
        nodes = reversed(file.captures.get(capture, ()))
        for text, start in {utf8[node.start_byte : node.end_byte]: node.start_byte for node in nodes}.items():
            match = pattern.match(text)
            is_hidden = match is None or (match[0] in hiding and (capture != "call" or len(match[0]) != len(text)))
            if match is not None and not is_hidden:
                offsets[match[0]] = min(offsets.get(match[0], start), start)
            if has_extensions and capture == "call" and (member := _MEMBER_NAME.search(text)) is not None:
                offsets[member[0]] = min(offsets.get(member[0], start), start)
    return offsets


def _swift_names(file: SourceFile) -> dict[bytes, int]:
    """Return the offset of the first use of each type and each function. By convention, types begin with a capital."""
    utf8, offsets = file.utf8, dict[bytes, int]()
    for capture in _USING_CAPTURES:
        for node in file.captures.get(capture, ()):
            start = node.start_byte
            # Most nodes are lower-case names of variables, and the pattern need not be tried for them.
            if utf8[start] in _CAPITALS:
                chain = _CAPITAL_CHAIN.match(utf8, start)
            else:
                chain = _PLAIN_NAME.match(utf8, start, node.end_byte) if capture == "call" else None
            if chain is not None:
                name = b"".join(chain[0].split())
                if start < offsets.get(name, start + 1):
                    offsets[name] = start
    return offsets


def _used_constants(file: SourceFile) -> Iterator[Names]:
    offsets = used_constants(file)
    if not 0 < len(offsets) <= NAMES_MAX:
        return
    path, path_b64 = file.path_fields
    keys = sorted(key for key in offsets if len(key[0]) <= NAME_BYTES_MAX)
    yield Names(
        path=path,
        path_b64=path_b64,
        names=tuple(name for name, _ in keys),
        lines=tuple(bisect_right(file.line_starts, offsets[key]) for key in keys),
        scopes=tuple(scope for _, scope in keys),
    )


def _used_c_names(file: SourceFile, outline: FileOutline) -> Iterator[Names]:
    known = {symbol.name.encode() for symbol in outline.symbols if not symbol.scope}
    known |= RESERVED_WORDS[file.language]
    lines, declared = file.line_starts, DeclaredNames(file, outline)
    uses = {
        name: bisect_right(lines, offset)
        for name, offset in external_uses(file, declared).items()
        if name not in known and len(name) <= NAME_BYTES_MAX
    }
    uses.update(classes_with_bodies(file, outline))
    functions = declared.functions - known if is_header(file.path) else set()
    if (not uses and not functions) or max(len(uses), len(functions)) > NAMES_MAX:
        return
    path, path_b64 = file.path_fields
    names = sorted(uses)
    yield Names(
        path=path,
        path_b64=path_b64,
        names=_as_texts(names),
        lines=tuple(uses[name] for name in names),
        local=_as_texts(sorted(declared.variables & uses.keys())),
        declared=_as_texts(sorted(functions)),
    )


def _as_texts(names: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(name.decode("utf-8", "replace") for name in names)


def _imported_names(statement: bytes) -> Sequence[bytes]:
    """Return the names that an import in Kotlin or Scala binds."""
    if b"," in statement or b"{" in statement or b"`" in statement:
        return _IMPORTED_NAME.findall(statement)
    return (statement.rstrip(b" \t\r\n;").rpartition(b".")[2].rpartition(b" ")[2],)


def _is_factory(symbol: Symbol) -> bool:
    return not symbol.scope and symbol.symbol_type == "function" and symbol.name[0].isupper()


def _is_hidden(name: bytes, known: Set[bytes], reserved: Set[bytes]) -> bool:
    if not known or name in reserved:
        return name in reserved
    first = _FIRST_NAME.search(name)
    return first is not None and first[0] in known


# Languages whose names are found in the text. Names of local variables are already left out.
_FINDERS: Mapping[str, Callable[[SourceFile, FileOutline], dict[bytes, int]]] = {
    "go": go_package_names,
    "rust": rust_paths,
}
