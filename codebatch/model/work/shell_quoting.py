"""The quoting of positions in a shell script (POSIX.1-2017 XCU 2.2, 2.3, 2.6, 2.7.4).

A stack holds the open constructs: `'`, `"`, backquotes, `${`, `$((`, a comment, and a script. A script is the whole
text, or the content of `$(`. A position is quoted unless its innermost construct is a script.

Two cases need a full shell parser: `case` inside `$(`, whose patterns end with `)`, and a word that continues on the
next line. All positions after such a case are reported as doubtful. A doubtful position is treated as quoted. So a
quoted position is never reported as unquoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

_SPECIAL_TEXT = re.compile(r"""[\\'"`$#<(){}\n]|(?<!\w)case(?!\w)""")
_HERE_DOCUMENT_START = re.compile(
    r"""<<(-?)[ \t]*(?:(['"])([^'"\\$`\n]*)\2|(\\?)([^\s;&|<>()'"\\$`]+))(?=[\s;&|<>()]|\Z)"""
)
_WORD_SEPARATORS = " \t\n;&|()<>"


class ShellContext(Enum):
    """The innermost construct that contains a position of a script.

    The value of a member is the construct's name for people.
    """

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


_CONTEXT_BY_QUOTE = {"'": ShellContext.SINGLE, '"': ShellContext.DOUBLE, "`": ShellContext.BACKQUOTES}
# The text that ends each construct. Then: the constructs in which a backslash is not special, and those in which a
# quote or a `$` has the same meaning as in a script.
_CONTEXT_ENDS = {
    ShellContext.SINGLE: "'",
    ShellContext.DOLLAR_SINGLE: "'",
    ShellContext.DOUBLE: '"',
    ShellContext.BACKQUOTES: "`",
    ShellContext.PARAMETER: "}",
    ShellContext.COMMENT: "\n",
}
_CONTEXTS_WITHOUT_BACKSLASH = {ShellContext.SINGLE, ShellContext.COMMENT}
_CONTEXTS_WITH_QUOTES = {ShellContext.SCRIPT, ShellContext.PARAMETER, ShellContext.ARITHMETIC}
_CONTEXTS_WITH_DOLLAR = {*_CONTEXTS_WITH_QUOTES, ShellContext.DOUBLE}


def iter_places(script: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], ShellContext]]:
    """Yield each match of a pattern that no backslash precedes, and the construct that contains it.

    The pattern must begin with `{`. The time is linear in the length of the script.
    """
    return _ShellScriptReader(script, pattern).places() if "{" in script else iter(())


class _ShellScriptReader:
    def __init__(self, script: str, pattern: re.Pattern[str]) -> None:
        self._script = script
        self._place_pattern = pattern
        self._open: list[tuple[ShellContext, int]] = [
            (ShellContext.SCRIPT, 0)
        ]  # Each with the number of its open parentheses.
        # Pending here-documents: delimiter, is the text indented (`<<-`), is the delimiter quoted, and depth of the
        # stack.
        self._documents: list[tuple[str, bool, bool, int]] = []
        self._is_doubtful = False
        self._in_word_at = 0  # This position is inside a word, whatever precedes it.

    def places(self) -> Iterator[tuple[re.Match[str], ShellContext]]:
        at = 0
        while special := _SPECIAL_TEXT.search(self._script, at):
            at = special.start()
            if match := self._place_pattern.match(self._script, at):
                yield match, ShellContext.DOUBTFUL if self._is_doubtful else self._open[-1][0]
                at = match.end()
            elif special[0] == "\n" and self._open[-1][0] is ShellContext.SCRIPT and self._documents:
                end = self._here_documents_end(at + 1)
                yield from (
                    (match, ShellContext.HERE_DOCUMENT) for match in self._place_pattern.finditer(self._script, at, end)
                )
                at = end
            else:
                at = self._read_special(at, special[0])

    def _read_special(self, at: int, special: str) -> int:
        """Open or close constructs for the special character at the position `at`. Return the next position to read."""
        inside = self._open[-1][0]
        if special == "\\" and inside not in _CONTEXTS_WITHOUT_BACKSLASH:
            return self._read_escape(at)
        if special == _CONTEXT_ENDS.get(inside):
            self._open.pop()
            # The newline is not skipped, because here-documents may begin after it.
            return at if inside is ShellContext.COMMENT else at + 1
        if special in _CONTEXT_BY_QUOTE and (
            inside in _CONTEXTS_WITH_QUOTES or (inside is ShellContext.DOUBLE and special == "`")
        ):
            # In "${x:-'}", whether ' begins a quotation depends on the text before it.
            is_character = (
                special == "'" and inside is not ShellContext.SCRIPT and self._open[-2][0] is ShellContext.DOUBLE
            )
            self._is_doubtful |= is_character
            return self._open_construct(_CONTEXT_BY_QUOTE[special], at + 1)
        if special == "$" and inside in _CONTEXTS_WITH_DOLLAR:
            return self._read_dollar(at)
        if special in "()" and inside in (ShellContext.SCRIPT, ShellContext.ARITHMETIC):
            self._read_parenthesis(at, special)
        elif inside is ShellContext.SCRIPT:
            return self._read_word(at, special)
        return at + 1

    def _open_construct(self, inside: ShellContext, at: int, parentheses: int = 0) -> int:
        self._open.append((inside, parentheses))
        return at

    def _read_escape(self, at: int) -> int:
        if self._script.startswith("\n", at + 1):
            before = self._script[at - 1 : at]
            is_in_word = before not in _WORD_SEPARATORS and self._open[-1][0] is ShellContext.SCRIPT
            self._is_doubtful |= is_in_word or before in ("$", "<")
        else:
            self._in_word_at = at + 2
        # Shells without `$'` take the backslash as a character, and the next quote ends the string.
        self._is_doubtful |= self._open[-1][0] is ShellContext.DOLLAR_SINGLE
        return at + 2

    def _read_dollar(self, at: int) -> int:
        is_in_double = self._open[-1][0] is ShellContext.DOUBLE
        if self._script.startswith("((", at + 1):
            return self._open_construct(ShellContext.ARITHMETIC, at + 3, 2)
        if self._script.startswith("(", at + 1):
            return self._open_construct(ShellContext.SCRIPT, at + 2)
        if self._script.startswith("{", at + 1):
            return self._open_construct(ShellContext.PARAMETER, at + 2)
        if self._script.startswith("'", at + 1) and not is_in_double:
            return self._open_construct(ShellContext.DOLLAR_SINGLE, at + 2)
        return at + 2 if self._script.startswith("$", at + 1) else at + 1

    def _read_parenthesis(self, at: int, special: str) -> None:
        inside, parentheses = self._open.pop()
        open_parentheses = parentheses + (1 if special == "(" else -1)
        if len(self._open) == 0:
            self._open.append((inside, 0))
        elif open_parentheses >= (1 if inside is ShellContext.ARITHMETIC else 0):
            self._open.append((inside, open_parentheses))
            # `$((a) b)` is a command substitution, not arithmetic.
            is_script = (
                inside is ShellContext.ARITHMETIC and open_parentheses == 1 and not self._script.startswith(")", at + 1)
            )
            self._is_doubtful |= is_script
        else:
            self._in_word_at = at + 1

    def _read_word(self, at: int, special: str) -> int:
        if special == "#" and at != self._in_word_at and (at == 0 or self._script[at - 1] in _WORD_SEPARATORS):
            return self._open_construct(ShellContext.COMMENT, at + 1)
        if special == "<" and self._script.startswith("<<<", at):
            return at + 3
        if special == "<" and self._script.startswith("<<", at):
            return self._read_here_document(at)
        self._is_doubtful |= special == "case" and len(self._open) > 1
        return at + len(special)

    def _read_here_document(self, at: int) -> int:
        match = _HERE_DOCUMENT_START.match(self._script, at)
        if match is None:
            self._is_doubtful = True
            return at + 2
        delimiter = match[3] if match[2] else match[5]
        self._documents.append((delimiter, match[1] == "-", bool(match[2] or match[4]), len(self._open)))
        return match.end()

    def _here_documents_end(self, at: int) -> int:
        """Return the end of the pending here-documents. The first of them begins at `at`, directly after a newline."""
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
        """Return whether the line before a position ends with an unescaped backslash."""
        previous_line = self._script[self._script.rfind("\n", 0, at - 1) + 1 : at - 1]
        return (len(previous_line) - len(previous_line.rstrip("\\"))) % 2 == 1
