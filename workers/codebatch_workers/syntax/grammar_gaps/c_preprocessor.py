"""Conditionals of C and C++ that cut through what a grammar must see whole: their first arm stands for them.

A grammar that knows no preprocessor reads all arms. It can where each arm is whole: so most conditionals stay as they
are. Where an arm opens a bracket that it does not close, or closes one that it did not open, or is but the head of what
follows, or stands between brackets, the directives and the other arms become blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

import msgspec

from codebatch_workers.syntax.grammar_gaps.stand_ins import blank

# A comment behind it may reach over several lines.
_DIRECTIVE = re.compile(
    rb"#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b"
    rb"([^\n\\/]*(?:(?:\\(?:\r\n|.)|/\*.{0,2000}?\*/|/)[^\n\\/]*)*)",
    re.DOTALL,
)
# Comments, strings and directives, by runs of what does not end them: twice as fast as one by one.
_NO_CODE = re.compile(
    rb"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?|//[^\n]*|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    rb"|\n[ \t]*#[^\n\\]*(?:\\.[^\n\\]*)*",
    re.DOTALL,
)
_BLANKED = re.compile(rb"(/\*.*?(?:\*/|\Z)|//[^\n]*)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[^/\"']+|.", re.DOTALL)
_COMMENT_BYTES_MIN = len(b"/**/")
# What begins a statement, and ends in brackets or `else` where it is but the head of one.
_HEAD = re.compile(rb"\s*(?:\}?\s*else\s+)?(?:if|for|while)\b[^{}]*\Z")
_HEAD_LINES_MAX = 4
# What an arm begins with that goes on with what stands before it.
_REST = re.compile(rb"(?:\s|/\*[^*]*(?:\*(?!/)[^*]*)*\*/|//[^\n]*\n)*(?:else\b|[,)?]|&&|\|\|)")
# Around a whole header: it need not be looked at.
_GUARD = re.compile(rb"#[ \t]*ifndef[ \t]+(\w+)\s*#[ \t]*define[ \t]+\1\b")
_BODY = re.compile(rb"\s*\{")
_NEVER = re.compile(rb"\s*\(?\s*0\s*\)?\s*\Z")
_LF = ord(b"\n")
# How far is looked around.
_AROUND_BYTES_MAX = 1024
_NO_BRACKETS = bytes(set(range(256)) - set(b"(){}"))


class _Arm(msgspec.Struct):
    """How many brackets are open, and the least that ever were: below none where one closed what stood before."""

    depth: int = 0
    least: int = 0

    def add(self, depth: int, least: int) -> None:
        """Go on with code that does this to the brackets."""
        self.least = min(self.least, self.depth + least)
        self.depth += depth

    @property
    def is_whole(self) -> bool:
        return not self.depth and not self.least


class _Conditional(msgspec.Struct):
    """One that is open: its directives, as _DIRECTIVE finds them, and arms so far."""

    directives: list[re.Match[bytes]]
    is_guard: bool
    arms: list[_Arm] = msgspec.field(default_factory=lambda: [_Arm()])


def with_first_arms(utf8: bytes, language: str) -> bytes:
    """The text of a file, of the same length, without the conditionals that cut through code."""
    if b"#" not in utf8:
        return utf8
    text = None
    for start, end in _spans(utf8, language):
        text = text or bytearray(utf8)
        text[start:end] = _BLANKED.sub(_blank, utf8[start:end])
    return utf8 if text is None else bytes(text)


def _blank(match: re.Match[bytes]) -> bytes:
    """Blanks, but for comments: these are what they are in any arm."""
    comment = match[1]
    if comment and (comment.startswith(b"//") or (comment.endswith(b"*/") and len(comment) >= _COMMENT_BYTES_MIN)):
        return comment
    return blank(match[0])


def _spans(utf8: bytes, language: str) -> Iterator[tuple[int, int]]:
    """What shall become blanks; some in others."""
    stack: list[_Conditional] = []
    before = 0
    for match in _DIRECTIVE.finditer(utf8):
        start = match.start()
        if start and utf8[start - 1] != _LF and utf8[utf8.rfind(b"\n", 0, start) + 1 : start].strip():
            continue
        if stack and not stack[-1].is_guard:
            _add(stack[-1].arms[-1], utf8[before:start])
        before, word = match.end(), match[1]
        if word.startswith(b"if"):
            stack.append(_Conditional([match], is_guard=word == b"ifndef" and _GUARD.match(utf8, start) is not None))
        elif stack:
            top = stack[-1]
            top.directives.append(match)
            if word != b"endif":
                top.arms.append(_Arm())
                continue
            stack.pop()
            if not top.is_guard and _cuts(utf8, top):
                kept = _kept(top, language)
                if stack and kept >= 0:
                    stack[-1].arms[-1].add(top.arms[kept].depth, top.arms[kept].least)
                yield from _others(top, kept)


def _add(arm: _Arm, code: bytes) -> None:
    """Go on with an arm."""
    opened, closed = code.find(b"{"), code.find(b"}")
    if closed < opened or code.count(b"{") != code.count(b"}") or not _are_even(code):
        steps = [1 if bracket in b"({" else -1 for bracket in _NO_CODE.sub(b"", code).translate(None, _NO_BRACKETS)]
        arm.add(sum(steps), min(accumulate(steps, initial=0)))


def _cuts(utf8: bytes, conditional: _Conditional) -> bool:
    """Whether a conditional cuts through what must be whole."""
    is_cut = not all(arm.is_whole for arm in conditional.arms)
    is_cut = is_cut or any(
        _REST.match(utf8, each.end(), each.end() + _AROUND_BYTES_MAX) for each in conditional.directives[:-1]
    )
    return (is_cut or _is_inside(utf8, conditional) or _is_head(utf8, conditional)) and not any(
        _is_in_comment(utf8, each.start()) for each in conditional.directives
    )


def _is_inside(utf8: bytes, conditional: _Conditional) -> bool:
    """Whether a conditional stands between round brackets, or where a value must."""
    start = conditional.directives[0].start()
    floor = max(0, start - _AROUND_BYTES_MAX)
    code = utf8[floor:start].rstrip()
    if code.endswith((b";", b"{", b"}")):
        return False
    code = code[max(code.rfind(b";"), code.rfind(b"{"), code.rfind(b"}")) + 1 :]
    if code.count(b"(") <= code.count(b")") and not code.endswith((b"=", b"[", b"/")):
        return False
    code = _NO_CODE.sub(b"", code).rstrip()
    return code.count(b"(") > code.count(b")") or code.endswith((b"=", b"["))


def _is_head(utf8: bytes, conditional: _Conditional) -> bool:
    """Whether the last arm ends where what it begins has only begun."""
    *_, last, end = conditional.directives
    code = utf8[max(last.end(), end.start() - _AROUND_BYTES_MAX) : end.start()]
    if not code.rstrip().endswith((b")", b"else", b"/")):
        return False
    code = _NO_CODE.sub(b"", code).rstrip()
    if not code.endswith(b")"):
        return code.endswith(b"else")
    lines = code.split(b"\n")[-_HEAD_LINES_MAX:]
    tails = [b"\n".join(lines[first:]) for first in range(len(lines))]
    return bool(_BODY.match(utf8, end.end())) or any(_are_even(tail) and _HEAD.match(tail) for tail in tails)


def _are_even(code: bytes) -> bool:
    return code.count(b"(") == code.count(b")")


def _is_in_comment(utf8: bytes, offset: int) -> bool:
    floor = max(0, offset - _AROUND_BYTES_MAX)
    return utf8.rfind(b"/*", floor, offset) > utf8.rfind(b"*/", floor, offset)


def _kept(conditional: _Conditional, language: str) -> int:
    """Which arm stands for all, the first that is compiled; -1 where none is."""
    for index, directive in enumerate(conditional.directives[:-1]):
        word, condition = directive.groups()
        is_never = word == b"if" and _NEVER.match(condition)
        is_of_cpp = language == "c" and b"__cplusplus" in condition and word != b"ifndef"
        if not is_never and not is_of_cpp:
            return index
    return -1


def _others(conditional: _Conditional, kept: int) -> Iterator[tuple[int, int]]:
    """The directives, and the arms that are not kept."""
    marks = conditional.directives
    if kept < 0:
        yield marks[0].start(), marks[-1].end()
    else:
        yield marks[0].start(), marks[kept].end()
        yield marks[kept + 1].start(), marks[-1].end()
