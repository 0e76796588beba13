"""CODEOWNERS files: the examples of GitHub's documentation, and lines that are ignored."""

from __future__ import annotations

import pytest

from codebatch.model.owners import CodeOwners

DOCUMENTED = b"""\xef\xbb\xbf# This is a comment.
*       @global-owner1 @global-owner2
*.js    @js-owner #This is an inline comment.
*.go docs@example.com
/build/logs/ @doctocat
docs/*  docs@example.com
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat
/apps/ @octocat
/apps/github
with\\ space/ @space
"""


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        (b"x.c", ("@global-owner1", "@global-owner2")),
        (b"deep/below/x.c", ("@global-owner1", "@global-owner2")),
        (b"src/x.js", ("@js-owner",)),
        (b"src/x.js/y", ("@js-owner",)),
        (b"x.go", ("docs@example.com",)),
        (b"build/logs/a/b", ("@octocat",)),
        (b"build/x", ("@global-owner1", "@global-owner2")),
        (b"docs/x", ("@doctocat",)),
        (b"docs/a/x", ("@doctocat",)),
        (b"deep/apps/x", ("@octocat",)),
        (b"deeply/logs/x", ("@octocat",)),
        (b"scripts/a/b.js", ("@doctocat", "@octocat")),
        (b"apps/x", ("@octocat",)),
        (b"apps/github", ()),
        (b"apps/github/x", ()),
        (b"apps/github2/x", ("@octocat",)),
        (b"with space/x", ("@space",)),
        (b"\xff/x.js", ("@js-owner",)),
    ],
)
def test_owners_of_the_documented_example(path: bytes, owners: tuple[str, ...]) -> None:
    assert CodeOwners(DOCUMENTED).find(path) == owners


def test_star_after_a_slash_matches_only_files_there() -> None:
    owners = CodeOwners(b"docs/* @docs\n")
    assert owners.find(b"docs/x") == ("@docs",)
    assert owners.find(b"docs/a/x") == ()
    assert CodeOwners(b"docs/** @docs\n").find(b"docs/a/x") == ("@docs",)


def test_last_match_wins_among_both_kinds_of_patterns() -> None:
    assert CodeOwners(b"docs/* @one\n/docs/ @two\n").find(b"docs/x") == ("@two",)
    assert CodeOwners(b"/docs/ @two\ndocs/* @one\n").find(b"docs/x") == ("@one",)
    assert CodeOwners(b"/docs/ @two\ndocs/* @one\n").find(b"docs/a/x") == ("@two",)
    assert CodeOwners(b"/a/b/ @deep\n/a/ @top\n").find(b"a/b/x") == ("@top",)


@pytest.mark.parametrize(
    "line", [b"", b"# x", b"!a @no", b"[Area] @no", b"^[Optional][2] @no", b"   ", b"[a @no", b"\\", b"a\\"]
)
def test_line_that_names_no_path_is_ignored(line: bytes) -> None:
    assert CodeOwners(b"* @all\r\n" + line + b"\r\n").find(b"a") == ("@all",)


def test_text_without_lines_and_bytes_that_are_not_utf_8() -> None:
    assert CodeOwners().find(b"a") == ()
    assert CodeOwners(b"\xef\xbb\xbf* @all").find(b"a") == ("@all",)
    assert CodeOwners(b"\xff/ @\xfe").find(b"\xff/x") == ("@\\xfe",)
