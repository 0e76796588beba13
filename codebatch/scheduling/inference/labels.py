"""Labelled lists of needs in a text: `**Depends on:** a, b`, or a label as a line or heading above a list.

A label is a whole line, or the beginning of a line up to its colon. The task with this text needs the listed tasks.
Only names in the list count, not tasks that a remark after a name mentions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from codebatch.scheduling.inference.sentences import readable_text

_LABELS_MAX = 20
_ITEMS_MAX = 1_000
_LINE_CHARACTERS_MAX = 2_000

_LABEL_LINE = re.compile(
    r"(?P<indent>[ \t]*)(?P<bullet>(?:[-*+]|\d{1,6}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?(?P<heading>#{1,6}[ \t]+)?"
    r"(?P<mark>[*_]{0,3})(?P<label>(?:(?P<soft>depends? (?:up)?on|blocked (?:by|on)|builds? (?:up)?on|waits? (?:for|on)"
    r"|waiting (?:for|on)|prerequisites?|after)"
    r"|(?P<hard>(?:task )?dependenc(?:y|ies)|requires?|needs?))(?: the following| these)?(?: tasks?)?)"
    r"(?P<colon>[ ]?:)?[*_]{0,3}(?(colon)|(?P<colon_behind>[ ]?:)?)(?P<rest>.*)",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,6}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?P<words>.*)")
_REMARK_START = re.compile(
    r"\s[-\u2013]\s|\s?\u2014|\s\(|[:;]|\.(?:\s|\Z)|,?\s(?:but|which|that|because|so|then)\b", re.IGNORECASE
)
_NEGATION = re.compile(
    r"\b(?:not?|never|none|cannot|without|optional(?:ly)?|dropped|removed?|obsolete|instead|independent(?:ly)?|maybe"
    r"|perhaps|formerly|was|were)\b|n't\b|\?",
    re.IGNORECASE,
)
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")


class LabelEntry(NamedTuple):
    """One line of a labelled list. `names` is the part of the line with names, `text` the whole line after the label.

    `is_ambiguous` is set if the label has other uses too, for example `Dependencies` above a list of packages.
    """

    names: str
    text: str
    is_ambiguous: bool


def iter_label_entries(text: str) -> Iterator[LabelEntry]:
    """Yield the lines of all labelled lists in a text, in order. If a remark negates a line, the line is omitted."""
    lines = readable_text(text).split("\n")
    labels = ((place, match) for place, line in enumerate(lines) if (match := _match_label(line)) is not None)
    for place, match in islice(labels, _LABELS_MAX):
        entry_text = match["rest"].strip()
        for words in [entry_text] if entry_text else islice(_label_items(lines, place, match), _ITEMS_MAX):
            names, aside = _split_remark(words)
            if names and not _NEGATION.search(aside):
                yield LabelEntry(names, f"{match['label']}: {words}", match["hard"] is not None)


def _match_label(line: str) -> re.Match[str] | None:
    """Match a line that is or begins with a label.

    A label ends with a colon, or is a whole line: a heading or emphasized.
    """
    match = _LABEL_LINE.match(line[:_LINE_CHARACTERS_MAX])
    if match is None or match["colon"] or match["colon_behind"]:
        return match
    return match if (match["heading"] or match["mark"]) and not match["rest"].strip() else None


def _label_items(lines: Sequence[str], place: int, label: re.Match[str]) -> Iterator[str]:
    """Yield the items of the list below a label, without nested lists.

    If the label is itself an item of a list, its items are indented more than the label.
    """
    least = _indent_width(label["indent"]) + 1 if label["bullet"] else 0
    depth: int | None = None
    for line in lines[place + 1 :]:
        match = _LIST_ITEM.match(line[:_LINE_CHARACTERS_MAX])
        if match is None:
            if line.strip() and (depth is None or _indent_width(line) <= depth):
                return
            continue
        indent = _indent_width(match["indent"])
        if indent < (least if depth is None else depth):
            return
        depth = indent if depth is None else depth
        if indent == depth:
            yield match["words"].strip()


def _indent_width(line: str) -> int:
    spaces = line[: len(line) - len(line.lstrip(" \t"))]
    return len(spaces.expandtabs(4))


def _split_remark(words: str) -> tuple[str, str]:
    """Split a line into its names and the remark after them, which may be empty."""
    words = _LINK_TARGET.sub("]", words)
    end = _REMARK_START.search(words)
    return (words, "") if end is None else (words[: end.start()].strip(), words[end.start() :])
