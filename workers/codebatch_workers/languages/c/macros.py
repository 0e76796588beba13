"""Macros in the heads of C and C++ declarations, which a grammar without a preprocessor takes for names.

For example, in `LUA_API lua_Unsigned lua_rawlen(lua_State *L) {` the grammar finds a function `lua_Unsigned`. Blanks of
the same length replace such a macro, so offsets stay valid. A head is the text of a declaration up to its body, value
or semicolon. Only text that no C compiler accepts without macros is replaced:

- a name where the type is already complete
- parentheses between a type and a name
- parentheses in parentheses (`f OF((int a));`)
- a macro that is a whole declaration, which gets a semicolon

The heads of old-style definitions of functions that return pointers are changed too, because the grammar does not
support them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for

# Backtracking never helps in these patterns. Possessive quantifiers avoid it, and take half the time. Python 3.10 lacks
# them.
_POSSESSIVE_MARK = b"+" if sys.version_info >= (3, 11) else b""
# A possible head of a declaration: words and stars near the start of a line, the next word, and the text after it. `re`
# searches fast for the text with which the pattern begins. Each repetition is bounded, because a file can consist of
# nothing else.
_MACRO_ARGUMENTS = rb"[\w\s,\"./:-]{0,200}\)\s*(?=[A-Za-z_(])"
_DECLARATION_HEAD = re.compile(
    rb"\n(?= {0,3}[A-Za-z_]) {0,3}%s"
    rb"(?:((?:[A-Za-z_]\w*%s[\s*]+%s){1,8})(?:[A-Za-z_]\w*%s[ \t]*%s(?=[;=,\[(])|(?=\())(\((?:[(*]|%s))?"
    rb"|[A-Z_]\w*%s[ \t]*%s\(%s)"
    % (
        _POSSESSIVE_MARK,
        _POSSESSIVE_MARK,
        _POSSESSIVE_MARK,
        _POSSESSIVE_MARK,
        _POSSESSIVE_MARK,
        _MACRO_ARGUMENTS,
        _POSSESSIVE_MARK,
        _POSSESSIVE_MARK,
        _MACRO_ARGUMENTS,
    )
)
_HEAD_BYTES_MAX = 4096
# A prototype with two pairs of parentheses. Heads of this kind are also searched deeper in a line, for example in a
# conditional.
_WRAPPED_PARAMETERS = re.compile(rb"\(\([^()#;{}]{0,2000}(?:\([^()#;{}]{0,200}\)[^()#;{}]{0,2000}){0,8}\)\)[ \t]*;")
_INDENTED_PROTOTYPE = re.compile(rb"[ \t]{4,}(?:[A-Za-z_]\w*[ \t*]+){2,8}[A-Za-z_]\w*[ \t]*\Z")
_LINE_BYTES_MAX = 512
_NESTED_BRACKETS = rb"\([^()#;{}]*(?:\([^()#;{}]*(?:\([^()#;{}]*\)[^()#;{}]*)*\)[^()#;{}]*)*\)"
_HEAD_TOKEN = re.compile(rb"\s*(?:([A-Za-z_]\w*)|(\*)|(%s)|([;{=,\[]))" % _NESTED_BRACKETS)
_TOKEN_KINDS = ("", "word", "star", "brackets", "end")
# The common form of a function head. In this form, only the text before the name can contain macros.
_PLAIN_FUNCTION = re.compile(rb"([A-Za-z_]\w*)\s*(\([^()#;{}]*\))\s*[;{]")
_PREFIX_TOKEN = re.compile(rb"\w+|\*")
# Text in parentheses that must be parameters, and not the arguments of a macro or of an old-style definition. It is
# empty, or contains two adjacent words, a star, or `...`.
_PARAMETER_LIST = re.compile(rb"\(\s*(?:void\s*)?\)|.*\w[\s*]+\w|.*\*|.*\.\.\.", re.DOTALL)

_BRACKETED_TYPE = re.compile(rb"\(\s*([A-Za-z_]\w*)\b[\w\s*]*\)\Z")

_TYPE_KEYWORDS = frozenset(b"_Bool _Complex char double float int long short signed unsigned void".split())
_TAG_KEYWORDS = frozenset(b"class enum struct union".split())
_STORAGE_KEYWORDS = frozenset(b"auto extern inline register static typedef".split())
_QUALIFIER_KEYWORDS = _STORAGE_KEYWORDS | frozenset(
    b"_Atomic _Noreturn _Thread_local __cdecl __extension__ __fastcall __forceinline __inline __inline__ __restrict "
    b"__restrict__ __stdcall __thread const constexpr noreturn restrict thread_local volatile".split()
)
_KEYWORDS = _QUALIFIER_KEYWORDS | _TYPE_KEYWORDS | _TAG_KEYWORDS
# Attributes with arguments that the grammar supports.
_ATTRIBUTE_KEYWORDS = frozenset(b"_Alignas __asm__ __attribute__ __declspec alignas asm".split())
# If a head contains one of these words, nothing in it is replaced.
_STATEMENT_WORDS = frozenset(
    b"__typeof__ break case catch co_await co_return co_yield concept continue decltype default delete do else "
    b"export final for friend goto if namespace new noexcept operator override private protected public "
    b"requires return sizeof switch template throw try typename typeof using while".split()
)
_NON_FUNCTION_WORDS = _STATEMENT_WORDS | _ATTRIBUTE_KEYWORDS


class MacroReplacement(NamedTuple):
    """A range of the text, and bytes that replace its beginning. Blanks replace the rest of the range."""

    start: int
    end: int
    text: bytes = b""


class _HeadToken(msgspec.Struct, frozen=True):
    kind: str
    start: int
    end: int
    text: bytes

    @property
    def is_name(self) -> bool:
        return self.kind == "word" and self.text not in _KEYWORDS

    @property
    def blank_replacement(self) -> MacroReplacement:
        return MacroReplacement(self.start, self.end)


def replace_macros(utf8: bytes) -> bytes:
    """Return a C or C++ text in which each macro in a head is replaced. The length of the text stays the same."""
    text = None
    for start, end, replacement in macro_replacements(utf8):
        text = text or bytearray(utf8)
        text[start:end] = replacement + blanks_for(utf8[start + len(replacement) : end])
    return utf8 if text is None else bytes(text)


def macro_replacements(utf8: bytes) -> Iterator[MacroReplacement]:
    """Yield the replacements for macros in a text, in undefined order. They do not overlap."""
    done = 0
    for match in _DECLARATION_HEAD.finditer(b"\n" + utf8):
        prefix, nested = match.groups()
        spans = None if prefix is None else _macro_spans(prefix)
        if spans == () and not (nested and not _is_statement(prefix)):
            continue
        start = match.start()
        if start < done:
            continue
        plain = _PLAIN_FUNCTION.match(utf8, match.end(1) - 1) if spans and not nested else None
        if spans and plain is not None and plain[1] not in _NON_FUNCTION_WORDS and _PARAMETER_LIST.match(plain[2]):
            done, before = plain.end(), match.start(1) - 1
            for first, last in spans:
                yield MacroReplacement(before + first, before + last)
        else:
            tokens, done = _head_tokens(utf8, start)
            yield from _head_replacements(tokens)
    for match in _WRAPPED_PARAMETERS.finditer(utf8):
        start = utf8.rfind(b"\n", max(0, match.start() - _LINE_BYTES_MAX), match.start()) + 1
        if _INDENTED_PROTOTYPE.match(utf8, start, match.start()):
            yield from _head_replacements(_head_tokens(utf8, start)[0])


@lru_cache(maxsize=4096)
def _is_statement(prefix: bytes) -> bool:
    return not _STATEMENT_WORDS.isdisjoint(prefix.split())


@lru_cache(maxsize=4096)
def _macro_spans(prefix: bytes) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the words in `prefix` that are macros: neither a type nor qualifiers.

    If `prefix` is a part of a statement, there are none.
    """
    words = _PREFIX_TOKEN.finditer(prefix)
    tokens = [_HeadToken("star" if word[0] == b"*" else "word", *word.span(), word[0]) for word in words]
    if any(token.text in _STATEMENT_WORDS for token in tokens):
        return ()
    return tuple((token.start, token.end) for token in _macros_before_name(tokens))


def _head_tokens(utf8: bytes, start: int) -> tuple[list[_HeadToken], int]:
    """Return the tokens of the head that begins at `start`, with the token that ends it, and the offset after the head.

    If the text is not a head, return no tokens.
    """
    tokens: list[_HeadToken] = []
    end, limit = start, start + _HEAD_BYTES_MAX
    while match := _HEAD_TOKEN.match(utf8, end, limit):
        group = match.lastindex or 0
        text, end = match[group], match.end()
        if text in _STATEMENT_WORDS:
            break
        if group == 3 and tokens and tokens[-1].text in _ATTRIBUTE_KEYWORDS:
            tokens.pop()
            continue
        tokens.append(_HeadToken(_TOKEN_KINDS[group], match.start(group), end, text))
        if group == 4:
            return tokens, end
    return [], end


def _head_replacements(tokens: Sequence[_HeadToken]) -> Iterator[MacroReplacement]:
    """Yield the replacements for the macros in one head."""
    while (after := _index_after_statement(tokens)) > 0:
        for token in tokens[: after - 2]:
            yield token.blank_replacement
        yield MacroReplacement(tokens[after - 1].end, tokens[after - 1].end + 1, b";")
        tokens = tokens[after:]
    if len(tokens) < len(("name", ";")):
        return
    *items, end = tokens
    around = _index_around_type(items)
    if around:
        macro, brackets = items[around - 1], items[around]
        yield MacroReplacement(macro.start, brackets.start + 1)
        yield MacroReplacement(brackets.end - 1, brackets.end)
    elif all(token.kind != "brackets" for token in items):
        yield from _variable_replacements(items) if end.kind != "{" else ()
    elif items[0].kind == "word":
        yield from _function_replacements(items, end.text)


def _index_around_type(items: Sequence[_HeadToken]) -> int:
    """Return the index of the parentheses of a macro around a type, as in `INLINE(void) f(int a)`. Otherwise return 0.

    The type must begin with a keyword.
    """
    at = next((index for index, token in enumerate(items) if token.kind == "brackets"), 0)
    if (
        not at
        or not items[at - 1].text.isupper()
        or any(token.text not in _STORAGE_KEYWORDS for token in items[: at - 1])
    ):
        return 0
    name = next((index for index in range(at + 1, len(items)) if items[index].kind != "star"), 0)
    is_function = 0 < name == len(items) - 2 and items[name].is_name and items[-1].kind == "brackets"
    keyword = _BRACKETED_TYPE.match(items[at].text)
    return at if is_function and keyword and keyword[1] in _KEYWORDS and items[at].end != items[at + 1].start else 0


def _index_after_statement(tokens: Sequence[_HeadToken]) -> int:
    """Return the index after a macro that is a declaration by itself, or 0.

    For example, this is `static MACRO(x)` before another head.
    """
    first = next((index for index, token in enumerate(tokens) if token.kind == "brackets"), 0)
    following_tokens = tokens[first + 1 :]
    if (
        not first
        or not following_tokens
        or tokens[first - 1].kind != "word"
        or tokens[first].end == following_tokens[0].start
    ):
        return 0
    if any(token.text not in _STORAGE_KEYWORDS for token in tokens[: first - 1]):
        return 0
    words = next((index for index, token in enumerate(following_tokens) if token.kind != "word"), 0)
    is_head = (
        words > 1
        and following_tokens[words].kind in ("brackets", "star")
        and any(token.kind == "brackets" for token in following_tokens)
    )
    return first + 1 if following_tokens[0].text in _STORAGE_KEYWORDS or is_head else 0


def _variable_replacements(items: Sequence[_HeadToken]) -> Iterator[MacroReplacement]:
    """Yield the replacements for macros around a variable: `EXPORT const table_t TABLE[`, `int name UNUSED;`."""
    at = _attributed_index(items) or len(items) - 1
    for token in (*_macros_before_name(items[:at]), *items[at + 1 :]):
        yield token.blank_replacement


def _attributed_index(items: Sequence[_HeadToken]) -> int:
    """Return the index of a variable's name that is before a macro, as in `foo_t name UNUSED` or `int name ALIGN(8)`.

    Otherwise return 0.
    """
    free = _name_indexes(items)
    last = len(items) - 1 - (items[-1].kind == "brackets")
    if not free or free[-1] != last or not items[last].text.isupper():
        return 0
    types_or_names = [index for index in free if not items[index].text.isupper()]
    return types_or_names[-1] if len(types_or_names) > (not _has_type(items)) else 0


def _function_replacements(items: Sequence[_HeadToken], end: bytes) -> Iterator[MacroReplacement]:
    if _has_wrapped_parameters(items):
        # A prototype such as `f OF((int a))`.
        *items, macro, brackets = items
        yield MacroReplacement(macro.start, brackets.start + 1)
        yield MacroReplacement(brackets.end - 1, brackets.end)
        items = [*items, replace(brackets, text=b"()")]
    brackets_at = [index for index, token in enumerate(items) if token.kind == "brackets"]
    first = brackets_at[0]
    following_items = items[first + 1 :]
    at = _parameters_index(items, brackets_at)
    name = at - 1
    if not _PARAMETER_LIST.match(items[first].text) and _is_old_style(items[: first - 1], following_items):
        yield from _old_style_replacements(items[: first - 1])
    elif (
        len(brackets_at) == 1
        and not _PARAMETER_LIST.match(items[at].text)
        and not following_items
        and _attributed_index(items)
    ):
        yield from _variable_replacements(items)
    elif _is_declarator(items[name], end) and _are_attribute_tokens(items[at + 1 :]):
        for token in items[at + 1 :]:
            yield token.blank_replacement
        yield from _replacements_before_name(items[:name], is_in_brackets=items[name].kind == "brackets")


def _is_declarator(token: _HeadToken, end: bytes) -> bool:
    """Return whether a token can be the name of a function, given the token that ends the head.

    The name of a pointer to a function is in parentheses. After such a pointer, a value can follow.
    """
    return token.kind == "brackets" or (token.kind == "word" and end in (b";", b"{"))


def _has_wrapped_parameters(items: Sequence[_HeadToken]) -> bool:
    """Return whether a prototype has its parameters in the argument of a macro: `f OF((int a))`."""
    return (
        len(items) > 3
        and items[-1].text[1:].lstrip().startswith(b"(")
        and items[-2].is_name
        and (items[-3].is_name or items[-3].kind == "brackets")
    )


def _old_style_replacements(before: Sequence[_HeadToken]) -> Iterator[MacroReplacement]:
    """Yield the replacements before the name of an old-style function: for macros, and for the stars of its type."""
    for token in (*_macros_before_name(before), *(token for token in before if token.kind == "star")):
        yield token.blank_replacement


def _is_old_style(before: Sequence[_HeadToken], following_items: Sequence[_HeadToken]) -> bool:
    """Return whether a head is that of an old-style function: `int f(a) char *a;`.

    `before` are the tokens before the function's name. `following_items` are the tokens after its parentheses.
    """
    words = sum(token.kind == "word" for token in following_items)
    is_declaration = words > 1 and all(token.kind != "brackets" for token in following_items)
    # A parameter can be a function pointer: `int f(a) int (*a)();`.
    is_declaration |= words > 0 and following_items[0].text in _TYPE_KEYWORDS
    return is_declaration and any(token.text not in _QUALIFIER_KEYWORDS for token in before)


def _parameters_index(items: Sequence[_HeadToken], brackets: Sequence[int]) -> int:
    """Return the index of a function's parameters. `brackets` are the indexes of all parentheses.

    If the function's name is in parentheses, its parameters are the next parentheses.
    """
    for index in brackets:
        if index + 1 in brackets:
            return index + 1
        if _PARAMETER_LIST.match(items[index].text):
            return index
    first, last = brackets[0], brackets[-1]
    return first if items[last - 1].text.isupper() and not items[first - 1].text.isupper() else last


def _are_attribute_tokens(after: Sequence[_HeadToken]) -> bool:
    """Return whether all tokens after a function's parameters are macros: `f(void) NORETURN FORMAT(1, 2) {`."""
    plain = sum(
        token.kind == "word" and (index + 1 == len(after) or after[index + 1].kind != "brackets")
        for index, token in enumerate(after)
    )
    return all(token.is_name or token.kind == "brackets" for token in after) and (
        plain < 2 or all(token.text.isupper() for token in after if token.kind == "word")
    )


def _replacements_before_name(before: Sequence[_HeadToken], *, is_in_brackets: bool) -> Iterator[MacroReplacement]:
    """Yield the replacements for macros before the name of a function."""
    call_indexes = [index for index, token in enumerate(before) if token.kind == "brackets" and index]
    plain = [token for index, token in enumerate(before) if token.kind != "brackets" and index + 1 not in call_indexes]
    if call_indexes and (_has_type(plain) or _name_indexes(plain)):
        for index in call_indexes:
            yield before[index - 1].blank_replacement
            yield before[index].blank_replacement
    for number, token in enumerate(_macros_before_name(plain)):
        # Without a qualifier, `type_t (*name)(a)` could be a call. So `const` replaces the macro, instead of blanks.
        is_needed = is_in_brackets and not number and token.end - token.start >= len(b"const")
        yield token.blank_replacement._replace(text=b"const" if is_needed else b"")


def _has_type(tokens: Sequence[_HeadToken]) -> bool:
    """Return whether one of the tokens is a keyword that determines the type. All names are then macros."""
    return any(token.text in _TYPE_KEYWORDS or token.text in _TAG_KEYWORDS for token in tokens)


def _name_indexes(tokens: Sequence[_HeadToken]) -> list[int]:
    """Return the indexes of names. The name after `struct`, `union`, `enum` or `class` is a tag, and left out."""
    return [
        index
        for index, token in enumerate(tokens)
        if token.is_name and (not index or tokens[index - 1].text not in _TAG_KEYWORDS)
    ]


def _macros_before_name(before: Sequence[_HeadToken]) -> list[_HeadToken]:
    """Return the macros before a name: the words that are neither the type of the name nor qualifiers."""
    free = _name_indexes(before)
    if _has_type(before):
        return [before[index] for index in free]
    star = next((index for index, token in enumerate(before) if token.kind == "star"), len(before))
    candidates = [index for index in free if index < star] or free
    # Macros are usually in capitals. If several names are not in capitals, the last one is the type.
    types = [index for index in candidates if not before[index].text.isupper()] or candidates
    return [before[index] for index in free if index != types[-1]]
