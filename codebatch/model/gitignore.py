"""Patterns of gitignore(5): parsing, conversion to globs over bytes, and the pattern that decides a path.

The library pathspec is not used, for three reasons. It cannot match paths that are not UTF-8. For a negated pattern
inside an excluded directory, its result differs from git's (pathspec issues 129 and 137). It does not return the file
and line of the deciding pattern. `tests/snapshot/test_ignore.py` compares the results with git on generated trees.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from codebatch.errors import SourceUnreadable
from codebatch.model.entry import display_path
from codebatch.model.globs import PARENTS_TOKEN, REST_TOKEN, STAR_TOKEN, GlobSet, GlobToken

_CHARACTER_CLASSES: dict[bytes, frozenset[int]] = {
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
_IGNORE_FILES_PER_PATH_MAX = 256
DISPLAYED_BYTES_MAX = 200
_SLASH = ord("/")
_STAR = ord("*")
_BACKSLASH = ord("\\")
_SPECIAL_BYTE = re.compile(rb"[*?\[\\]|\Z")
_ANY_BUT_SLASH = frozenset(range(256)) - {_SLASH}
_UNESCAPED_BRACES = re.compile(r"\\.|\[!?\]?[^\]]*\]|(\{[^{}]*(?:,|\.\.)[^{}]*\})")
_ALTERNATIVES_MAX = 6
_OUTSIDE_ROOT_REASON = "patterns are relative to the project root and cannot leave it"


class _MalformedError(Exception):
    """The error that git's wildmatch rejects a pattern. Such a pattern matches nothing."""


class IgnorePattern(msgspec.Struct, frozen=True):
    """One line of an ignore file. `glob` applies to paths relative to the directory of the file."""

    text: bytes
    line: int
    negated: bool
    directory_only: bool
    glob: Sequence[GlobToken]


class PatternList:
    """The patterns of one ignore file. They apply to paths below `base`.

    `base` is empty, or a directory path that ends with a slash. If the ignore file is in a directory above the tree,
    `prefix` is the path from that directory to the tree, and ends with a slash.
    """

    def __init__(
        self,
        origin: str,
        base: bytes,
        patterns: Sequence[IgnorePattern],
        *,
        is_option: bool = False,
        prefix: bytes = b"",
    ) -> None:
        self.origin = origin
        self.base = base
        self.patterns = patterns
        self.is_option = is_option
        self._path_prefix = prefix
        self._globs = GlobSet([pattern.glob for pattern in patterns], self._last_match)

    def deciding_pattern(self, path: bytes, *, is_directory: bool) -> IgnorePattern | None:
        """Return the last pattern that matches a path, or None.

        The caller must also call this for each parent of the path.
        """
        for_file, for_directory = self._globs.find(self._path_prefix + path[len(self.base) :])
        return for_directory if is_directory else for_file

    def selects(self, path: bytes) -> bool | None:
        """Return whether the patterns select a file (True) or exclude it (False). None: no pattern matches.

        The last pattern decides that matches the file or a directory above it.
        """
        deciding = self.deciding_pattern(path, is_directory=False)
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            pattern = self.deciding_pattern(path, is_directory=True)
            if pattern is not None and (deciding is None or pattern.line > deciding.line):
                deciding = pattern
        return None if deciding is None else not deciding.negated

    def _last_match(self, matching: Iterator[int]) -> tuple[IgnorePattern | None, IgnorePattern | None]:
        """Return two patterns: the last match if the path is a file, and the last match if it is a directory."""
        for_directory = None
        for index in matching:
            pattern = self.patterns[index]
            for_directory = for_directory or pattern
            if not pattern.directory_only:
                return pattern, for_directory
        return None, for_directory


def parse_ignore_file(
    data: bytes, origin: str, base: bytes, *, is_option: bool = False, prefix: bytes = b""
) -> PatternList:
    """Parse an ignore file line by line like git's add_patterns_from_buffer."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    patterns = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line and not line.startswith(b"#"):
            pattern = parse_pattern(_trim_trailing_spaces(line.removesuffix(b"\r")), number)
            if pattern is not None:
                patterns.append(pattern)
    return PatternList(origin, base, patterns, is_option=is_option, prefix=prefix)


def parse_arguments(arguments: Sequence[str], option: str) -> PatternList:
    """Parse the patterns of a repeatable option. They apply to the whole tree."""
    lines = "\n".join(arguments).encode("utf-8", "surrogateescape")
    return parse_ignore_file(lines, option, b"", is_option=True)


class PatternMistake(NamedTuple):
    """A pattern that cannot match a path of any tree, the reason, and the advice."""

    pattern: str
    reason: str
    hint: str


def find_mistake(patterns: Sequence[str], root: str = "", home: str = "") -> PatternMistake | None:
    """Return the first pattern that can match no path, or None if each may match one.

    In .gitignore, git silently ignores a pattern that matches nothing. In a list of patterns for codebatch it is a
    mistake: the list would select no files, and a run without files looks like success.

    `root` is the absolute path of the tree, used to recognize absolute paths. Pass an empty `root` if the tree contains
    the same path below itself. `home` is the home directory, for patterns that begin with `~`.
    """
    for pattern in patterns:
        if pattern.startswith("#"):
            hint = f"write '\\{pattern}' for a name that begins with #"
            return PatternMistake(pattern, "it is a comment", hint)
        mistake = pattern_mistake(pattern, root, home)
        if mistake is not None:
            return mistake
    if patterns and all(pattern.startswith("!") for pattern in patterns):
        hint = "put a pattern that it restricts before it, for example '*'"
        return PatternMistake(patterns[0], "it is a negation, but no pattern comes before it", hint)
    return None


def pattern_mistake(pattern: str, root: str = "", home: str = "") -> PatternMistake | None:
    """Return the reason why a single pattern can match no path, with advice, or None.

    `root` and `home` are as in `find_mistake`.
    """
    reason_and_hint = _reason_and_hint(pattern, root, home)
    return None if reason_and_hint is None else PatternMistake(pattern, *reason_and_hint)


def _reason_and_hint(pattern: str, root: str, home: str) -> tuple[str, str] | None:
    body = pattern.removeprefix("!")
    if not body.strip(" /"):
        return "it is empty", "write '*' to match every path"
    if (braces := _braces_in(body)) is not None:
        return "braces are not expanded", _alternatives_hint(pattern, braces)
    if body.startswith("~/"):
        return "~ is not expanded", _path_form_hint(
            pattern, home + body[1:], root
        ) if root and home else _OUTSIDE_ROOT_REASON
    if root and f"{body}/".startswith(f"{root}/"):
        return "it is an absolute path", _path_form_hint(pattern, body, root)
    try:
        glob = _tokenize(body.removesuffix("/").removeprefix("/").encode("utf-8", "surrogateescape"), by_name=False)
    except _MalformedError:
        return "it is malformed", "write \\[ for a bracket and \\\\ for a backslash"
    if (part := _impossible_part(glob)) is None:
        return None
    reason = f"no path has a component {part!r}" if part else "no path has an empty component"
    return reason, _path_form_hint(pattern, f"{root}/{body}", root)


def _braces_in(body: str) -> re.Match[str] | None:
    return next((match for match in _UNESCAPED_BRACES.finditer(body) if match[1]), None)


def _alternatives_hint(pattern: str, braces: re.Match[str]) -> str:
    """Return a hint with the patterns to which a shell would expand the braces."""
    literal = "write \\{ for a literal brace"
    at = pattern.index(braces[1])
    head, tail = pattern[:at], pattern[at + len(braces[1]) :]
    words = braces[1][1:-1].split(",")
    if len(words) < 2 or _braces_in(tail) is not None:
        return f"write a pattern for each alternative; {literal}"
    suggestions = [repr(f"{head}{word}{tail}") for word in itertools.islice(words, _ALTERNATIVES_MAX)]
    more = ", …" if len(words) > len(suggestions) else ""
    return f"write a pattern for each alternative: {', '.join(suggestions)}{more}; {literal}"


def _path_form_hint(pattern: str, path: str, root: str) -> str:
    """Return a hint with the pattern that matches `path`. `path` is absolute and below `root`.

    If `root` is empty, `path` is relative to it.
    """
    within = [part for part in root.split("/") if part]
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts or "*" in parts[-1]:
                return _OUTSIDE_ROOT_REASON
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if parts[: len(within)] != within:
        return _OUTSIDE_ROOT_REASON
    below = parts[len(within) :]
    if not below:
        return "write '*' to match every path"
    # A pattern without a slash would match at any depth, and an initial `!` would negate it.
    is_anchored = (len(below) == 1 and below != ["**"]) or below[0].startswith(("!", "#"))
    anchor = "/" if is_anchored else ""
    negation = "!" if pattern.startswith("!") else ""
    return f"write {negation + anchor + '/'.join(below) + ('/' if path.endswith('/') else '')!r}"


def _impossible_part(glob: Sequence[GlobToken]) -> str | None:
    """Return the first component of a glob that cannot be part of a path (empty, `.` or `..`), or None."""
    part: list[GlobToken] = []
    for token in (*glob, _SLASH):
        if token == PARENTS_TOKEN and not part:
            continue
        if token != _SLASH:
            part.append(token)
            continue
        if all(element == ord(".") for element in part) and len(part) <= 2:
            return "." * len(part)
        part = []
    return None


def describe_pattern(patterns: PatternList, pattern: IgnorePattern) -> str:
    """Return a pattern for people: `file:line:pattern`, or `--option pattern`."""
    text = pattern.text.decode("utf-8", "backslashreplace")
    return f"{patterns.origin} {text}" if patterns.is_option else f"{patterns.origin}:{pattern.line}:{text}"


def find_deciding_pattern(
    chain: Sequence[PatternList], path: bytes, *, is_directory: bool
) -> tuple[PatternList, IgnorePattern] | None:
    """Return the pattern that decides whether a path is ignored, and the list that contains the pattern.

    None if no pattern matches. `chain` has the lists of the directories above the path, nearest first. Raises
    SourceUnreadable if there are more than _IGNORE_FILES_PER_PATH_MAX lists.
    """
    if len(chain) > _IGNORE_FILES_PER_PATH_MAX:
        raise SourceUnreadable(
            f"more than {_IGNORE_FILES_PER_PATH_MAX} ignore files apply to {display_path(path[:DISPLAYED_BYTES_MAX])}…",
            hint="exclude the path with --exclude",
        )
    for patterns in chain:
        pattern = patterns.deciding_pattern(path, is_directory=is_directory)
        if pattern is not None:
            return patterns, pattern
    return None


def parse_pattern(line: bytes, number: int) -> IgnorePattern | None:
    """Parse a line of an ignore file.

    `number` is its line number. Return None if the line has no pattern that can match.
    """
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
        glob = _tokenize(line, by_name=by_name)
    except _MalformedError:
        return None
    return IgnorePattern(text, number, negated, directory_only, [PARENTS_TOKEN, *glob] if by_name else glob)


def _trim_trailing_spaces(line: bytes) -> bytes:
    """Return a line without trailing spaces, except a space escaped by a backslash."""
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


def _tokenize(pattern: bytes, *, by_name: bool) -> list[GlobToken]:
    """Parse a pattern into tokens by the rules of git's wildmatch.c.

    Unless `by_name` is set, the flag WM_PATHNAME applies.
    """
    tokens: list[GlobToken] = []
    literal_end = next(_SPECIAL_BYTE.finditer(pattern)).start()
    at = 0
    while at < len(pattern):
        char = pattern[at]
        token: GlobToken = char
        if char == _STAR:
            token, at = _parse_stars(pattern, at, by_name=by_name, is_behind_literal=at == literal_end)
            if tokens and tokens[-1] == token == PARENTS_TOKEN:
                continue
        elif char == ord("?"):
            token = _ANY_BUT_SLASH
            at += 1
        elif char == ord("["):
            token, at = _parse_set(pattern, at)
        elif char == _BACKSLASH:
            if at + 1 == len(pattern):
                raise _MalformedError
            token = pattern[at + 1]
            at += 2
        else:
            at += 1
        tokens.append(token)
    return tokens


def _parse_stars(pattern: bytes, start: int, *, by_name: bool, is_behind_literal: bool) -> tuple[GlobToken, int]:
    """Parse the sequence of `*` at `start`. Return its token and the position after it."""
    end = start
    while pattern[end : end + 1] == b"*":
        end += 1
    if by_name or end - start == 1:
        return STAR_TOKEN, end
    after = pattern[end : end + 2]
    # git compares the literal prefix of a pattern separately. So stars directly after this prefix count as if they were
    # at the start: `/a**/b` is `a` and then `**/b` (dir.c, match_pathname).
    opens = pattern[start - 1 : start] in (b"", b"/") or is_behind_literal
    if opens and after.startswith(b"/"):
        return PARENTS_TOKEN, end + 1
    if opens and (not after or after == b"\\/"):
        return REST_TOKEN, end
    return STAR_TOKEN, end


def _parse_set(pattern: bytes, start: int) -> tuple[frozenset[int], int]:
    """Parse a bracket expression from its `[`. Return its members and the position after it.

    The first character after the opening is a member even if it is `]`.
    """
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
        previous, at = _parse_set_member(pattern, at, previous, members)
    allowed = set(range(1, 256)) - members if negated else members
    allowed.discard(_SLASH)
    return frozenset(allowed), at + 1


def _parse_set_member(pattern: bytes, at: int, previous: int | None, members: set[int]) -> tuple[int | None, int]:
    """Parse one member of a bracket expression into `members`.

    Return the byte at which a range may start, or None, and the next position.
    """
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
            if name not in _CHARACTER_CLASSES:
                raise _MalformedError
            members.update(_CHARACTER_CLASSES[name])
            return None, close + 1
    members.add(char)
    return char, at + 1
