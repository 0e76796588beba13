"""Where in a shell script a place is: bare, or inside of quotes of some kind (POSIX.1-2017 XCU 2.2, 2.3, 2.6, 2.7.4).

A stack has the constructs that are open: `'`, `"`, backquotes, `${`, `$((`, a comment, and scripts, which are the whole
and what stands in `$(`. What is inside of the innermost is inside of quotes unless that is a script. Where only a shell
could tell (`case` in `$(`, whose patterns end with `)`; a line continued within a word), all that follows is doubtful:
a place is said to be bare only where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

_SPECIAL = re.compile(r"""[\\'"`$#<(){}\n]|(?<!\w)case(?!\w)""")
_DELIMITER = re.compile(r"""<<(-?)[ \t]*(?:(['"])([^'"\\$`\n]*)\2|(\\?)([^\s;&|<>()'"\\$`]+))(?=[\s;&|<>()]|\Z)""")
_BEFORE_A_WORD = " \t\n;&|()<>"


class Inside(Enum):
    """What a place in a script is inside of; the value is how people call it."""

    SCRIPT = ""
    SINGLE = "single quotes"
    DOLLAR_SINGLE = "single quotes after a $"
    DOUBLE = "double quotes"
    BACKQUOTES = "backquotes"
    PARAMETER = "${…}"
    ARITHMETIC = "$((…))"
    COMMENT = "a comment"
    HERE_DOCUMENT = "a here-document"
    DOUBTFUL = "text whose quoting only a shell can determine"


_QUOTES = {"'": Inside.SINGLE, '"': Inside.DOUBLE, "`": Inside.BACKQUOTES}
# What ends a construct, and whether a backslash, a quote and a $ in it are what they are in a script.
_ENDS = {
    Inside.SINGLE: "'",
    Inside.DOLLAR_SINGLE: "'",
    Inside.DOUBLE: '"',
    Inside.BACKQUOTES: "`",
    Inside.PARAMETER: "}",
    Inside.COMMENT: "\n",
}
_WITHOUT_BACKSLASH = {Inside.SINGLE, Inside.COMMENT}
_WITH_QUOTES = {Inside.SCRIPT, Inside.PARAMETER, Inside.ARITHMETIC}
_WITH_DOLLAR = {*_WITH_QUOTES, Inside.DOUBLE}


def iter_places(script: str, wanted: re.Pattern[str]) -> Iterator[tuple[re.Match[str], Inside]]:
    """Each match of a pattern, which begins with `{`, that no backslash is before, and what it is inside of.

    The time is linear in the length of the script.
    """
    return _ScriptReader(script, wanted).places() if "{" in script else iter(())


class _ScriptReader:
    def __init__(self, script: str, wanted: re.Pattern[str]) -> None:
        self._script = script
        self._wanted = wanted
        self._open: list[tuple[Inside, int]] = [(Inside.SCRIPT, 0)]  # and its parentheses that are open
        self._documents: list[tuple[str, bool, bool, int]] = []  # and how deep each began
        self._is_doubtful = False
        self._in_word_at = 0  # where a word goes on, whatever is before

    def places(self) -> Iterator[tuple[re.Match[str], Inside]]:
        at = 0
        while special := _SPECIAL.search(self._script, at):
            at = special.start()
            if found := self._wanted.match(self._script, at):
                yield found, Inside.DOUBTFUL if self._is_doubtful else self._open[-1][0]
                at = found.end()
            elif special[0] == "\n" and self._open[-1][0] is Inside.SCRIPT and self._documents:
                end = self._end_of_documents(at + 1)
                yield from ((found, Inside.HERE_DOCUMENT) for found in self._wanted.finditer(self._script, at, end))
                at = end
            else:
                at = self._step(at, special[0])

    def _step(self, at: int, special: str) -> int:
        """Read what is special at a place; where to go on."""
        inside = self._open[-1][0]
        if special == "\\" and inside not in _WITHOUT_BACKSLASH:
            return self._escape(at)
        if special == _ENDS.get(inside):
            self._open.pop()
            return at if inside is Inside.COMMENT else at + 1  # here-documents begin with that newline
        if special in _QUOTES and (inside in _WITH_QUOTES or (inside is Inside.DOUBLE and special == "`")):
            # In "${x:-'}" a quote is a quote or a character, by what stands before it.
            is_character = special == "'" and inside is not Inside.SCRIPT and self._open[-2][0] is Inside.DOUBLE
            self._is_doubtful |= is_character
            return self._begin(_QUOTES[special], at + 1)
        if special == "$" and inside in _WITH_DOLLAR:
            return self._dollar(at)
        if special in "()" and inside in (Inside.SCRIPT, Inside.ARITHMETIC):
            self._parenthesis(at, special)
        elif inside is Inside.SCRIPT:
            return self._word(at, special)
        return at + 1

    def _begin(self, inside: Inside, at: int, parentheses: int = 0) -> int:
        self._open.append((inside, parentheses))
        return at

    def _escape(self, at: int) -> int:
        if self._script.startswith("\n", at + 1):
            before = self._script[at - 1 : at]
            is_in_word = before not in _BEFORE_A_WORD and self._open[-1][0] is Inside.SCRIPT
            self._is_doubtful |= is_in_word or before in ("$", "<")
        else:
            self._in_word_at = at + 2
        # Not every shell knows `$'`: to some the backslash is a character, and the quote behind it the end.
        self._is_doubtful |= self._open[-1][0] is Inside.DOLLAR_SINGLE
        return at + 2

    def _dollar(self, at: int) -> int:
        is_in_double = self._open[-1][0] is Inside.DOUBLE
        if self._script.startswith("((", at + 1):
            return self._begin(Inside.ARITHMETIC, at + 3, 2)
        if self._script.startswith("(", at + 1):
            return self._begin(Inside.SCRIPT, at + 2)
        if self._script.startswith("{", at + 1):
            return self._begin(Inside.PARAMETER, at + 2)
        if self._script.startswith("'", at + 1) and not is_in_double:
            return self._begin(Inside.DOLLAR_SINGLE, at + 2)
        return at + 2 if self._script.startswith("$", at + 1) else at + 1

    def _parenthesis(self, at: int, special: str) -> None:
        inside, parentheses = self._open.pop()
        left = parentheses + (1 if special == "(" else -1)
        if len(self._open) == 0:
            self._open.append((inside, 0))
        elif left >= (1 if inside is Inside.ARITHMETIC else 0):
            self._open.append((inside, left))
            # `$((a) b)` is a script after all.
            is_script = inside is Inside.ARITHMETIC and left == 1 and not self._script.startswith(")", at + 1)
            self._is_doubtful |= is_script
        else:
            self._in_word_at = at + 1

    def _word(self, at: int, special: str) -> int:
        if special == "#" and at != self._in_word_at and (at == 0 or self._script[at - 1] in _BEFORE_A_WORD):
            return self._begin(Inside.COMMENT, at + 1)
        if special == "<" and self._script.startswith("<<<", at):
            return at + 3
        if special == "<" and self._script.startswith("<<", at):
            return self._here_document(at)
        self._is_doubtful |= special == "case" and len(self._open) > 1
        return at + len(special)

    def _here_document(self, at: int) -> int:
        found = _DELIMITER.match(self._script, at)
        if found is None:
            self._is_doubtful = True
            return at + 2
        delimiter = found[3] if found[2] else found[5]
        self._documents.append((delimiter, found[1] == "-", bool(found[2] or found[4]), len(self._open)))
        return found.end()

    def _end_of_documents(self, at: int) -> int:
        """Where the here-documents end that begin at a line."""
        while self._documents and at < len(self._script):
            delimiter, is_indented, is_quoted, depth = self._documents[0]
            self._is_doubtful |= depth != len(self._open)
            end = self._script.find("\n", at) + 1 or len(self._script) + 1
            line = self._script[at : end - 1]
            is_joined = not is_quoted and self._is_continued(at)
            if (line.lstrip("\t") if is_indented else line) == delimiter and not is_joined:
                self._documents.pop(0)
            at = end
        return min(at, len(self._script))

    def _is_continued(self, at: int) -> bool:
        """Whether the line before ends with a backslash that none escapes."""
        before = self._script[self._script.rfind("\n", 0, at - 1) + 1 : at - 1]
        return (len(before) - len(before.rstrip("\\"))) % 2 == 1
