"""Macros in the heads of C's and C++'s declarations, which a grammar that knows no preprocessor takes for names.

`LUA_API lua_Unsigned lua_rawlen(lua_State *L) {` is to it a function `lua_Unsigned`. Such a macro gets a stand-in:
blanks, as many as it is long, so that every offset is that of the file. Only what no C compiler would take as it is has
one: a name where the type is whole, brackets between a type and a name, brackets in brackets (`f OF((int a));`), a
macro that is a declaration of its own and gets a semicolon. So has an old-style definition of what returns a pointer,
which the grammar does not know.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from codebatch_workers.syntax.grammar_gaps.stand_ins import blank

# What was taken is never given back, which could not help here: half of the time of such a pattern. Python 3.10 cannot.
_ONCE = b"+" if sys.version_info >= (3, 11) else b""
# What may be the head of a declaration: words and stars at the start of a line or nearly there, the word behind them,
# and what follows. It begins with what is found fast, or passed over; everything is bounded, for a file may hold
# nothing else.
_ARGUMENTS = rb"[\w\s,\"./:-]{0,200}\)\s*(?=[A-Za-z_(])"
_HEAD = re.compile(
    rb"\n(?= {0,3}[A-Za-z_]) {0,3}%s"
    rb"(?:((?:[A-Za-z_]\w*%s[\s*]+%s){1,8})(?:[A-Za-z_]\w*%s[ \t]*%s(?=[;=,\[(])|(?=\())(\((?:[(*]|%s))?"
    rb"|[A-Z_]\w*%s[ \t]*%s\(%s)" % (_ONCE, _ONCE, _ONCE, _ONCE, _ONCE, _ARGUMENTS, _ONCE, _ONCE, _ARGUMENTS)
)
_HEAD_BYTES_MAX = 4096
# Further inside of a line, as in a conditional, prototypes with two pairs of brackets are looked for alone.
_WRAPPED = re.compile(rb"\(\([^()#;{}]{0,2000}(?:\([^()#;{}]{0,200}\)[^()#;{}]{0,2000}){0,8}\)\)[ \t]*;")
_INDENTED = re.compile(rb"[ \t]{4,}(?:[A-Za-z_]\w*[ \t*]+){2,8}[A-Za-z_]\w*[ \t]*\Z")
_LINE_BYTES_MAX = 512
_BRACKETS = rb"\([^()#;{}]*(?:\([^()#;{}]*(?:\([^()#;{}]*\)[^()#;{}]*)*\)[^()#;{}]*)*\)"
_TOKEN = re.compile(rb"\s*(?:([A-Za-z_]\w*)|(\*)|(%s)|([;{=,\[]))" % _BRACKETS)
_KINDS = ("", "word", "star", "brackets", "end")
# As most functions are, of which what stands before the name says all.
_PLAIN_FUNCTION = re.compile(rb"([A-Za-z_]\w*)\s*(\([^()#;{}]*\))\s*[;{]")
_PREFIX_TOKEN = re.compile(rb"\w+|\*")
# Of parameters rather than of a macro's arguments or of an old-style definition: nothing, or two words, or a star.
_PARAMETERS = re.compile(rb"\(\s*(?:void\s*)?\)|.*\w[\s*]+\w|.*\*|.*\.\.\.", re.DOTALL)

_BRACKETED_TYPE = re.compile(rb"\(\s*([A-Za-z_]\w*)\b[\w\s*]*\)\Z")

_TYPES = frozenset(b"_Bool _Complex char double float int long short signed unsigned void".split())
_TAGS = frozenset(b"class enum struct union".split())
_STORAGE = frozenset(b"auto extern inline register static typedef".split())
_QUALIFIERS = _STORAGE | frozenset(
    b"_Atomic _Noreturn _Thread_local __cdecl __extension__ __fastcall __forceinline __inline __inline__ __restrict "
    b"__restrict__ __stdcall __thread const constexpr noreturn restrict thread_local volatile".split()
)
_NO_NAMES = _QUALIFIERS | _TYPES | _TAGS
# What the grammar knows with the brackets behind it.
_ATTRIBUTES = frozenset(b"_Alignas __asm__ __attribute__ __declspec alignas asm".split())
# Where one of these stands is no declaration that could be mended.
_OTHERS = frozenset(
    b"__typeof__ break case catch co_await co_return co_yield concept continue decltype default delete do else "
    b"export final for friend goto if namespace new noexcept operator override private protected public "
    b"requires return sizeof switch template throw try typename typeof using while".split()
)
_NO_FUNCTIONS = _OTHERS | _ATTRIBUTES


class MacroStandIn(NamedTuple):
    """What stands for a part of the text: these bytes, and blanks for the rest."""

    start: int
    end: int
    text: bytes = b""


class _Token(msgspec.Struct, frozen=True):
    kind: str
    start: int
    end: int
    text: bytes

    @property
    def is_name(self) -> bool:
        return self.kind == "word" and self.text not in _NO_NAMES

    @property
    def blank(self) -> MacroStandIn:
        return MacroStandIn(self.start, self.end)


def without_macros(utf8: bytes) -> bytes:
    """The text of a file in one of LANGUAGES_WITH_MACROS with a stand-in for each macro, of the same length."""
    text = None
    for start, end, stand_in in stand_ins(utf8):
        text = text or bytearray(utf8)
        text[start:end] = stand_in + blank(utf8[start + len(stand_in) : end])
    return utf8 if text is None else bytes(text)


def stand_ins(utf8: bytes) -> Iterator[MacroStandIn]:
    """Without overlaps, in no order."""
    done = 0
    for match in _HEAD.finditer(b"\n" + utf8):
        prefix, follows = match.groups()
        spans = None if prefix is None else _superfluous_in(prefix)
        if spans == () and not (follows and not _is_statement(prefix)):
            continue
        start = match.start()
        if start < done:
            continue
        plain = _PLAIN_FUNCTION.match(utf8, match.end(1) - 1) if spans and not follows else None
        if spans and plain is not None and plain[1] not in _NO_FUNCTIONS and _PARAMETERS.match(plain[2]):
            done, before = plain.end(), match.start(1) - 1
            for first, last in spans:
                yield MacroStandIn(before + first, before + last)
        else:
            tokens, done = _tokens(utf8, start)
            yield from _mended(tokens)
    for match in _WRAPPED.finditer(utf8):
        start = utf8.rfind(b"\n", max(0, match.start() - _LINE_BYTES_MAX), match.start()) + 1
        if _INDENTED.match(utf8, start, match.start()):
            yield from _mended(_tokens(utf8, start)[0])


@lru_cache(maxsize=4096)
def _is_statement(prefix: bytes) -> bool:
    return not _OTHERS.isdisjoint(prefix.split())


@lru_cache(maxsize=4096)
def _superfluous_in(prefix: bytes) -> tuple[tuple[int, int], ...]:
    """Where words are before a name that can be neither its type nor a qualifier; none in what is no declaration."""
    words = _PREFIX_TOKEN.finditer(prefix)
    tokens = [_Token("star" if word[0] == b"*" else "word", *word.span(), word[0]) for word in words]
    if any(token.text in _OTHERS for token in tokens):
        return ()
    return tuple((token.start, token.end) for token in _superfluous(tokens))


def _tokens(utf8: bytes, start: int) -> tuple[list[_Token], int]:
    """The tokens of a head and of what ends it, none where something else stands in it; and how far was looked."""
    found: list[_Token] = []
    end, limit = start, start + _HEAD_BYTES_MAX
    while match := _TOKEN.match(utf8, end, limit):
        group = match.lastindex or 0
        text, end = match[group], match.end()
        if text in _OTHERS:
            break
        if group == 3 and found and found[-1].text in _ATTRIBUTES:
            found.pop()
            continue
        found.append(_Token(_KINDS[group], match.start(group), end, text))
        if group == 4:
            return found, end
    return [], end


def _mended(tokens: Sequence[_Token]) -> Iterator[MacroStandIn]:
    """The stand-ins of one head."""
    while (after := _after_statement(tokens)) > 0:
        for token in tokens[: after - 2]:
            yield token.blank
        yield MacroStandIn(tokens[after - 1].end, tokens[after - 1].end + 1, b";")
        tokens = tokens[after:]
    if len(tokens) < len(("name", ";")):
        return
    *items, end = tokens
    around = _around_type(items)
    if around:
        macro, brackets = items[around - 1], items[around]
        yield MacroStandIn(macro.start, brackets.start + 1)
        yield MacroStandIn(brackets.end - 1, brackets.end)
    elif all(token.kind != "brackets" for token in items):
        yield from _of_variable(items) if end.kind != "{" else ()
    elif items[0].kind == "word":
        yield from _of_function(items, end.text)


def _around_type(items: Sequence[_Token]) -> int:
    """Where the brackets are of a macro around a type that begins with a keyword, `INLINE(void) f(int a)`; or 0."""
    at = next((index for index, token in enumerate(items) if token.kind == "brackets"), 0)
    if not at or not items[at - 1].text.isupper() or any(token.text not in _STORAGE for token in items[: at - 1]):
        return 0
    name = next((index for index in range(at + 1, len(items)) if items[index].kind != "star"), 0)
    is_function = 0 < name == len(items) - 2 and items[name].is_name and items[-1].kind == "brackets"
    keyword = _BRACKETED_TYPE.match(items[at].text)
    return at if is_function and keyword and keyword[1] in _NO_NAMES and items[at].end != items[at + 1].start else 0


def _after_statement(tokens: Sequence[_Token]) -> int:
    """Behind a macro that is a declaration of its own, `static MACRO(x)` before another's head; 0 where none is."""
    first = next((index for index, token in enumerate(tokens) if token.kind == "brackets"), 0)
    rest = tokens[first + 1 :]
    if not first or not rest or tokens[first - 1].kind != "word" or tokens[first].end == rest[0].start:
        return 0
    if any(token.text not in _STORAGE for token in tokens[: first - 1]):
        return 0
    words = next((index for index, token in enumerate(rest) if token.kind != "word"), 0)
    is_head = words > 1 and rest[words].kind in ("brackets", "star") and any(each.kind == "brackets" for each in rest)
    return first + 1 if rest[0].text in _STORAGE or is_head else 0


def _of_variable(items: Sequence[_Token]) -> Iterator[MacroStandIn]:
    """`EXPORT const table_t TABLE[`, `int name UNUSED;`."""
    at = _attributed(items) or len(items) - 1
    for token in (*_superfluous(items[:at]), *items[at + 1 :]):
        yield token.blank


def _attributed(items: Sequence[_Token]) -> int:
    """Where a variable's name is that a macro follows, `foo_t name UNUSED` or `int name ALIGN(8)`; 0 where none is."""
    free = _free(items)
    last = len(items) - 1 - (items[-1].kind == "brackets")
    if not free or free[-1] != last or not items[last].text.isupper():
        return 0
    quiet = [index for index in free if not items[index].text.isupper()]
    return quiet[-1] if len(quiet) > (not _is_typed(items)) else 0


def _of_function(items: Sequence[_Token], end: bytes) -> Iterator[MacroStandIn]:
    if _is_wrapped(items):
        # `f OF((int a))`.
        *items, macro, brackets = items
        yield MacroStandIn(macro.start, brackets.start + 1)
        yield MacroStandIn(brackets.end - 1, brackets.end)
        items = [*items, replace(brackets, text=b"()")]
    brackets_at = [index for index, token in enumerate(items) if token.kind == "brackets"]
    first = brackets_at[0]
    rest = items[first + 1 :]
    at = _parameters(items, brackets_at)
    name = at - 1
    if not _PARAMETERS.match(items[first].text) and _is_old_style(items[: first - 1], rest):
        yield from _of_old_style(items[: first - 1])
    elif len(brackets_at) == 1 and not _PARAMETERS.match(items[at].text) and not rest and _attributed(items):
        yield from _of_variable(items)
    elif _is_declarator(items[name], end) and _are_attributes(items[at + 1 :]):
        for token in items[at + 1 :]:
            yield token.blank
        yield from _before_name(items[:name], is_in_brackets=items[name].kind == "brackets")


def _is_declarator(token: _Token, end: bytes) -> bool:
    """Whether a function may be named by this; a pointer to one, which is in brackets, may have a value."""
    return token.kind == "brackets" or (token.kind == "word" and end in (b";", b"{"))


def _is_wrapped(items: Sequence[_Token]) -> bool:
    """Whether a macro stands around the parameters of a prototype, so that these have two pairs of brackets."""
    return (
        len(items) > 3
        and items[-1].text[1:].lstrip().startswith(b"(")
        and items[-2].is_name
        and (items[-3].is_name or items[-3].kind == "brackets")
    )


def _of_old_style(before: Sequence[_Token]) -> Iterator[MacroStandIn]:
    """Before the name of a function whose parameters are declared behind its brackets."""
    for token in (*_superfluous(before), *(token for token in before if token.kind == "star")):
        yield token.blank


def _is_old_style(before: Sequence[_Token], rest: Sequence[_Token]) -> bool:
    """Whether a function's name and brackets stand between these: `int f(a) char *a;`."""
    words = sum(token.kind == "word" for token in rest)
    is_declaration = words > 1 and all(token.kind != "brackets" for token in rest)
    # Of what is a function: `int f(a) int (*a)();`.
    is_declaration |= words > 0 and rest[0].text in _TYPES
    return is_declaration and any(token.text not in _QUALIFIERS for token in before)


def _parameters(items: Sequence[_Token], brackets: Sequence[int]) -> int:
    """Which brackets hold the parameters of a function; those behind its name where that is in brackets itself."""
    for index in brackets:
        if index + 1 in brackets:
            return index + 1
        if _PARAMETERS.match(items[index].text):
            return index
    first, last = brackets[0], brackets[-1]
    return first if items[last - 1].text.isupper() and not items[first - 1].text.isupper() else last


def _are_attributes(after: Sequence[_Token]) -> bool:
    """Whether what follows a function's brackets are macros: `f(void) NORETURN FORMAT(1, 2) {`."""
    plain = sum(
        token.kind == "word" and (index + 1 == len(after) or after[index + 1].kind != "brackets")
        for index, token in enumerate(after)
    )
    return all(token.is_name or token.kind == "brackets" for token in after) and (
        plain < 2 or all(token.text.isupper() for token in after if token.kind == "word")
    )


def _before_name(before: Sequence[_Token], *, is_in_brackets: bool) -> Iterator[MacroStandIn]:
    """Those of what stands before a function's name."""
    called = [index for index, token in enumerate(before) if token.kind == "brackets" and index]
    plain = [token for index, token in enumerate(before) if token.kind != "brackets" and index + 1 not in called]
    if called and (_is_typed(plain) or _free(plain)):
        for index in called:
            yield before[index - 1].blank
            yield before[index].blank
    for number, token in enumerate(_superfluous(plain)):
        # `type_t (*name)(a)` could be a call; a qualifier says that it is none.
        is_needed = is_in_brackets and not number and token.end - token.start >= len(b"const")
        yield token.blank._replace(text=b"const" if is_needed else b"")


def _is_typed(tokens: Sequence[_Token]) -> bool:
    """Whether keywords say a type."""
    return any(token.text in _TYPES or token.text in _TAGS for token in tokens)


def _free(tokens: Sequence[_Token]) -> list[int]:
    """Where the names are that do not belong to a `struct` or the like."""
    return [
        index
        for index, token in enumerate(tokens)
        if token.is_name and (not index or tokens[index - 1].text not in _TAGS)
    ]


def _superfluous(before: Sequence[_Token]) -> list[_Token]:
    """Of the words before a name, those that can be neither its type nor a qualifier."""
    free = _free(before)
    if _is_typed(before):
        return [before[index] for index in free]
    star = next((index for index, token in enumerate(before) if token.kind == "star"), len(before))
    candidates = [index for index in free if index < star] or free
    # A macro's name is shouted as a rule; of two that are not, the type is nearer to the name.
    types = [index for index in candidates if not before[index].text.isupper()] or candidates
    return [before[index] for index in free if index != types[-1]]
