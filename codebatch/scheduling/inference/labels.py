"""What a text lists as waited for: `**Depends on:** a, b`, or such a line or heading with a list below it.

A label is a whole line, or what a line begins with up to its colon; it stands for the task that the text is of. What is
listed are names and nothing else, so what only speaks of another task is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from codebatch.scheduling.inference.sentences import readable

_LABELS_MAX = 20
_ITEMS_MAX = 1_000
_LINE_CHARACTERS_MAX = 2_000

_LABEL = re.compile(
    r"(?P<indent>[ \t]*)(?P<bullet>(?:[-*+]|\d{1,6}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?(?P<heading>#{1,6}[ \t]+)?"
    r"(?P<mark>[*_]{0,3})(?P<label>(?:(?P<soft>depends? (?:up)?on|blocked (?:by|on)|builds? (?:up)?on|waits? (?:for|on)"
    r"|waiting (?:for|on)|prerequisites?|after)"
    r"|(?P<hard>(?:task )?dependenc(?:y|ies)|requires?|needs?))(?: the following| these)?(?: tasks?)?)"
    r"(?P<colon>[ ]?:)?[*_]{0,3}(?(colon)|(?P<colon_behind>[ ]?:)?)(?P<rest>.*)",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,6}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?P<words>.*)")
_ASIDE = re.compile(
    r"\s[-\u2013]\s|\s?\u2014|\s\(|[:;]|\.(?:\s|\Z)|,?\s(?:but|which|that|because|so|then)\b", re.IGNORECASE
)
_TAKEN_BACK = re.compile(
    r"\b(?:not?|never|none|cannot|without|optional(?:ly)?|dropped|removed?|obsolete|instead|independent(?:ly)?|maybe"
    r"|perhaps|formerly|was|were)\b|n't\b|\?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\]\([^()\s]*\)")


class Listed(NamedTuple):
    """One line of what is listed: `names` is what it names, `told` what it says, with its label.

    `is_hard`: its label says much else, too, as `Dependencies`, below which packages may stand.
    """

    names: str
    told: str
    is_hard: bool


def iter_listed(text: str) -> Iterator[Listed]:
    """What stands behind the labels of a text and below them, in its order. What is taken back is left out."""
    lines = readable(text).split("\n")
    labels = ((place, found) for place, line in enumerate(lines) if (found := _label(line)) is not None)
    for place, found in islice(labels, _LABELS_MAX):
        rest = found["rest"].strip()
        for words in [rest] if rest else islice(_items(lines, place, found), _ITEMS_MAX):
            names, aside = _parted(words)
            if names and not _TAKEN_BACK.search(aside):
                yield Listed(names, f"{found['label']}: {words}", found["hard"] is not None)


def _label(line: str) -> re.Match[str] | None:
    """A line that begins with a label: with a colon, or alone as a heading or emphasized."""
    found = _LABEL.match(line[:_LINE_CHARACTERS_MAX])
    if found is None or found["colon"] or found["colon_behind"]:
        return found
    return found if (found["heading"] or found["mark"]) and not found["rest"].strip() else None


def _items(lines: Sequence[str], place: int, label: re.Match[str]) -> Iterator[str]:
    """Those of the list below a label, without lists in it. Below an item that is a label they stand deeper."""
    least = _width(label["indent"]) + 1 if label["bullet"] else 0
    depth: int | None = None
    for line in lines[place + 1 :]:
        found = _ITEM.match(line[:_LINE_CHARACTERS_MAX])
        if found is None:
            if line.strip() and (depth is None or _width(line) <= depth):
                return
            continue
        indent = _width(found["indent"])
        if indent < (least if depth is None else depth):
            return
        depth = indent if depth is None else depth
        if indent == depth:
            yield found["words"].strip()


def _width(line: str) -> int:
    spaces = line[: len(line) - len(line.lstrip(" \t"))]
    return len(spaces.expandtabs(4))


def _parted(words: str) -> tuple[str, str]:
    """What a line names, and what it says of that."""
    words = _ADDRESS.sub("]", words)
    end = _ASIDE.search(words)
    return (words, "") if end is None else (words[: end.start()].strip(), words[end.start() :])
