"""What a gap in a grammar is made of: where in a text something stands that it does not know, and what to put there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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


def blank(text: bytes) -> bytes:
    """Blanks for all but the ends of lines."""
    return re.sub(rb"[^\n]", b" ", text)


def plain_name(text: bytes) -> bytes:
    """A name that is no keyword, in place of one that is."""
    return text[:-1] + b"_"


def gap(
    pattern: bytes,
    stand_in: Callable[[bytes], bytes] = blank,
    flags: int = re.MULTILINE,
    *,
    needs: tuple[bytes, ...] = (),
) -> Gap:
    """Of each match of a pattern the groups have stand-ins; the rest says where they may stand.

    `needs`: every match holds one of these. To look for them takes a hundredth of the time.
    """
    compiled = re.compile(pattern, flags)

    def stand_ins(utf8: bytes) -> Iterator[StandIn]:
        if needs and not any(each in utf8 for each in needs):
            return
        for match in compiled.finditer(utf8):
            for group in range(1, compiled.groups + 1):
                if match[group]:
                    yield StandIn(match.start(group), stand_in(match[group]))

    return stand_ins


def gaps(stand_in: Callable[[bytes], bytes], *patterns: bytes, needs: tuple[bytes, ...] = ()) -> tuple[Gap, ...]:
    """One for each pattern."""
    return tuple(gap(pattern, stand_in, needs=needs) for pattern in patterns)


def padded(text: bytes) -> Callable[[bytes], bytes]:
    """This text in place of a longer one, at its end."""
    return lambda replaced: text.rjust(len(replaced))
