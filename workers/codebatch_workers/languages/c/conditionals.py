"""Conditionals of C and C++ that split a construct. Only one of their arms is parsed.

A conditional is the text from `#if` to `#endif`. Its arms are the texts between its directives. A grammar without a
preprocessor parses all arms in sequence. This works if each arm is complete, so most conditionals stay unchanged. In
the others, blanks replace the directives and all arms except for the first one that a compiler could use. A conditional
is changed if an arm

- opens a bracket without closing it, or closes one that it did not open
- is only the head of the following statement
- is between brackets
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

import msgspec

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for

# A comment after a directive can span several lines.
_DIRECTIVE = re.compile(
    rb"#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b"
    rb"([^\n\\/]*(?:(?:\\(?:\r\n|.)|/\*.{0,2000}?\*/|/)[^\n\\/]*)*)",
    re.DOTALL,
)
# Comments, strings and directives. Parts of the pattern match runs of characters, which is faster than one character at
# a time.
_COMMENT_OR_TEXT = re.compile(
    rb"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?|//[^\n]*|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    rb"|\n[ \t]*#[^\n\\]*(?:\\.[^\n\\]*)*",
    re.DOTALL,
)
_BLANKED_TEXT = re.compile(
    rb"(/\*.*?(?:\*/|\Z)|//[^\n]*)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[^/\"']+|.", re.DOTALL
)
_COMMENT_BYTES_MIN = len(b"/**/")
# The head of a statement: `if (…)`, `for (…)`, `while (…)`, also after `else`.
_STATEMENT_HEAD = re.compile(rb"\s*(?:\}?\s*else\s+)?(?:if|for|while)\b[^{}]*\Z")
_HEAD_LINES_MAX = 4
# The start of an arm that continues the statement in which the conditional is.
_STATEMENT_REST = re.compile(rb"(?:\s|/\*[^*]*(?:\*(?!/)[^*]*)*\*/|//[^\n]*\n)*(?:else\b|[,)?]|&&|\|\|)")
# The start of an include guard. A guard surrounds the whole header, so its arm is not checked.
_INCLUDE_GUARD = re.compile(rb"#[ \t]*ifndef[ \t]+(\w+)\s*#[ \t]*define[ \t]+\1\b")
_BODY_START = re.compile(rb"\s*\{")
_FALSE_CONDITION = re.compile(rb"\s*\(?\s*0\s*\)?\s*\Z")
_LINE_FEED = ord(b"\n")
# The maximum number of bytes that are searched before and after a directive.
_AROUND_BYTES_MAX = 1024
_NO_BRACKETS = bytes(set(range(256)) - set(b"(){}"))


class _ConditionalArm(msgspec.Struct):
    """The brackets of one arm: the number of open brackets at its end, and the lowest such number within the arm.

    The lowest number is negative if the arm closes a bracket that it did not open.
    """

    depth: int = 0
    least: int = 0

    def add(self, depth: int, least: int) -> None:
        """Append code to the arm. The code changes the number of open brackets by `depth`.

        `least` is the lowest number of open brackets within the code.
        """
        self.least = min(self.least, self.depth + least)
        self.depth += depth

    @property
    def is_balanced(self) -> bool:
        return not self.depth and not self.least


class _OpenConditional(msgspec.Struct):
    """A conditional before its `#endif` was reached: its directives, as matches of _DIRECTIVE, and its arms."""

    directives: list[re.Match[bytes]]
    is_guard: bool
    arms: list[_ConditionalArm] = msgspec.field(default_factory=lambda: [_ConditionalArm()])


def with_first_arms(utf8: bytes, language: str) -> bytes:
    """Return a text of the same length, in which conditionals that split a construct have at most one arm."""
    if b"#" not in utf8:
        return utf8
    text = None
    for start, end in _spans_to_blank(utf8, language):
        text = text or bytearray(utf8)
        text[start:end] = _BLANKED_TEXT.sub(_blank_match, utf8[start:end])
    return utf8 if text is None else bytes(text)


def _blank_match(match: re.Match[bytes]) -> bytes:
    """Return blanks for a match. Comments stay, because they are comments in every arm."""
    comment = match[1]
    if comment and (comment.startswith(b"//") or (comment.endswith(b"*/") and len(comment) >= _COMMENT_BYTES_MIN)):
        return comment
    return blanks_for(match[0])


def _spans_to_blank(utf8: bytes, language: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges that blanks replace. One range can contain another."""
    stack: list[_OpenConditional] = []
    before = 0
    for match in _DIRECTIVE.finditer(utf8):
        start = match.start()
        if start and utf8[start - 1] != _LINE_FEED and utf8[utf8.rfind(b"\n", 0, start) + 1 : start].strip():
            continue
        if stack and not stack[-1].is_guard:
            _count_brackets(stack[-1].arms[-1], utf8[before:start])
        before, word = match.end(), match[1]
        if word.startswith(b"if"):
            stack.append(
                _OpenConditional([match], is_guard=word == b"ifndef" and _INCLUDE_GUARD.match(utf8, start) is not None)
            )
        elif stack:
            top = stack[-1]
            top.directives.append(match)
            if word != b"endif":
                top.arms.append(_ConditionalArm())
                continue
            stack.pop()
            if not top.is_guard and _cuts_code(utf8, top):
                chosen = _chosen_arm(top, language)
                if stack and chosen >= 0:
                    stack[-1].arms[-1].add(top.arms[chosen].depth, top.arms[chosen].least)
                yield from _discarded_spans(top, chosen)


def _count_brackets(arm: _ConditionalArm, code: bytes) -> None:
    """Count the brackets in a piece of code, and add them to the arm that contains the code."""
    opened, closed = code.find(b"{"), code.find(b"}")
    if closed < opened or code.count(b"{") != code.count(b"}") or not _is_balanced(code):
        steps = [
            1 if bracket in b"({" else -1 for bracket in _COMMENT_OR_TEXT.sub(b"", code).translate(None, _NO_BRACKETS)
        ]
        arm.add(sum(steps), min(accumulate(steps, initial=0)))


def _cuts_code(utf8: bytes, conditional: _OpenConditional) -> bool:
    """Return whether a conditional splits a construct: one of its arms begins or ends within the construct."""
    is_cut = not all(arm.is_balanced for arm in conditional.arms)
    is_cut = is_cut or any(
        _STATEMENT_REST.match(utf8, directive.end(), directive.end() + _AROUND_BYTES_MAX)
        for directive in conditional.directives[:-1]
    )
    return (is_cut or _is_inside(utf8, conditional) or _is_head(utf8, conditional)) and not any(
        _is_in_comment(utf8, directive.start()) for directive in conditional.directives
    )


def _is_inside(utf8: bytes, conditional: _OpenConditional) -> bool:
    """Return whether a conditional is between parentheses, or at a place where a value is expected."""
    start = conditional.directives[0].start()
    floor = max(0, start - _AROUND_BYTES_MAX)
    code = utf8[floor:start].rstrip()
    if code.endswith((b";", b"{", b"}")):
        return False
    code = code[max(code.rfind(b";"), code.rfind(b"{"), code.rfind(b"}")) + 1 :]
    if code.count(b"(") <= code.count(b")") and not code.endswith((b"=", b"[", b"/")):
        return False
    code = _COMMENT_OR_TEXT.sub(b"", code).rstrip()
    return code.count(b"(") > code.count(b")") or code.endswith((b"=", b"["))


def _is_head(utf8: bytes, conditional: _OpenConditional) -> bool:
    """Return whether the last arm of a conditional ends within a statement."""
    *_, last, end = conditional.directives
    code = utf8[max(last.end(), end.start() - _AROUND_BYTES_MAX) : end.start()]
    if not code.rstrip().endswith((b")", b"else", b"/")):
        return False
    code = _COMMENT_OR_TEXT.sub(b"", code).rstrip()
    if not code.endswith(b")"):
        return code.endswith(b"else")
    lines = code.split(b"\n")[-_HEAD_LINES_MAX:]
    tails = [b"\n".join(lines[first:]) for first in range(len(lines))]
    return bool(_BODY_START.match(utf8, end.end())) or any(
        _is_balanced(tail) and _STATEMENT_HEAD.match(tail) for tail in tails
    )


def _is_balanced(code: bytes) -> bool:
    return code.count(b"(") == code.count(b")")


def _is_in_comment(utf8: bytes, offset: int) -> bool:
    floor = max(0, offset - _AROUND_BYTES_MAX)
    return utf8.rfind(b"/*", floor, offset) > utf8.rfind(b"*/", floor, offset)


def _chosen_arm(conditional: _OpenConditional, language: str) -> int:
    """Return the index of the first arm that a compiler could use. If there is none, return -1."""
    for index, directive in enumerate(conditional.directives[:-1]):
        word, condition = directive.groups()
        is_never = word == b"if" and _FALSE_CONDITION.match(condition)
        is_of_cpp = language == "c" and b"__cplusplus" in condition and word != b"ifndef"
        if not is_never and not is_of_cpp:
            return index
    return -1


def _discarded_spans(conditional: _OpenConditional, chosen: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of all directives, and of all arms except for the chosen one.

    `chosen` is the index of this arm, or -1 for none.
    """
    marks = conditional.directives
    if chosen < 0:
        yield marks[0].start(), marks[-1].end()
    else:
        yield marks[0].start(), marks[chosen].end()
        yield marks[chosen + 1].start(), marks[-1].end()
