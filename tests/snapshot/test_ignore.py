"""Tests of our implementation of gitignore(5), compared with git on the same trees."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable

import pytest

from codebatch.model.gitignore import parse_ignore_file
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.selection import SelectionRules, SourceRules
from codebatch.snapshotting.snapshot import selects_any_file
from codebatch.snapshotting.walk import walk_tree

from .conftest import GIT_ENVIRONMENT, Workbench


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        (b"*.log", b"a/b.log", True),
        (b"/a.log", b"b/a.log", False),
        (b"a/b", b"c/a/b", False),
        (b"**/b", b"a/c/b", True),
        (b"a/**/b", b"a/b", True),
        (b"a/**", b"a", False),
        (b"a**b/c", b"axb/c", True),
        (b"a*c", b"a/c", False),
        (b"/a**/b", b"ab", True),
        (b"/?a**/b", b"xab", False),
        (b"\\#x", b"#x", True),
        (b"\\!x", b"!x", True),
        (b"x\\ ", b"x ", True),
        (b"x  ", b"x", True),
        (b"x\r", b"x", True),
        (b"\xef\xbb\xbfx", b"x", True),
        (b"[a-c]", b"b", True),
        (b"[!a-c]", b"b", False),
        (b"[]-]", b"]", True),
        (b"[[:digit:]]", b"7", True),
        (b"[[:nope:]]", b"n", False),
        (b"[a", b"[a", False),
        (b"x\\", b"x\\", False),
        (b"\xff*", b"\xff\xfe", True),
        (b"/", b"x", False),
        (b"# x", b"# x", False),
    ],
)
def test_pattern_matches_according_to_gitignore(pattern: bytes, path: bytes, matches: bool) -> None:
    decided = parse_ignore_file(pattern + b"\n", "x", b"").deciding_pattern(path, is_directory=False)
    assert (decided is not None) == matches


PIECES = [
    "a",
    "b",
    "ab",
    "*",
    "**",
    "?",
    "[ab]",
    "[!a]",
    "[a-b]",
    "\\a",
    "a*",
    "*b",
    "***",
    "[[:alpha:]]",
    "[]a]",
    "[^a]",
    "[^ab]b",
    "[!b-c]",
    "[a-]",
    "[-a]",
    "[[:upper:][:digit:]]",
    "[^[:alpha:]]",
    "[\\]a]",
    "[b-a]",
    "[a",
    "\\*",
    "\\?",
    "\\[",
    "\\\\",
    "a ",
    "a\\ ",
    "b\\ ",
    "\\",
    ".a",
]
NAMES = ["a", "b", "ab", "ba", "aab", ".a", "c", "a ", "b ", "*", "]a", "-", "A1", "a\\"]


def _pattern(choose: random.Random) -> str:
    parts = "/".join(
        "".join(choose.choices(PIECES, k=choose.choice([1, 1, 2]))) for _ in range(choose.choice([1, 1, 2, 3]))
    )
    return choose.choice(["", "", "", "!"]) + choose.choice(["", "", "/"]) + parts + choose.choice(["", "", "/"])


@pytest.mark.parametrize("seed", range(12))
def test_walk_lists_the_same_files_as_git(make_bench: Callable[[], Workbench], seed: int) -> None:
    """Each tree has ignore files at three levels. Each seed tries 20 sets of them over the same files."""
    choose = random.Random(seed)
    bench = make_bench()
    bench.git("init", "-q")
    for _ in range(60):
        parts = [choose.choice(NAMES) + "d" * (depth < 2) for depth in range(choose.choice([1, 2, 3]))]
        target = bench.source.joinpath(*parts)
        if not target.exists() and not any(parent.is_file() for parent in target.parents):
            bench.write("/".join(parts))
    directories = ["", *sorted(path.name for path in bench.source.glob("*d") if path.is_dir())]
    for _ in range(20):
        for directory in directories:
            lines = [_pattern(choose) for _ in range(choose.randint(0, 4))]
            bench.write(f"{directory}/.gitignore" if directory else ".gitignore", "\n".join(lines) + "\n")
        listed = subprocess.run(
            ["git", "ls-files", "-oz", "--exclude-per-directory=.gitignore"],
            cwd=bench.source,
            env=GIT_ENVIRONMENT,
            check=True,
            capture_output=True,
        ).stdout
        with DirectoryDescriptors(bytes(bench.source)) as opened:
            walked = walk_tree(opened, b"", SelectionRules(SourceRules(), opened, None))
        assert sorted(walked.paths) == sorted(path for path in listed.split(b"\0") if path)


def test_excluded_directory_cannot_be_partially_included(bench: Workbench) -> None:
    bench.write(".gitignore", "build/\n!build/keep.py\n")
    bench.write("build/keep.py")
    assert bench.paths() == [b".gitignore"]


def test_include_restricts_and_exclude_takes_precedence(bench: Workbench) -> None:
    for path in ("a.py", "b.txt", "src/c.py", "src/d.txt", "lib/e.txt"):
        bench.write(path)
    assert bench.paths(include=("*.py", "/lib/")) == [b"a.py", b"lib/e.txt", b"src/c.py"]
    for matches_nothing in ("[", "", "#"):
        assert bench.paths(include=(matches_nothing,)) == []
        assert bench.paths(include=(matches_nothing, "*.py")) == bench.paths(include=("*.py",))
    assert bench.paths(include=("*.py",), exclude=("/src/",)) == [b"a.py"]
    assert bench.paths(exclude=("*.txt", "!b.txt")) == [b"a.py", b"b.txt", b"src/c.py"]


@pytest.mark.parametrize("is_repository", [True, False])
def test_codebatchignore_excludes_tracked_files(bench: Workbench, is_repository: bool) -> None:
    bench.write(".codebatchignore", "/vendor/\n*.min.js\n")
    bench.write("src/.codebatchignore", "!keep.min.js\n/gen.py\n")
    for path in ("vendor/a.py", "b.min.js", "src/keep.min.js", "src/gen.py", "src/sub/gen.py"):
        bench.write(path)
    if is_repository:
        bench.commit()
    listed = [b".codebatchignore", b"src/.codebatchignore", b"src/keep.min.js", b"src/sub/gen.py"]
    assert bench.paths() == listed
    bench.settle()
    bench.take()
    assert bench.take().reused
    bench.write(".codebatchignore", ".codebatchignore\n/vendor/\n")
    hidden = [b"b.min.js", b"src/keep.min.js", b"src/sub/gen.py"]
    assert bench.paths() == hidden
    bench.settle()
    bench.take()
    assert bench.take().reused
    bench.write(".codebatchignore", ".codebatchignore\n")
    assert bench.paths() == [*hidden, b"vendor/a.py"], "a change of an ignore file that ignores itself was missed"


def test_ignored_codebatchignore_applies_only_at_the_base(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(".gitignore", ".codebatchignore\n")
    bench.write(".codebatchignore", "b.py\n")
    bench.write("sub/.codebatchignore", "x.py\n/deep/\n")
    for path in ("b.py", "sub/x.py", "sub/deep/a.py"):
        bench.write(path)
    bench.git("init", "-q")
    assert bench.paths() == [b".gitignore", b"sub/deep/a.py", b"sub/x.py"]
    by_git = bench.take().snapshot_id
    monkeypatch.setenv("PATH", str(bench.source.parent))
    assert bench.take(rehash=True).snapshot_id == by_git


def test_codebatchignore_of_the_base_applies_to_named_subdirectories(bench: Workbench) -> None:
    bench.write(".codebatchignore", "*.py\n")
    roots = [bench.write("sub/a.py").parent, bench.write("t/b.py").parent]
    assert not selects_any_file(roots, SourceRules())
    assert bench.paths(*roots) == []
