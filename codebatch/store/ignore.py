"""gitignore patterns: read, translated to regular expressions over bytes, and decided as git decides (gitignore(5)).

Written out rather than taken from pathspec because three things are needed that it does not do: paths that are no
UTF-8, git's own answer where a pattern inside an excluded directory negates (pathspec issues 129 and 137), and the file
and line of the pattern that decided. `tests/snapshot/test_ignore.py` compares it with git on generated trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_CLASSES: dict[bytes, frozenset[int]] = {
    b"alnum": frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"alpha": frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset({*range(32), 127}),
    b"digit": frozenset(b"0123456789"),
    b"graph": frozenset(range(33, 127)),
    b"lower": frozenset(b"abcdefghijklmnopqrstuvwxyz"),
    b"print": frozenset(range(32, 127)),
    b"punct": frozenset(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    b"space": frozenset(b" \t\n\v\f\r"),
    b"upper": frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}
_SLASH = ord("/")
_STAR = ord("*")
_BACKSLASH = ord("\\")
_SPECIAL = re.compile(rb"[*?\[\\]")


class _MalformedError(Exception):
    """A pattern that git's wildmatch gives up on: it matches nothing."""


class Pattern(NamedTuple):
    """One line of an ignore file. `regex` is matched against the last part of a path, or the path below `base`."""

    text: bytes
    line: int
    negated: bool
    directory_only: bool
    by_name: bool
    regex: re.Pattern[bytes]


class PatternList(NamedTuple):
    """The patterns of one file, which speak of paths below `base` (empty, or a directory with a slash at the end).

    `by_name` and `by_path` match what any pattern of that sort matches: most paths match none, and that is soon said.
    """

    origin: str
    base: bytes
    patterns: tuple[Pattern, ...]
    by_name: re.Pattern[bytes]
    by_path: re.Pattern[bytes]
    is_option: bool = False

    def decide(self, path: bytes, *, is_directory: bool) -> Pattern | None:
        """The last pattern that matches a path itself; its parents are the caller's to ask about."""
        below = path[len(self.base) :]
        name = below[below.rfind(b"/") + 1 :]
        if not (self.by_name.fullmatch(name) or self.by_path.fullmatch(below)):
            return None
        for pattern in reversed(self.patterns):
            if pattern.directory_only and not is_directory:
                continue
            if pattern.regex.fullmatch(name if pattern.by_name else below):
                return pattern
        return None


def parse_ignore_file(data: bytes, origin: str, base: bytes) -> PatternList:
    """Read an ignore file, line by line as git's add_patterns_from_buffer does."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    patterns = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line and not line.startswith(b"#"):
            pattern = _parse_line(_trim_trailing_spaces(line.removesuffix(b"\r")), number)
            if pattern is not None:
                patterns.append(pattern)
    by_name, by_path = (
        _any_of([pattern for pattern in patterns if pattern.by_name is is_name]) for is_name in (True, False)
    )
    return PatternList(origin, base, tuple(patterns), by_name, by_path)


def _any_of(patterns: Sequence[Pattern]) -> re.Pattern[bytes]:
    sources = b"|".join(b"(?:" + pattern.regex.pattern + b")" for pattern in patterns)
    return re.compile(sources or b"(?!)", re.DOTALL)


def parse_arguments(arguments: Sequence[str], option: str) -> PatternList:
    """Patterns of an option that may be given several times; they speak of the whole tree."""
    lines = "\n".join(arguments).encode("utf-8", "surrogateescape")
    return parse_ignore_file(lines, option, b"")._replace(is_option=True)


def describe(patterns: PatternList, pattern: Pattern) -> str:
    """A pattern for people: `file:line:pattern`, or `--option pattern`."""
    text = pattern.text.decode("utf-8", "backslashreplace")
    return f"{patterns.origin} {text}" if patterns.is_option else f"{patterns.origin}:{pattern.line}:{text}"


def decide_chain(
    chain: Iterable[PatternList], path: bytes, *, is_directory: bool
) -> tuple[PatternList, Pattern] | None:
    """The pattern that decides a path: the first of the lists, nearest directory first, that says anything."""
    for patterns in chain:
        pattern = patterns.decide(path, is_directory=is_directory)
        if pattern is not None:
            return patterns, pattern
    return None


def _parse_line(line: bytes, number: int) -> Pattern | None:
    text = line
    negated = line.startswith(b"!")
    line = line.removeprefix(b"!")
    directory_only = line.endswith(b"/")
    line = line.removesuffix(b"/")
    by_name = b"/" not in line
    if not by_name:
        line = line.removeprefix(b"/")
    if not line:
        return None
    try:
        source = _translate(line, by_name=by_name)
    except _MalformedError:
        return None
    return Pattern(text, number, negated, directory_only, by_name, re.compile(source, re.DOTALL))


def _trim_trailing_spaces(line: bytes) -> bytes:
    """Without the spaces at the end, except one that a backslash keeps."""
    end = 0
    at = 0
    while at < len(line):
        if line[at] == _BACKSLASH:
            if at + 1 == len(line):
                return line
            at += 1
            end = at + 1
        elif line[at] != ord(" "):
            end = at + 1
        at += 1
    return line[:end]


def _translate(pattern: bytes, *, by_name: bool) -> bytes:
    """A pattern as a regular expression, by the rules of git's wildmatch.c (with WM_PATHNAME unless `by_name`)."""
    out: list[bytes] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == _STAR:
            end = at
            while end < len(pattern) and pattern[end] == _STAR:
                end += 1
            source, at = _translate_stars(pattern, at, end, by_name=by_name)
            out.append(source)
        elif char == ord("?"):
            out.append(b"[^/]")
            at += 1
        elif char == ord("["):
            source, at = _translate_set(pattern, at)
            out.append(source)
        elif char == _BACKSLASH:
            if at + 1 == len(pattern):
                raise _MalformedError
            out.append(re.escape(pattern[at + 1 : at + 2]))
            at += 2
        else:
            out.append(re.escape(pattern[at : at + 1]))
            at += 1
    return b"".join(out)


def _translate_stars(pattern: bytes, start: int, end: int, *, by_name: bool) -> tuple[bytes, int]:
    """One run of stars from `start` to `end`; returns the expression and where to go on."""
    if by_name or end - start == 1:
        return b"[^/]*", end
    after = pattern[end : end + 2]
    # git compares the literal beginning of a pattern by itself, so stars right behind it count as at the start:
    # `/a**/b` is `a` and then `**/b` (dir.c, match_pathname).
    opens = pattern[start - 1 : start] in (b"", b"/") or not _SPECIAL.search(pattern, 0, start)
    if opens and after.startswith(b"/"):
        return b"(?:.*/)?", end + 1
    if opens and (not after or after == b"\\/"):
        return b".*", end
    return b"[^/]*", end


def _translate_set(pattern: bytes, start: int) -> tuple[bytes, int]:
    """A bracket expression, from its `[`. The first character after the opening is a member even if it is `]`."""
    at = start + 1
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    previous: int | None = None
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        if at >= len(pattern):
            raise _MalformedError
        previous, at = _set_member(pattern, at, previous, members)
    chosen = set(range(1, 256)) - members if negated else members
    chosen.discard(_SLASH)
    if not chosen:
        return b"(?!)", at + 1
    return b"[" + b"".join(b"\\x%02x" % value for value in sorted(chosen)) + b"]", at + 1


def _set_member(pattern: bytes, at: int, previous: int | None, members: set[int]) -> tuple[int | None, int]:
    """Read one member of a set into `members`; returns what a following `-` would start from, and where to go on."""
    char = pattern[at]
    if char == _BACKSLASH:
        if at + 1 == len(pattern):
            raise _MalformedError
        members.add(pattern[at + 1])
        return pattern[at + 1], at + 2
    if char == ord("-") and previous is not None and pattern[at + 1 : at + 2] not in (b"", b"]"):
        at += 1
        if pattern[at] == _BACKSLASH:
            at += 1
            if at == len(pattern):
                raise _MalformedError
        members.update(range(previous, pattern[at] + 1))
        return None, at + 1
    if pattern[at : at + 2] == b"[:":
        close = pattern.find(b"]", at + 2)
        if close < 0:
            raise _MalformedError
        if close > at + 2 and pattern[close - 1] == ord(":"):
            name = pattern[at + 2 : close - 1]
            if name not in _CLASSES:
                raise _MalformedError
            members.update(_CLASSES[name])
            return None, close + 1
    members.add(char)
    return char, at + 1
