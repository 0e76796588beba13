"""Files that may use another one without an import: languages in which a name of the same package needs none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.answers.import_rules import HEADER_ENDINGS, USERS_WITHOUT_IMPORT, may_be_used_without_import
from codebatch.query.fields import JsonRecord

_NAMES = {
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
_PACKAGED = ("java", "kotlin", "scala")
_USABLE = frozenset(
    {"class", "constant", "enum", "function", "interface", "struct", "trait", "type", "union", "variable"}
)
_NAMESPACES = frozenset({"module", "namespace"})
# What each program or package has of its own.
_SPECIAL = frozenset({"_", "init", "main"})


class Mentions(msgspec.Struct, frozen=True, kw_only=True):
    """The number of files that mention names defined in a file, without a known import of the file.

    `name` is the name that most likely refers to the file.
    """

    language: str
    files: int
    name: str

    @property
    def told(self) -> str:
        """The reason for which an answer is not the whole one."""
        verb = "file mentions" if self.files == 1 else "files mention"
        return (
            f"in {self.language}, references without an import are not resolved: {self.files:,} other {verb} "
            f"names that this file defines; see: codebatch references {self.name}"
        )


def find_mentions(question: BatchQuery, path: bytes, item: int, known: Collection[bytes]) -> Mentions | None:
    """Return which files may use the one at a path without an import, besides itself and those in `known`.

    None if there are none, or its language needs an import for each use. Raises StoreCorrupt.
    """
    records = question.records
    languages = {file.path_bytes: file.lang for file in records.files}
    language = languages.get(path, "")
    if not may_be_used_without_import(language, path):
        return None
    defined = [each for each in records.item_records("symbols", item) or () if each["kind"] == "symbol"]
    names = list(dict.fromkeys(_outermost(language, defined)))
    if not names:
        return None
    pattern = _mention(language, path, names)
    is_near = _nearness(language, path, defined)
    counts: Counter[bytes] = Counter()
    files = 0
    for entry in records.items:
        other = entry.path
        if other == path or other in known or languages.get(other) not in USERS_WITHOUT_IMPORT[language]:
            continue
        if other.endswith(HEADER_ENDINGS) or not is_near(other.rpartition(b"/")[0]):
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


def _mention(language: str, path: bytes, names: Sequence[str]) -> re.Pattern[bytes]:
    """Return the pattern of a mention, whose group is the name. In Rust a path without `use` ends `module::name`."""
    before = rb"(?<!\w)"
    if language == "rust":
        directory, _, file = path.rpartition(b"/")
        stem = file.removesuffix(b".rs")
        if stem in (b"lib", b"main"):
            return re.compile(rb"(?<![\w:])crate\s*::\s*(%b)(?!\w)" % _either(names))
        module = directory.rpartition(b"/")[2] if stem == b"mod" else stem
        before = rb"(?<!\w)%b\s*::\s*" % re.escape(module)
    return re.compile(before + rb"(%b)(?!\w)" % _either(names))


def _either(names: Sequence[str]) -> bytes:
    return b"|".join(re.escape(name.encode()) for name in names)


def _outermost(language: str, symbols: Sequence[JsonRecord]) -> Iterator[str]:
    """Yield the names of a file that others can use: those of its outermost scope, in their order."""
    within = {each["qualified"] for each in symbols if each["symbol_type"] not in _NAMESPACES}
    holding = {each.get("scope", "") for each in symbols if each["symbol_type"] in _USABLE}
    for each in symbols:
        is_usable = each["symbol_type"] in _USABLE
        if language == "ruby" and each["symbol_type"] == "module":
            is_usable = each["qualified"] not in holding
        # In Go, `private` names are those of the package: the files of its directory use them.
        is_seen = language == "go" or each.get("visibility") != "private"
        is_seen = is_seen and each.get("scope", "") not in within
        name = str(each["name"]).rpartition(".")[2]
        if is_usable and is_seen and name not in _SPECIAL:
            yield name


def _nearness(language: str, path: bytes, symbols: Sequence[JsonRecord]) -> Callable[[bytes], bool]:
    """Return which directories hold files that need no import: of Go the file's own, of Java those of its package."""
    directory = path.rpartition(b"/")[0]
    if language == "go":
        return lambda other: other == directory
    if language not in _PACKAGED:
        return lambda _: True
    package = next((str(each["name"]) for each in symbols if each["symbol_type"] == "module"), "")
    below = b"/" + package.replace(".", "/").encode()
    if package and (b"/" + directory).endswith(below):
        return lambda other: (b"/" + other).endswith(below)
    return lambda other: other == directory
