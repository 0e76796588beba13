"""Gaps: patterns of valid code that a grammar does not support. Each gap yields replacements for this code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial

from codebatch_workers.syntax.language_gaps import GapFinder, Replacement

_BLANK_TABLE = b" " * 10 + b"\n" + b" " * 245
_WORD_IN_PATTERN = re.compile(rb"\\b(\(?)([a-z]+)(\)?)(?![a-z?*+{|])")
# The maximum number of bytes that are searched in a line before a match.
_LINE_BYTES_MAX = 1000


def words_pattern(alternatives: bytes) -> bytes:
    """Return a pattern for several words that must begin at a word boundary. `|` separates them in `alternatives`."""
    return rb"(?:%s)" % b"|".join(rb"%s(?<=\b%s)" % (word, word) for word in alternatives.split(b"|"))


def compile_for_search(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    r"""Compile a pattern in a form that is fast to search: `\bword` becomes `word(?<=\bword)`.

    If a pattern begins with literal text, `re` searches for this text. Otherwise, `re` tries the pattern at each byte,
    which takes 6 to 20 times as long.
    """
    first = _WORD_IN_PATTERN.match(pattern)
    if first is not None and len(first[1]) == len(first[3]):
        opening, word, closing = first.groups()
        pattern = rb"%s%s%s(?<=\b%s)%s" % (opening, word, closing, word, pattern[first.end() :])
    return re.compile(pattern, flags)


def iter_closed(pattern: re.Pattern[bytes], excluded: re.Pattern[bytes], text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the matches of a pattern for tokens. If a match has the group `open`, its token is unterminated.

    After the first unterminated token, the matches of the pattern `excluded` follow instead. `excluded` does not match
    tokens of this kind, because each of them would be searched up to the end of the text.
    """
    for match in pattern.finditer(text):
        if match["open"] is not None:
            yield from excluded.finditer(text, match.start() + 1)
            return
        yield match


def blanks_for(text: bytes) -> bytes:
    """Return as many blanks as `text` has bytes. Line feeds stay."""
    return text.translate(_BLANK_TABLE)


def name_for(text: bytes) -> bytes:
    """Return a name that is not a keyword: `text`, with `_` as the last byte."""
    return text[:-1] + b"_"


def make_gap(
    pattern: bytes,
    stand_in: Callable[[bytes], bytes] = blanks_for,
    flags: int = re.MULTILINE,
    *,
    needs: tuple[bytes, ...] = (),
    preceded_by: bytes = b"",
) -> GapFinder:
    """Return a gap that replaces each group of a pattern by the result of `stand_in`. Text outside groups stays.

    A text without any of `needs` has no match. Checking this first avoids most searches. If `preceded_by` is set, this
    pattern must match the text of the line before the match, up to its end.
    """
    # Patterns are compiled on first use. Compiling all patterns of a language takes longer than parsing most files.
    compiled = cache(partial(compile_for_search, pattern, flags))
    before = cache(partial(re.compile, rb"(?:%s)\Z" % preceded_by))

    def stand_ins(utf8: bytes) -> Iterator[Replacement]:
        if needs and not any(text in utf8 for text in needs):
            return
        for match in compiled().finditer(utf8):
            if preceded_by and not before().search(_line_before(utf8, match.start())):
                continue
            for group in range(1, compiled().groups + 1):
                if match[group]:
                    yield Replacement(match.start(group), stand_in(match[group]))

    return stand_ins


def _line_before(utf8: bytes, offset: int) -> bytes:
    """Return the text between the start of a line and `offset`, at most its last _LINE_BYTES_MAX bytes."""
    floor = max(0, offset - _LINE_BYTES_MAX)
    return utf8[max(floor, utf8.rfind(b"\n", floor, offset) + 1) : offset]


def make_gaps(
    stand_in: Callable[[bytes], bytes], *patterns: bytes, needs: tuple[bytes, ...] = (), preceded_by: bytes = b""
) -> tuple[GapFinder, ...]:
    """Return one gap for each pattern, all with the same replacement and conditions."""
    return tuple(make_gap(pattern, stand_in, needs=needs, preceded_by=preceded_by) for pattern in patterns)


def padded_text(text: bytes) -> Callable[[bytes], bytes]:
    """Return a function that returns `text`, padded with blanks on the left to the length of its argument."""
    return lambda replaced: text.rjust(len(replaced))
