"""The parts of JSX elements, found without a syntax tree, and replacements for those that the grammars do not support.

A scanner reads the tokens of the code and keeps a stack of open brackets, templates and elements. A `<` begins an
element if an operand can begin there. `type F = <A>(a: A) => B` looks the same, so `<A>` also needs a later `</A>`. If
the scanner does not understand the text, it stops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from codebatch_workers.syntax.grammar_gaps.stand_ins import name_for
from codebatch_workers.syntax.language_gaps import Replacement

RESERVED_WORDS = (
    rb"break|case|catch|class|const|continue|debugger|delete|do|else|enum|export|extends|finally|for|function|if|import"
    rb"|in|instanceof|new|return|super|switch|throw|try|typeof|var|void|while|with|yield"
)
# A `&` that does not begin a character reference of the grammar.
_AMPERSAND = re.compile(rb"&(?!#[0-9]{1,5};|#[xX][0-9a-fA-F]{1,6};|[A-Za-z]{1,30};)")
_KEYWORD_ATTRIBUTE = re.compile(rb"(?:%s|default)\Z" % RESERVED_WORDS)
_KEYWORD_ELEMENT = re.compile(rb"(?:switch|this|var)(?=\.|\Z)")

_COMMENT = rb"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|//[^\n]*"
_WORD = rb"[\w$\x80-\xff]"
_TOKEN = re.compile(
    rb"\s+|%s|(?P<operand>[#@]?%s+|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|(?P<operator>=>|\+\+|--|.)"
    % (_COMMENT, _WORD),
    re.DOTALL,
)
_REGULAR_EXPRESSION = re.compile(rb"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/")
_TEMPLATE_PART = re.compile(rb"(?:[^`\\$]|\\.|\$(?!\{))*(?:`|(\$\{))", re.DOTALL)
_HASHBANG = re.compile(rb"#![^\n]*")
_CHILD_TEXT = re.compile(rb"[^<{]*")
_BLANKS = re.compile(rb"(?:\s|%s)*" % _COMMENT)
_ATTRIBUTE = re.compile(
    rb"(?P<name>%s[\w$:\x80-\xff-]*)|(?P<value>\"[^\"]*\"|'[^']*')|=|(?P<opening>[{<])|(?P<end>/?\s*>)" % _WORD
)
_NAME = rb"%s[\w$.:\x80-\xff-]*" % _WORD
_TYPE_ARGUMENTS = rb"<[^<>(){}=]*(?:<[^<>(){}=]*(?:<[^<>(){}=]*>[^<>(){}=]*)*>[^<>(){}=]*)*>"
# Not the type parameters `<A, B>`, `<A = B>`, `<A extends B>`, `<const A>`.
_OPENING_TAG = re.compile(
    rb"<\s*(?:(?P<fragment>>)|(?!const\s)(?P<name>%s)(?!\s*[,=]|\s+extends\s+[\w{\[\"'(])(?:%s)?)"
    % (_NAME, _TYPE_ARGUMENTS)
)
_CLOSING_TAG = re.compile(rb"</\s*(?P<name>(?:%s)?)\s*>" % _NAME)
_PARAMETER_END = re.compile(rb"\s*>")
# Words after which an operand follows.
_OPERATOR_WORDS = frozenset(
    b"await case default delete do else extends in instanceof new of return throw typeof void yield".split()
)
_CONDITION_WORDS = frozenset((b"if", b"while", b"for", b"with"))
_CLOSING_BRACKETS = {b")": b"(", b"]": b"[", b"}": b"{"}
_BEFORE_BLOCK = frozenset((b"", b")", b"=>", b";", b"{", b"}", b"else", b"do"))
# Entries of the stack: a bracket in code, or one of these.
_CONDITION, _OBJECT, _TEMPLATE, _TAG, _CHILDREN = b"if(", b"={", b"`", b"<", b"<>"


class _Part(NamedTuple):
    """A part of an element: `text` between tags, a quoted `value`, or the name of an `attribute` or `element`."""

    kind: str
    start: int
    end: int


def jsx_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements for each `&` that the grammar does not support, and for reserved words that are names."""
    for kind, start, end in _jsx_parts(utf8):
        if kind in ("text", "value"):
            for ampersand in _AMPERSAND.finditer(utf8, start, end):
                yield Replacement(ampersand.start(), b"_")
            continue
        word = (_KEYWORD_ATTRIBUTE if kind == "attribute" else _KEYWORD_ELEMENT).match(utf8, start, end)
        if word is not None:
            yield Replacement(start, name_for(word[0]))


@lru_cache(maxsize=2)
def _jsx_parts(utf8: bytes) -> tuple[_Part, ...]:
    return tuple(_Scanner(utf8).iter_parts()) if b"</" in utf8 or b"/>" in utf8 else ()


class _Scanner:
    """One pass over a text. The stack has what is open: brackets, templates, tags, and elements with children."""

    def __init__(self, utf8: bytes) -> None:
        self._utf8 = utf8
        hashbang = _HASHBANG.match(utf8)
        self._offset = hashbang.end() if hashbang else 0
        self._stack: list[bytes] = []
        # Whether the code before the offset is a complete operand, so that `<` and `/` are operators.
        self._is_after_operand = False
        self._last_token = b""
        self._last_closing_tags = {match["name"]: match.start() for match in _CLOSING_TAG.finditer(utf8)}

    def iter_parts(self) -> Iterator[_Part]:
        """Yield the parts of all elements, in text order."""
        while self._offset < len(self._utf8):
            match self._stack[-1] if self._stack else b"":
                case b"<>":
                    yield from self._read_child()
                case b"<":
                    yield from self._read_attribute()
                case b"`":
                    self._read_template_part()
                case _:
                    yield from self._read_token()

    def _stop(self) -> None:
        self._offset = len(self._utf8)

    def _read_token(self) -> Iterator[_Part]:
        token = _TOKEN.match(self._utf8, self._offset)
        assert token is not None, "the pattern matches any byte"
        if token["operator"] is not None:
            yield from self._read_operator(token["operator"])
            return
        self._offset = token.end()
        if (operand := token["operand"]) is not None:
            self._is_after_operand = operand not in _OPERATOR_WORDS or self._last_token == b"."
            self._last_token = operand

    def _read_operator(self, token: bytes) -> Iterator[_Part]:
        if token == b"<" and not self._is_after_operand:
            tag = _OPENING_TAG.match(self._utf8, self._offset)
            if tag is not None and not self._is_type_parameter(tag):
                yield from self._open_element(tag)
                return
        if token == b"/" and not self._is_after_operand:
            regular_expression = _REGULAR_EXPRESSION.match(self._utf8, self._offset)
            if regular_expression is not None:
                self._offset = regular_expression.end()
                self._is_after_operand, self._last_token = True, b"/"
                return
        self._offset += len(token)
        if token in (b"(", b"[", b"{", b"`"):
            self._open_bracket(token)
        elif token in _CLOSING_BRACKETS:
            self._close_bracket(token)
        elif token not in (b"!", b"++", b"--"):
            self._is_after_operand = False
        self._last_token = token

    def _open_bracket(self, token: bytes) -> None:
        if token == b"(" and self._last_token in _CONDITION_WORDS:
            token = _CONDITION
        elif token == b"{" and not self._is_after_operand and self._last_token not in _BEFORE_BLOCK:
            token = _OBJECT
        self._stack.append(token)
        self._is_after_operand = False

    def _close_bracket(self, token: bytes) -> None:
        if not self._stack or not self._stack[-1].endswith(_CLOSING_BRACKETS[token]):
            self._stop()
            return
        self._is_after_operand = self._stack.pop() not in (b"{", _CONDITION)

    def _read_template_part(self) -> None:
        part = _TEMPLATE_PART.match(self._utf8, self._offset)
        if part is None:
            self._stop()
            return
        self._offset = part.end()
        if part[1] is not None:
            self._stack.append(_OBJECT)
            self._is_after_operand, self._last_token = False, b"("
        else:
            self._stack.pop()
            self._is_after_operand, self._last_token = True, b"`"

    def _is_type_parameter(self, tag: re.Match[bytes]) -> bool:
        if tag["fragment"] or not _PARAMETER_END.match(self._utf8, tag.end()):
            return False
        return self._last_closing_tags.get(tag["name"], -1) < tag.end()

    def _open_element(self, tag: re.Match[bytes]) -> Iterator[_Part]:
        self._offset = tag.end()
        if tag["fragment"]:
            self._stack.append(_CHILDREN)
        else:
            self._stack.append(_TAG)
            yield _Part("element", *tag.span("name"))

    def _read_attribute(self) -> Iterator[_Part]:
        blanks = _BLANKS.match(self._utf8, self._offset)
        part = _ATTRIBUTE.match(self._utf8, blanks.end() if blanks else self._offset)
        if part is None:
            self._stop()
            return
        self._offset = part.end()
        if part["name"] is not None:
            yield _Part("attribute", *part.span("name"))
        elif part["value"] is not None:
            yield _Part("value", *part.span("value"))
        elif part["opening"] is not None:
            self._offset = part.start()
            yield from self._open_expression()
        elif part["end"] is not None:
            self._stack.pop()
            if part["end"].startswith(b"/"):
                self._is_after_operand, self._last_token = True, b">"
            else:
                self._stack.append(_CHILDREN)

    def _read_child(self) -> Iterator[_Part]:
        text = _CHILD_TEXT.match(self._utf8, self._offset)
        if text is not None and text[0]:
            self._offset = text.end()
            yield _Part("text", *text.span())
            return
        closing = _CLOSING_TAG.match(self._utf8, self._offset)
        if closing is None:
            yield from self._open_expression()
            return
        self._offset = closing.end()
        self._stack.pop()
        self._is_after_operand, self._last_token = True, b">"
        yield _Part("element", *closing.span("name"))

    def _open_expression(self) -> Iterator[_Part]:
        """Read `{` or the opening tag of an element in a tag or between tags."""
        tag = _OPENING_TAG.match(self._utf8, self._offset)
        if tag is not None:
            yield from self._open_element(tag)
        elif self._utf8.startswith(b"{", self._offset):
            self._offset += 1
            self._stack.append(_OBJECT)
            self._is_after_operand, self._last_token = False, b"("
        else:
            self._stop()
