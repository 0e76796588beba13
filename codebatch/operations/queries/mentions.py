"""Files that may use another file without an import.

In some languages, code can use names of its own package or program without importing them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.answers.import_rules import HEADER_ENDINGS, USERS_WITHOUT_IMPORT, may_be_used_without_import
from codebatch.query.fields import JsonRecord

_LANGUAGE_NAMES = {
    "c": "C",
    "cpp": "C++",
    "csharp": "C#",
    "go": "Go",
    "java": "Java",
    "kotlin": "Kotlin",
    "php": "PHP",
    "ruby": "Ruby",
    "rust": "Rust",
    "scala": "Scala",
    "swift": "Swift",
}
_PACKAGE_LANGUAGES = ("java", "kotlin", "scala")
_USABLE_SYMBOL_TYPES = frozenset(
    {"class", "constant", "enum", "function", "interface", "struct", "trait", "type", "union", "variable"}
)
_NAMESPACE_SYMBOL_TYPES = frozenset({"module", "namespace"})
# Names that many programs or packages define. Occurrences of such a name do not show which file is used.
_UNSPECIFIC_NAMES = frozenset({"_", "init", "main"})


class NameMentions(msgspec.Struct, frozen=True, kw_only=True):
    """The number of files that mention names defined in the requested file, but have no known import of it.

    `name` is the mentioned name that most likely refers to the requested file.
    """

    language: str
    files: int
    name: str

    @property
    def note(self) -> str:
        """The reason why the answer may lack dependents, as text for the user."""
        verb = "file mentions" if self.files == 1 else "files mention"
        return (
            f"in {self.language}, references without an import are not resolved: {self.files:,} other {verb} "
            f"names that this file defines; see: codebatch references {self.name}"
        )


def find_mentions(question: BatchQuery, path: bytes, item: int, known: Collection[bytes]) -> NameMentions | None:
    """Return the number of files that may use the file at `path` without an import, except the files in `known`.

    Return None if there are no such files, or if the language needs an import for each use. Raises StoreCorrupt.
    """
    records = question.records
    languages = {file.path_bytes: file.lang for file in records.files}
    language = languages.get(path, "")
    if not may_be_used_without_import(language, path):
        return None
    defined = [symbol for symbol in records.item_records("symbols", item) or () if symbol["kind"] == "symbol"]
    names = list(dict.fromkeys(_outermost_names(language, defined)))
    if not names:
        return None
    pattern = _mention_pattern(language, path, names)
    is_near = _can_use_without_import(language, path, defined)
    counts: Counter[bytes] = Counter()
    files = 0
    for entry in records.items:
        other = entry.path
        if other == path or other in known or languages.get(other) not in USERS_WITHOUT_IMPORT[language]:
            continue
        if other.endswith(HEADER_ENDINGS) or not is_near(other.rpartition(b"/")[0]):
            continue
        try:
            matches = set(pattern.findall(records.read_object(entry)))
        except ObjectMissing:
            continue
        files += bool(matches)
        counts.update(matches)
    if not files:
        return None
    likeliest = max(names, key=lambda name: counts[name.encode()])
    return NameMentions(language=_LANGUAGE_NAMES[language], files=files, name=likeliest)


def _mention_pattern(language: str, path: bytes, names: Sequence[str]) -> re.Pattern[bytes]:
    """Return a regular expression that finds the names of a file in code that may use them. Its group is the name.

    In Rust, code without `use` must qualify the name with its module, as in `module::name`.
    """
    before = rb"(?<!\w)"
    if language == "rust":
        directory, _, file = path.rpartition(b"/")
        stem = file.removesuffix(b".rs")
        if stem in (b"lib", b"main"):
            return re.compile(rb"(?<![\w:])crate\s*::\s*(%b)(?!\w)" % _alternatives_pattern(names))
        module = directory.rpartition(b"/")[2] if stem == b"mod" else stem
        before = rb"(?<!\w)%b\s*::\s*" % re.escape(module)
    return re.compile(before + rb"(%b)(?!\w)" % _alternatives_pattern(names))


def _alternatives_pattern(names: Sequence[str]) -> bytes:
    return b"|".join(re.escape(name.encode()) for name in names)


def _outermost_names(language: str, symbols: Sequence[JsonRecord]) -> Iterator[str]:
    """Yield the names that a file defines in its outermost scope, in source order. Other files can use these names."""
    scopes = {symbol["qualified"] for symbol in symbols if symbol["symbol_type"] not in _NAMESPACE_SYMBOL_TYPES}
    scopes_with_symbols = {
        symbol.get("scope", "") for symbol in symbols if symbol["symbol_type"] in _USABLE_SYMBOL_TYPES
    }
    for symbol in symbols:
        is_usable = symbol["symbol_type"] in _USABLE_SYMBOL_TYPES
        if language == "ruby" and symbol["symbol_type"] == "module":
            is_usable = symbol["qualified"] not in scopes_with_symbols
        # In Go, `private` names belong to the package: other files of its directory can use them.
        is_visible = language == "go" or symbol.get("visibility") != "private"
        is_visible = is_visible and symbol.get("scope", "") not in scopes
        name = str(symbol["name"]).rpartition(".")[2]
        if is_usable and is_visible and name not in _UNSPECIFIC_NAMES:
            yield name


def _can_use_without_import(language: str, path: bytes, symbols: Sequence[JsonRecord]) -> Callable[[bytes], bool]:
    """Return a predicate that is true for files from which a file at `path` can be used without an import.

    In Go, they are in the directory of the file. In Java, Kotlin and Scala, they are in directories of the same
    package. In other languages, the predicate is always true.
    """
    directory = path.rpartition(b"/")[0]
    if language == "go":
        return lambda other: other == directory
    if language not in _PACKAGE_LANGUAGES:
        return lambda _: True
    package = next((str(symbol["name"]) for symbol in symbols if symbol["symbol_type"] == "module"), "")
    below = b"/" + package.replace(".", "/").encode()
    if package and (b"/" + directory).endswith(below):
        return lambda other: (b"/" + other).endswith(below)
    return lambda other: other == directory
