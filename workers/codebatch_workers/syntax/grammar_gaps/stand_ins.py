"""What a gap in a grammar is made of: where in a text something stands that it does not know, and what to put there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple


class StandIn(NamedTuple):
    """Bytes to put at an offset in place of as many."""

    start: int
    text: bytes

    def moved(self, by: int) -> StandIn:
        """The same further behind."""
        return StandIn(self.start + by, self.text)


# The stand-ins for one kind of place in a text. It says all of them, wherever in the text they are.
Gap = Callable[[bytes], Iterator[StandIn]]


_BLANKS = b" " * 10 + b"\n" + b" " * 245
_WORD = re.compile(rb"\\b(\(?)([a-z]+)(\)?)(?![a-z?*+{|])")
# More of a line than this is not looked at.
_LINE_BYTES_MAX = 1000


def words(alternatives: bytes) -> bytes:
    """A pattern of any of some words, which are separated by `|`, each whole in front."""
    return rb"(?:%s)" % b"|".join(rb"%s(?<=\b%s)" % (word, word) for word in alternatives.split(b"|"))


def searched(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """A pattern, compiled so that a text is searched fast: `\\bword` becomes `word(?<=\\bword)`.

    For letters in front `re` looks as for a plain text; else it tries a pattern at each byte, 6 to 20 times as slow.
    """
    first = _WORD.match(pattern)
    if first is not None and len(first[1]) == len(first[3]):
        opening, word, closing = first.groups()
        pattern = rb"%s%s%s(?<=\b%s)%s" % (opening, word, closing, word, pattern[first.end() :])
    return re.compile(pattern, flags)


def iter_closed(pattern: re.Pattern[bytes], without: re.Pattern[bytes], text: bytes) -> Iterator[re.Match[bytes]]:
    """The matches of a pattern of tokens of which one may lack its end: where its group `open` matches, at the end.

    All that begin so behind it lack theirs too, and would be looked for to the end each: from there on the matches are
    of the pattern without them.
    """
    for match in pattern.finditer(text):
        if match["open"] is not None:
            yield from without.finditer(text, match.start() + 1)
            return
        yield match


def blank(text: bytes) -> bytes:
    """Blanks for all but the ends of lines."""
    return text.translate(_BLANKS)


def plain_name(text: bytes) -> bytes:
    """A name that is no keyword, in place of one that is."""
    return text[:-1] + b"_"


def gap(
    pattern: bytes,
    stand_in: Callable[[bytes], bytes] = blank,
    flags: int = re.MULTILINE,
    *,
    needs: tuple[bytes, ...] = (),
    behind: bytes = b"",
) -> Gap:
    """Of each match of a pattern the groups have stand-ins; the rest says where they may stand.

    `needs`: every match holds one of these. To look for them takes a hundredth of the time. `behind`: what stands
    before the match in its line ends in a match of that.
    """
    # Made when one is first needed: all of a language's take longer than most files with an error.
    compiled = cache(partial(searched, pattern, flags))
    before = cache(partial(re.compile, rb"(?:%s)\Z" % behind))

    def stand_ins(utf8: bytes) -> Iterator[StandIn]:
        if needs and not any(each in utf8 for each in needs):
            return
        for match in compiled().finditer(utf8):
            if behind and not before().search(_line_before(utf8, match.start())):
                continue
            for group in range(1, compiled().groups + 1):
                if match[group]:
                    yield StandIn(match.start(group), stand_in(match[group]))

    return stand_ins


def _line_before(utf8: bytes, offset: int) -> bytes:
    """The last of what stands before an offset in its line."""
    floor = max(0, offset - _LINE_BYTES_MAX)
    return utf8[max(floor, utf8.rfind(b"\n", floor, offset) + 1) : offset]


def gaps(
    stand_in: Callable[[bytes], bytes], *patterns: bytes, needs: tuple[bytes, ...] = (), behind: bytes = b""
) -> tuple[Gap, ...]:
    """One for each pattern."""
    return tuple(gap(pattern, stand_in, needs=needs, behind=behind) for pattern in patterns)


def padded(text: bytes) -> Callable[[bytes], bytes]:
    """This text in place of a longer one, at its end."""
    return lambda replaced: text.rjust(len(replaced))
