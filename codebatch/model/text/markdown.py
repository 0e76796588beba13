"""Markdown that people write tasks in: front matter, headings, sections and what is checked off."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\Z")
_NAMED = re.compile(r"[ \t]*\{#([^{}\s]+)\}\Z")
_CHECKED = re.compile(r"[ \t]*[-*+][ \t]+\[[xX]\](?=\s|\Z)")
_NO_ID = re.compile(r"[^A-Za-z0-9._-]+")
_KINDS: dict[str, Literal["yaml", "toml"]] = {"---": "yaml", "+++": "toml"}
_ENDS = {"yaml": ("---", "..."), "toml": ("+++",)}
SLUG_CHARACTERS_MAX = 100


class FrontMatter(NamedTuple):
    """What stands before the text of a file: `text` of a language, from line 2, and the `body` behind it."""

    language: Literal["yaml", "toml"]
    text: str
    body: str
    body_line: int


class Section(NamedTuple):
    """What stands below a heading of the second level, up to the next such one or above. `name` is that of `{#…}`."""

    title: str
    name: str
    text: str
    line: int
    is_done: bool


def split_front_matter(text: str) -> FrontMatter | None:
    """The front matter of a text; None where it has none. Raises ValueError where it has no end."""
    first, _, rest = text.partition("\n")
    language = _KINDS.get(first.rstrip())
    if language is None:
        return None
    at = len(first) + 1
    line = 2
    while at <= len(text) and rest:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[at:end].rstrip() in _ENDS[language]:
            return FrontMatter(language, text[len(first) + 1 : at], text[end + 1 :], line + 1)
        at, line = end + 1, line + 1
    raise ValueError(f"front matter starts with {first.rstrip()} on line 1 but does not end")


def iter_headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Each heading that begins with `#` and stands in no fenced code: its offset, line from 1, level and words."""
    fence = ""
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in line[found.end() :]):
            fence = found[1]
        elif heading := _HEADING.match(line.rstrip("\r")):
            yield at, number, len(heading[1]), heading[2] or ""
        at += len(line) + 1


def first_heading(text: str) -> str:
    """The words of the first heading of the first level, empty where there is none."""
    return next((_NAMED.sub("", words) for _, _, level, words in iter_headings(text) if level == 1), "")


def sections_of(text: str) -> list[Section]:
    """The sections of the second level in their order."""
    found: list[Section] = []
    headings = [each for each in iter_headings(text) if each[2] <= 2]
    for place, (at, line, level, words) in enumerate(headings):
        if level != 2:
            continue
        end = headings[place + 1][0] if place + 1 < len(headings) else len(text)
        body = text[at:end].partition("\n")[2].strip("\r\n")
        named = _NAMED.search(words)
        first = next((each for each in body.split("\n") if each.strip()), "")
        title = _NAMED.sub("", words).strip()
        found.append(Section(title, named[1] if named else "", body, line, _CHECKED.match(first) is not None))
    return found


def slug(words: str) -> str:
    """An id made of some words, empty where they have no letter or digit of an id."""
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    return _NO_ID.sub("-", plain).strip("-._")[:SLUG_CHARACTERS_MAX].lower()
