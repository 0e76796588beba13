"""Tests of glob matching: the time is at most pattern times path, and caches are bounded."""

from __future__ import annotations

import itertools
import random

import pytest

from codebatch.model import globs
from codebatch.model.gitignore import parse_ignore_file, parse_pattern
from tests.support.resources import cpu_time_below

SECONDS_MAX = 10.0  # CPU seconds: ten times what an idle machine needs.


@pytest.mark.parametrize(
    "pattern",
    [
        b"*a" * 40 + b"*b",
        b"/" + b"*a" * 40 + b"*b",
        b"**/a/" * 40 + b"b",
        b"**/*a*/" * 40 + b"b",
        b"?*" * 60 + b"b",
        b"[a-z]*" * 60 + b"[!a]",
        b"**/" * 2000 + b"b",
        b"/" + b"a**" * 2000 + b"/b",
        b"***" * 2000 + b"b",
    ],
)
@pytest.mark.parametrize("path", [b"a" * 200, b"a/" * 100 + b"a", b"aa/" * 60 + b"a" * 100])
def test_any_pattern_matches_in_time(pattern: bytes, path: bytes) -> None:
    with cpu_time_below(1):
        assert parse_ignore_file(pattern, "x", b"").deciding_pattern(path, is_directory=False) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "files"),
    [("name{0}.txt", 10_000), ("*x{0}.txt", 10_000), ("a/**/x{0}*/y", 10_000), ("*{0}*", 2_000)],
)
def test_fifty_thousand_patterns_match_in_time(line: str, files: int) -> None:
    choose = random.Random(1)
    paths = [f"src/d{n % 97}/module{choose.randrange(10**6)}_{n}.py".encode() for n in range(files)]
    with cpu_time_below(SECONDS_MAX):
        patterns = parse_ignore_file("".join(line.format(n) + "\n" for n in range(50_000)).encode(), "x", b"")
        matched = sum(patterns.deciding_pattern(path, is_directory=False) is not None for path in paths)
        assert matched == (files if line == "*{0}*" else 0)


def test_glob_cache_is_bounded_without_changing_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b"*a*b?", b"**/c*", b"/a/**", b"[ab]c", b"a"]
    paths = [b"/".join(parts) for parts in itertools.product([b"a", b"cab", b"bc"], [b"aabc", b"ca", b"xabx"])]
    parsed = [parse_pattern(line, 1) for line in lines]
    tokens = [pattern.glob for pattern in parsed if pattern is not None]
    expected = list(map(globs.GlobSet(tokens, list).find, paths))
    assert any(expected)
    monkeypatch.setattr(globs, "_CACHED_BYTES_MAX", 2000)
    forgetful = globs.GlobSet(tokens, list)
    for _ in range(3):
        assert list(map(forgetful.find, paths)) == expected
        assert forgetful.cached_bytes <= 2000 + 1000


def test_matching_globs_are_returned_from_last_to_first() -> None:
    parsed = [parse_pattern(line, 1) for line in (b"*", b"b", b"a*", b"/a", b"?")] * 20
    positions = globs.GlobSet([pattern.glob for pattern in parsed if pattern is not None], list).find(b"a")
    assert positions == [at for at in range(99, -1, -1) if at % 5 != 1]
