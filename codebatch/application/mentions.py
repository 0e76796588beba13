"""Files that may use another one without an import: languages in which a name of the same package needs none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from codebatch.application.asking import Question
from codebatch.errors import ObjectMissing
from codebatch.query.fields import JsonRecord

_JVM = ("java", "kotlin", "scala")
# In which languages a file may use names that one in this language defines, and no import says so.
_USERS: Mapping[str, tuple[str, ...]] = {
    "c": ("c", "cpp"),
    "cpp": ("c", "cpp"),
    "csharp": ("csharp",),
    "go": ("go",),
    "java": _JVM,
    "kotlin": _JVM,
    "php": ("php",),
    "ruby": ("ruby",),
    "scala": _JVM,
    "swift": ("swift",),
}
_NAMES = {
    "c": "C",
    "cpp": "C++",
    "csharp": "C#",
    "go": "Go",
    "java": "Java",
    "kotlin": "Kotlin",
    "php": "PHP",
    "ruby": "Ruby",
    "scala": "Scala",
    "swift": "Swift",
}
_USABLE = frozenset(
    {"class", "constant", "enum", "function", "interface", "struct", "trait", "type", "union", "variable"}
)
_NAMESPACES = frozenset({"module", "namespace"})
# What each program or package has of its own.
_SPECIAL = frozenset({"_", "init", "main"})
_HEADERS = (b".h", b".hh", b".hpp", b".hxx", b".inl", b".ipp")


class Mentions(msgspec.Struct, frozen=True, kw_only=True):
    """How many files mention names that a file defines, and are not known to import it; `name` is the likeliest."""

    language: str
    files: int
    name: str

    @property
    def told(self) -> str:
        """The reason for which an answer is not the whole one."""
        verb = "file mentions" if self.files == 1 else "files mention"
        return (
            f"uses without an import are not resolved in {self.language}: {self.files:,} other {verb} "
            f"names that this one defines; see: codebatch references {self.name}"
        )


def find_mentions(question: Question, path: bytes, item: int, known: Collection[bytes]) -> Mentions | None:
    """Return which files may use the one at a path without an import, besides itself and those in `known`.

    None if there are none, or its language needs an import for each use. Raises StoreCorrupt.
    """
    records = question.records
    languages = {file.path_bytes: file.lang for file in records.files}
    language = languages.get(path, "")
    if language not in _USERS or (language in ("c", "cpp") and path.endswith(_HEADERS)):
        return None
    defined = [each for each in records.item_records("symbols", item) or () if each["kind"] == "symbol"]
    names = list(dict.fromkeys(_outermost(language, defined)))
    if not names:
        return None
    pattern = re.compile(rb"(?<!\w)(%b)(?!\w)" % b"|".join(re.escape(name.encode()) for name in names))
    is_near = _nearness(language, path, defined)
    counts: Counter[bytes] = Counter()
    files = 0
    for entry in records.items:
        other = entry.path
        if other == path or other in known or languages.get(other) not in _USERS[language]:
            continue
        if other.endswith(_HEADERS) or not is_near(other.rpartition(b"/")[0]):
            continue
        try:
            found = set(pattern.findall(records.read_object(entry)))
        except ObjectMissing:
            continue
        files += bool(found)
        counts.update(found)
    if not files:
        return None
    likeliest = max(names, key=lambda name: counts[name.encode()])
    return Mentions(language=_NAMES[language], files=files, name=likeliest)


def _outermost(language: str, symbols: Sequence[JsonRecord]) -> Iterator[str]:
    """Yield the names of a file that others can use: those of its outermost scope, in their order."""
    within = {each["qualified"] for each in symbols if each["symbol_type"] not in _NAMESPACES}
    holding = {each.get("scope", "") for each in symbols if each["symbol_type"] in _USABLE}
    for each in symbols:
        is_usable = each["symbol_type"] in _USABLE
        if language == "ruby" and each["symbol_type"] == "module":
            is_usable = each["qualified"] not in holding
        is_seen = each.get("visibility") != "private" and each.get("scope", "") not in within
        name = str(each["name"]).rpartition(".")[2]
        if is_usable and is_seen and name not in _SPECIAL:
            yield name


def _nearness(language: str, path: bytes, symbols: Sequence[JsonRecord]) -> Callable[[bytes], bool]:
    """Return which directories hold files that need no import: of Go the file's own, of Java those of its package."""
    directory = path.rpartition(b"/")[0]
    if language == "go":
        return lambda other: other == directory
    if language not in _JVM:
        return lambda _: True
    package = next((str(each["name"]) for each in symbols if each["symbol_type"] == "module"), "")
    below = b"/" + package.replace(".", "/").encode()
    if package and (b"/" + directory).endswith(below):
        return lambda other: (b"/" + other).endswith(below)
    return lambda other: other == directory
