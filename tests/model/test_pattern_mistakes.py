"""Patterns that cannot match any path are mistakes, and each mistake suggests a pattern."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.gitignore import find_mistake, parse_arguments

ROOT, HOME = "/home/u/p", "/home/u"
ALTERNATIVES = "write a pattern for each alternative: "

MISTAKES = [
    ("./src/*.ts", "no path has a component '.'", "write 'src/*.ts'"),
    ("./vendor/", "no path has a component '.'", "write '/vendor/'"),
    ("!./x/y", "no path has a component '.'", "write '!x/y'"),
    ("a/b/./", "no path has a component '.'", "write 'a/b/'"),
    (".", "no path has a component '.'", "write '*' to match every path"),
    ("src//api/*", "no path has an empty component", "write 'src/api/*'"),
    ("//src", "no path has an empty component", "write '/src'"),
    ("src/../lib/*", "no path has a component '..'", "write 'lib/*'"),
    ("../p/src/*", "no path has a component '..'", "write 'src/*'"),
    ("../q/x", "no path has a component '..'", "patterns are relative to the project root and cannot leave it"),
    ("a/**/../b", "no path has a component '..'", "patterns are relative to the project root and cannot leave it"),
    ("/home/u/p/src/*.ts", "it is an absolute path", "write 'src/*.ts'"),
    ("/home/u/p/*.ts", "it is an absolute path", "write '/*.ts'"),
    ("~/p/src/*", "~ is not expanded", "write 'src/*'"),
    ("~/q/*", "~ is not expanded", "patterns are relative to the project root and cannot leave it"),
    ("src/{a,b}/*", "braces are not expanded", ALTERNATIVES + "'src/a/*', 'src/b/*'; write \\{ for a literal brace"),
    ("*.{ts,tsx}", "braces are not expanded", ALTERNATIVES + "'*.ts', '*.tsx'; write \\{ for a literal brace"),
    ("{1..3}", "braces are not expanded", "write a pattern for each alternative; write \\{ for a literal brace"),
    ("{a,b}{c,d}", "braces are not expanded", "write a pattern for each alternative; write \\{ for a literal brace"),
    ("[a", "it is malformed", "write \\[ for a bracket and \\\\ for a backslash"),
    ("a\\", "it is malformed", "write \\[ for a bracket and \\\\ for a backslash"),
    ("#a#", "it is a comment", "write '\\#a#' for a name that begins with #"),
    ("", "it is empty", "write '*' to match every path"),
    ("/", "it is empty", "write '*' to match every path"),
    ("!", "it is empty", "write '*' to match every path"),
    (
        "!a",
        "it is a negation, but no pattern comes before it",
        "put a pattern that it restricts before it, for example '*'",
    ),
]


@pytest.mark.parametrize(("pattern", "reason", "hint"), MISTAKES)
def test_impossible_pattern_has_a_reason_and_a_hint(pattern: str, reason: str, hint: str) -> None:
    assert find_mistake([pattern], ROOT, HOME) == (pattern, reason, hint)
    assert find_mistake(["a", pattern], ROOT, HOME) == (None if pattern == "!a" else (pattern, reason, hint))


@pytest.mark.parametrize(
    "pattern",
    ["src/**", "**", "/src/x", "**/x", "...", ".github/", "a..b", "\\{a,b}", "[{]a,b}", "{{x}}", "${x}", "~", "a~/b",
     "/home/u/px", "[.]", "[[:digit:]]", "a ", "*/*", "\\#a", "\\!a"],
)  # fmt: skip
def test_possible_pattern_is_accepted(pattern: str) -> None:
    assert find_mistake([pattern], ROOT, HOME) is None


def test_absolute_pattern_may_match_within_the_tree() -> None:
    """In a tree at /app with a directory `app`, `/app/*.py` is valid if the caller gives no root."""
    assert find_mistake(["/app/*.py"], "/app") is not None
    assert find_mistake(["/app/*.py"], "") is None


PARTS = ["a", "b", ".a", "..a", "a.", "..."]
PATHS = ["/".join(parts) for count in (1, 2, 3) for parts in itertools.product(PARTS, repeat=count)]


@given(st.lists(st.sampled_from(["a", ".", "..", "/", "//", "*", "**", "b", "!", "\\."]), min_size=1, max_size=7))
def test_rejected_patterns_match_no_path_and_their_hints_are_valid(words: list[str]) -> None:
    pattern = "".join(words)
    mistake = find_mistake([pattern])
    if mistake is None or mistake.pattern.startswith("!"):
        return
    matches = parse_arguments([pattern], "").deciding_pattern
    assert not any(
        matches(path.encode(), is_directory=is_directory) for path in PATHS for is_directory in (False, True)
    )
    for suggested in re.findall(r"write '(.*)'(?: for|$)", mistake.hint) if "\\" not in pattern else ():
        assert find_mistake([suggested]) is None
