"""Tests of linguist's attributes in `.gitattributes`, compared with git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codebatch_workers.syntax.language.attributes import attributes_context, file_attributes
from tests.support.source_files import Snapshot

KNOWN = ("language", "generated", "vendored", "documentation")
PATHS = ("a.c", "b.py", "d/a.c", "d/e/a.c", "d/e/x y.c", "e/b.py", "#a")


def attributes_by_path(content: dict[str, bytes], *paths: str) -> dict[str, dict[str, str]]:
    """Return the attributes of each path according to the context."""
    snapshot = Snapshot(*paths, content=content)
    context = attributes_context(snapshot)
    return {entry.text: file_attributes(context(entry)) for entry in snapshot.entries if entry.text in paths}


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        (b"*.c linguist-language=C++ linguist-vendored", "d/a.c", {"language": "C++", "vendored": "true"}),
        (b"*.c linguist-vendored\n*.c -linguist-vendored", "a.c", {"vendored": ""}),
        (b"*.c linguist-generated=false", "a.c", {"generated": ""}),
        (b"*.c linguist-generated\na.c !linguist-generated", "a.c", {}),
        (b"/d/ linguist-vendored\nd linguist-vendored", "d/a.c", {}),
        (b"d/** linguist-vendored", "d/e/a.c", {"vendored": "true"}),
        (b"[attr]gen linguist-generated -diff\n*.py gen", "b.py", {"generated": "true"}),
        (b"[attr]gen linguist-generated\n*.py -linguist-generated gen", "b.py", {"generated": "true"}),
        (b"[attr]gen linguist-generated\n*.py -linguist-generated gen -gen", "b.py", {"generated": ""}),
        (b'"d/e/x\\040y.c" linguist-documentation', "d/e/x y.c", {"documentation": "true"}),
        (b"!a.c linguist-vendored\n# a.c linguist-vendored\n*.c text", "a.c", {}),
    ],
)
def test_gitattributes_yield_the_expected_values(lines: bytes, path: str, expected: dict[str, str]) -> None:
    assert attributes_by_path({".gitattributes": lines}, path) == {path: expected}


def test_nearest_gitattributes_take_precedence() -> None:
    files = {
        ".gitattributes": b"*.c linguist-language=C linguist-vendored",
        "d/.gitattributes": b"*.c linguist-language=D",
    }
    assert attributes_by_path(files, "d/e/a.c") == {"d/e/a.c": {"language": "D", "vendored": "true"}}


PATTERNS = st.sampled_from(
    [
        "*.c",
        "a.c",
        "/a.c",
        "d",
        "d/",
        "d/*",
        "d/**",
        "**/e/*",
        "*",
        "[ab].*",
        '"d/e/x y.c"',
        "!b.py",
        "#a",
        "[attr]m",
        "m",
    ]
)
STATES = st.sampled_from(["linguist-generated", "-linguist-generated", "!linguist-generated", "linguist-generated=x"])
WORDS = st.one_of(STATES, st.sampled_from(["m", "-m", "linguist-language=Q", "linguist-vendored=false", "text"]))
FILES = st.lists(st.tuples(PATTERNS, st.lists(WORDS, min_size=1, max_size=3)), max_size=4)


SHARED_DIRECTORY = [HealthCheck.function_scoped_fixture]


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=SHARED_DIRECTORY)
@given(files=st.fixed_dictionaries({"": FILES, "d/": FILES, "d/e/": FILES}))
def test_gitattributes_match_git(files: dict[str, list[tuple[str, list[str]]]], tmp_path: Path) -> None:
    if not (tmp_path / ".git").exists():
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        (tmp_path / "d" / "e").mkdir(parents=True)
    content = {}
    for directory, lines in files.items():
        text = "".join(f"{pattern} {' '.join(words)}\n" for pattern, words in lines)
        (tmp_path / directory / ".gitattributes").write_text(text)
        content[f"{directory}.gitattributes"] = text.encode()
    names = [f"linguist-{name}" for name in KNOWN]
    asked = subprocess.run(
        ["git", "check-attr", "-z", *names, "--", *PATHS], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    fields = asked.stdout.split("\0")[:-1]
    truth: dict[str, dict[str, str]] = {path: {} for path in PATHS}
    for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        if value != "unspecified":
            truth[path][name.removeprefix("linguist-")] = {"set": "true", "unset": "", "false": ""}.get(value, value)
    assert attributes_by_path(content, *PATHS) == truth
