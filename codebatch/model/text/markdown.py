"""Markdown task files: front matter, headings, sections and check boxes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

_CODE_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\Z")
_HEADING_ID = re.compile(r"[ \t]*\{#([^{}\s]+)\}\Z")
_CHECKED_ITEM = re.compile(r"[ \t]*[-*+][ \t]+\[[xX]\](?=\s|\Z)")
_NO_ID_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")
_FRONT_MATTER_LANGUAGES: dict[str, Literal["yaml", "toml"]] = {"---": "yaml", "+++": "toml"}
_FRONT_MATTER_ENDS = {"yaml": ("---", "..."), "toml": ("+++",)}
SLUG_CHARACTERS_MAX = 100


class FrontMatter(NamedTuple):
    """The parts of a file with front matter.

    `text` is the front matter, from line 2 on. `body` is the rest, from line `body_line` on.
    """

    language: Literal["yaml", "toml"]
    text: str
    body: str
    body_line: int


class MarkdownSection(NamedTuple):
    """The text below a heading of level 2, up to the next heading of level 1 or 2.

    `name` is the text in `{#…}` after the title, or empty. `is_done` is set if the text begins with a checked box (`-
    [x]`).
    """

    title: str
    name: str
    text: str
    line: int
    is_done: bool


def split_front_matter(text: str) -> FrontMatter | None:
    """Split a file into front matter and body.

    Return None if it has no front matter. Raises ValueError if the front matter has no end.
    """
    first, _, body_text = text.partition("\n")
    language = _FRONT_MATTER_LANGUAGES.get(first.rstrip())
    if language is None:
        return None
    at = len(first) + 1
    line = 2
    while at <= len(text) and body_text:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[at:end].rstrip() in _FRONT_MATTER_ENDS[language]:
            return FrontMatter(language, text[len(first) + 1 : at], text[end + 1 :], line + 1)
        at, line = end + 1, line + 1
    raise ValueError(f"front matter starts with {first.rstrip()} on line 1 but does not end")


def iter_headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield each `#` heading outside of fenced code: its offset in characters, line (from 1), level and text."""
    fence = ""
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        fence_match = _CODE_FENCE.match(line)
        if fence:
            if fence_match and fence_match[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif fence_match and not (fence_match[1][0] == "`" and "`" in line[fence_match.end() :]):
            fence = fence_match[1]
        elif heading := _HEADING.match(line.rstrip("\r")):
            yield at, number, len(heading[1]), heading[2] or ""
        at += len(line) + 1


def first_heading(text: str) -> str:
    """Return the text of the first heading of level 1, or an empty text."""
    return next((_HEADING_ID.sub("", words) for _, _, level, words in iter_headings(text) if level == 1), "")


def level_2_sections(text: str) -> list[MarkdownSection]:
    """Return the sections of level 2, in order."""
    sections: list[MarkdownSection] = []
    headings = [heading for heading in iter_headings(text) if heading[2] <= 2]
    for place, (at, line, level, words) in enumerate(headings):
        if level != 2:
            continue
        end = headings[place + 1][0] if place + 1 < len(headings) else len(text)
        body = text[at:end].partition("\n")[2].strip("\r\n")
        named = _HEADING_ID.search(words)
        first = next((heading for heading in body.split("\n") if heading.strip()), "")
        title = _HEADING_ID.sub("", words).strip()
        sections.append(
            MarkdownSection(title, named[1] if named else "", body, line, _CHECKED_ITEM.match(first) is not None)
        )
    return sections


def make_slug(words: str) -> str:
    """Return an ID made from words. If no character of `words` is allowed in an ID, return an empty text."""
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    return _NO_ID_CHARACTERS.sub("-", plain).strip("-._")[:SLUG_CHARACTERS_MAX].lower()
