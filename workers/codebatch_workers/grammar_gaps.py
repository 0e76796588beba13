"""What is right in JavaScript and TypeScript and their grammars do not know: each such place gets a stand-in.

A stand-in is as long as what it stands for, so that every offset is that of the file, and keeps names and the types in
it where they are. It is tried only where a tree has errors, and kept only where it has fewer (`SourceFile.parse`):
there it may be blunt. Held against the TypeScript compiler's own parser (tests/oracles, "verdicts").

And Python's `type(x).y = z`, which its grammar takes for an alias of a type: only such a place gets a stand-in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from codebatch_workers.broken_trees import QUERY_DEPTH_MAX
from codebatch_workers.languages import load_language

if TYPE_CHECKING:
    from tree_sitter import QueryCursor, Tree

_RESERVED = (
    rb"break|case|catch|class|const|continue|debugger|delete|do|else|enum|export|extends|finally|for|function|if|import"
    rb"|in|instanceof|new|return|super|switch|throw|try|typeof|var|void|while|with|yield"
)
_BETWEEN = rb"(?:\s|/\*[^*]*(?:\*(?!/)[^*]*)*\*/|//[^\n]*\n)*"

# Reserved words as names of exports: `export { a as void }`, `import { if as a }`. The group becomes a plain name.
_NAMES = (
    re.compile(rb"[\w$]\s+as\s+(%s|null|this|true|false)(?=\s*(?:[,}]|/[/*]))" % _RESERVED),
    re.compile(rb"[{,]%s(%s)(?=\s+as\s+[\w$])" % (_BETWEEN, _RESERVED)),
)
# `using` and `abstract` as any other name.
_TYPED_NAMES = (re.compile(rb"\b(using|abstract)(?=\s*[?:,)=.;\]}])"),)
# The group becomes blanks.
_BLANKS = (
    # Variance: `<in out A, out B>`.
    re.compile(rb"[<,]%s(?:const\s+)?((?:in\s+out|in|out)\b)(?=\s+(?!extends\b)[A-Za-z_$])" % _BETWEEN),
    # `global { … }` in a module's declaration: a block does.
    re.compile(rb"^[ \t]*(global)(?=\s*\{)", re.MULTILINE),
    re.compile(rb"\bexport\s+(type)(?=\s*\*)"),
    re.compile(rb"\bkeyof\s+(readonly)(?=\s)"),
    re.compile(rb"\b(keyof)\s+import\("),
    re.compile(rb"\babstract\s+(?:override\s+)?(accessor)(?=\s+[\w$#\[])"),
)
# `f<<T>(a: T) => b>(c)`: the type parameters become blanks.
_SHIFT = re.compile(rb"[\w$]<(?=<[A-Za-z_$])")
# `import("a").B<C>`, `import("a").B[]`: a type of an import ends after its name, for the grammar. The name makes room
# for a union with a tuple of what follows: `import("a") |[C]`.
_IMPORT_TYPE = re.compile(
    rb"(?<!typeof )\bimport\(\s*(?:\"[^\"\n]*\"|'[^'\n]*')\s*\)"
    rb"(?!\s*\.\s*(?:then|catch|finally)\b)((?:\s*\.\s*[\w$]+)+\s*)(?=[<\[])"
)
# A line that begins with a bracket, and a blank before it: a signature in a type, where nothing ended the one before.
_LINE = re.compile(rb"^[ \t]*([ \t])(?=<\s*[A-Za-z_$]|\()", re.MULTILINE)
_ENDS_A_TYPE = re.compile(rb"(?:[\w$\])}\"'`]|(?<!=)>)\Z")
_BRACKETS = re.compile(rb"=>|[<>()]|\"[^\"\n]*\"|'[^'\n]*'|//[^\n]*|/\*[^*]*(?:\*(?!/)[^*]*)*\*/")
_WHITE = re.compile(rb"\s*")
# What stands between two signatures is shorter.
_COMMENT_BYTES_MAX = 20_000

LANGUAGES_WITH_GAPS = frozenset({"javascript", "typescript", "tsx"})


# A type that an alias names does not begin with a bracket.
_CALL_OF_TYPE = re.compile(rb"(?:\A|(?<=[\s;:]))type(?=(?:[ \t\f]|\\\r?\n)*[(\[])")


class _StandIn(NamedTuple):
    start: int
    text: bytes


def with_stand_ins(utf8: bytes, language: str) -> bytes:
    """The text of a file in one of LANGUAGES_WITH_GAPS with a stand-in for each place, of the same length."""
    text = bytearray(utf8)
    for start, stand_in in _stand_ins(utf8, is_typed=language != "javascript"):
        text[start : start + len(stand_in)] = stand_in
    assert len(text) == len(utf8)
    return bytes(text)


def with_calls_of_type(utf8: bytes, tree: Tree) -> bytes:
    """The text of a Python file with a plain name for each `type` that is called where an alias could begin."""
    if _CALL_OF_TYPE.search(utf8) is None:
        return utf8
    text = bytearray(utf8)
    for word in _words_of_aliases().captures(tree.root_node).get("word", ()):
        if _CALL_OF_TYPE.match(utf8, word.start_byte):
            text[word.start_byte : word.end_byte] = b"_ype"
    return bytes(text)


@cache
def _words_of_aliases() -> QueryCursor:
    from tree_sitter import Query, QueryCursor

    cursor = QueryCursor(Query(load_language("python"), '(type_alias_statement "type" @word)'))
    cursor.set_max_start_depth(QUERY_DEPTH_MAX)
    return cursor


def _stand_ins(utf8: bytes, *, is_typed: bool) -> Iterator[_StandIn]:
    for pattern in (*_NAMES, *_TYPED_NAMES) if is_typed else _NAMES:
        for match in pattern.finditer(utf8):
            yield _StandIn(match.end(1) - 1, b"_")
    if is_typed:
        for pattern in _BLANKS:
            for match in pattern.finditer(utf8):
                yield _StandIn(match.start(1), _blank(match[1]))
        yield from _stand_ins_of_types(utf8)


def _stand_ins_of_types(utf8: bytes) -> Iterator[_StandIn]:
    """Those that depend on where a bracket is closed."""
    closings = _closings(utf8)
    for match in _SHIFT.finditer(utf8):
        parameters = _after(utf8, closings.get(match.end()), b"(")
        if parameters is not None and _after(utf8, closings.get(parameters), b"=>") is not None:
            yield _StandIn(match.end(), _blank(utf8[match.end() : parameters]))
    for match in _IMPORT_TYPE.finditer(utf8):
        start, opening = match.span(1)
        closing = closings.get(opening) if utf8[opening] == ord("<") else opening
        if closing is not None:
            yield _StandIn(start, _blank(utf8[start : opening - 1]) + b"|[")
            if closing != opening:
                yield _StandIn(closing, b"]")
    for match in _LINE.finditer(utf8):
        after = b"(" if utf8[match.end()] == ord("<") else b":"
        is_signature = _after(utf8, closings.get(match.end()), after) is not None
        if is_signature and _ENDS_A_TYPE.search(_code_before(utf8, match.start())):
            yield _StandIn(match.start(1), b";")


def _blank(text: bytes) -> bytes:
    """Blanks for all but the ends of lines."""
    return re.sub(rb"[^\n]", b" ", text)


def _closings(utf8: bytes) -> dict[int, int]:
    """Where each round and angle bracket is closed, in one pass: a file may hold millions."""
    closings: dict[int, int] = {}
    angles: list[int] = []
    rounds: list[int] = []
    for match in _BRACKETS.finditer(utf8):
        match match[0]:
            case b"<":
                angles.append(match.start())
            case b"(":
                rounds.append(match.start())
            case b">" if angles:
                closings[angles.pop()] = match.start()
            case b")" if rounds:
                closings[rounds.pop()] = match.start()
    return closings


def _after(utf8: bytes, closing: int | None, token: bytes) -> int | None:
    """Where `token` stands, if it is next behind a bracket."""
    if closing is None:
        return None
    behind = _WHITE.match(utf8, closing + 1)
    return behind.end() if behind and utf8.startswith(token, behind.end()) else None


def _code_before(utf8: bytes, end: int) -> bytes:
    """The line of code that ends before an offset, without the comments behind it."""
    while True:
        floor = max(0, end - _COMMENT_BYTES_MAX)
        end = floor + len(utf8[floor:end].rstrip())
        line = utf8[utf8.rfind(b"\n", 0, end) + 1 : end]
        if line.endswith(b"*/"):
            end = max(0, utf8.rfind(b"/*", floor, end))
        elif line.lstrip().startswith(b"//"):
            end -= len(line)
        else:
            return line.partition(b" //")[0].rstrip()
