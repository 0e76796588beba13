"""Valid Bash that the grammar does not support."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for, make_gap, make_gaps
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps, Replacement

# The word in `${name%pattern}`, `${name/pattern/text}` or `${name:-word}`. Its literal parts can contain any
# characters.
_EXPANSION_WORD = re.compile(
    rb"\$\{!?(?:[A-Za-z_]\w*|[0-9@*])(?:\[[^\]\n]{0,100}\])?(?:##?|%%?|//?|\^\^?|,,?|:?[-+=?])"
    rb"((?:[^}$`\n\\'\"]|\\[^\n]|\$\w+|\$\{\w+\}|'[^'\n]{0,200}'|\"(?:[^\"\\$`\n]|\\[^\n]|\$\w+|\$\{\w+\}){0,200}\"){1,200})\}"
)
_EXPANSION = re.compile(rb"\$\{\w+\}|\$\w+")
_HEREDOC_START = rb"<<-?[ \t]*(['\"\\]?)([A-Za-z_]\w*)['\"]?"
_TWO_HEREDOCS = re.compile(rb"^[^\n#]*?%s[^\n]*?(%s)" % (_HEREDOC_START, _HEREDOC_START), re.MULTILINE)


def _expansion_word_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements for the literal parts of a word in an expansion: letters. Names of variables stay."""
    for match in _EXPANSION_WORD.finditer(utf8):
        start = match.start(1)
        for variable in (*_EXPANSION.finditer(match[1]), None):
            end = match.end(1) if variable is None else match.start(1) + variable.start()
            if end > start:
                yield Replacement(start, b"_" * (end - start))
            start = end if variable is None else match.start(1) + variable.end()


def _second_heredocs(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements for the second here-document of a command such as `cat <<A <<B`: blanks.

    They replace the operator of the here-document and its text.
    """
    for match in _TWO_HEREDOCS.finditer(utf8) if utf8.count(b"<<") > 1 else ():
        first = _heredoc_end(utf8, match.end(), match[2])
        second = _heredoc_end(utf8, first, match[5])
        if 0 < first < second:
            yield Replacement(match.start(3), blanks_for(match[3]))
            yield Replacement(first, blanks_for(utf8[first:second]))


def _heredoc_end(utf8: bytes, start: int, word: bytes) -> int:
    """Return the offset after the last line of a here-document that `word` ends, or -1.

    `start` is an offset in the text of the here-document.
    """
    end = re.compile(rb"\n\t*%s(?=\n|\Z)" % re.escape(word)).search(utf8, start) if start >= 0 else None
    return -1 if end is None else end.end()


def _as_parenthesis(text: bytes) -> bytes:
    return b"(" if text == b"{" else b")"


_GAPS: tuple[GapFinder, ...] = (
    # In `for arg do`, the loop is over the positional parameters. The grammar expects a separator before `do`.
    make_gap(rb"\bfor[ \t]+[A-Za-z_]\w*([ \t])(?=[ \t]*do\b)", lambda _: b";", needs=(b"for",)),
    _expansion_word_replacements,
    # In `${name:$i:1}`, the offset is a variable.
    make_gap(rb"\$\{[A-Za-z_]\w*(?:\[[^\]\n]{0,100}\])?:(\$)(?=\w+)", needs=(b":$",)),
    # `exec 3<>file`, `{fd}>file`, and several adjacent strings after `<<<`, such as `<<<"a"$'b'`.
    make_gap(rb"[0-9](<>)", lambda _: b"< ", needs=(b"<>",)),
    make_gap(rb"(?<=\s)(\{[A-Za-z_]\w*\})(?=[<>])", needs=(b"}<", b"}>")),
    make_gap(rb"(<<<)(?=[ \t]*[\"'$\w])", lambda _: b"  <", needs=(b"<<<",)),
    # `$((16#$a))`: a number with an explicit base.
    make_gap(rb"\b([0-9]{1,2}#)(?=\$)", needs=(b"#$",)),
    # `(exit 1) }`, `esac }`: a compound command needs no separator before `}`.
    make_gap(rb"(?:\)|\b(?:done|esac|fi))([ \t])(?=[ \t]*\})", lambda _: b";", needs=(b"}",)),
    # `!(a|b)`: an extended glob as an argument.
    make_gap(rb"(?<=[\s\w./*-])([!*?+@]\([^()\n$`'\"]*\))", lambda text: b"_" * len(text), needs=(b"(",)),
    # `case a in 'b c')`
    make_gap(
        rb"(?:;;&?|;&|\bin|\|)\s*('[^'\n]*'|\"[^\"\n$`\\]*\")(?=\s*[|)])",
        lambda text: b"_" * len(text),
        needs=(b"case",),
    ),
    # `${ command; }` of Bash 5.3.
    *make_gaps(_as_parenthesis, rb"\$(\{)[ \t|][^{}]*?;\s*(\})", needs=(b"${ ", b"${|", b"${\t")),
    make_gap(rb"\$\{(\|)[ \t][^{}]*?;\s*\}", needs=(b"${|",)),
    # `case a in *"\n"b"\n"*)`, as in `configure` scripts.
    make_gap(rb'\*("\n")[\w$]+("\n")\*(?=\))', lambda _: b"___", needs=(b'"\n',)),
    # The operator `=~` in parentheses, and `$` at the end of a pattern.
    make_gap(rb"\(\s*(?:\"[^\"\n]*\"|\$\w+)\s*(=~)", lambda _: b"==", needs=(b"=~",)),
    make_gap(rb"[\w)](\$)(?=\))", lambda _: b"_", needs=(b"$)",)),
    _second_heredocs,
)

GAPS = {
    "bash": LanguageGaps(finders=_GAPS),
    "zsh": LanguageGaps(finders=_GAPS),
}
