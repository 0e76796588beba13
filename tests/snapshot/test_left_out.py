"""The search in files that a snapshot does not contain: which files are searched, and hostile trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.model.text.words import WordFinder
from codebatch.snapshotting import left_out
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.left_out import LeftOutFile, LeftOutFiles, search_left_out_files
from codebatch.snapshotting.roots import resolve_sources
from codebatch.snapshotting.selection import SourceRules
from tests.support.command_line import write


def search(tree: Path, known: tuple[bytes, ...] = (), rules: SourceRules | None = None) -> LeftOutFiles:
    sources = resolve_sources([tree], tree / "store")
    finder = WordFinder(["name"])
    return search_left_out_files(sources, tree / "store", known, finder, rules or SourceRules(), lambda _: True)


def test_matches_name_the_rule_that_excludes_them(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "out/\n")
    write(tmp_path / ".codebatchignore", "*.gen\n")
    write(tmp_path / "out" / "a.txt", "name")
    write(tmp_path / "out" / "b.txt", "names")
    write(tmp_path / "sub" / "c.gen", "name")
    write(tmp_path / "d.txt", "name")
    write(tmp_path / "e.txt", "name")
    write(tmp_path / "f.txt", "name")
    found = search(tmp_path, (b"f.txt", b".gitignore", b".codebatchignore"), SourceRules(exclude=("d.txt",)))
    assert found == LeftOutFiles(
        matches=(
            LeftOutFile(b"d.txt", "--exclude d.txt"),
            LeftOutFile(b"e.txt", ""),
            LeftOutFile(b"out/a.txt", ".gitignore:1:out/"),
            LeftOutFile(b"sub/c.gen", ".codebatchignore:1:*.gen"),
        ),
        searched=5,
    )


def test_git_stores_reports_work_trees_and_compiled_python_are_never_searched(tmp_path: Path) -> None:
    for path in (
        ".git/a",
        "sub/.GIT/a",
        "store/a",
        "__pycache__/a.pyc",
        "codebatch-report.html",
        "a.cbpart",
        "nested/.git/a",
    ):
        write(tmp_path / path, "name")
    write(tmp_path / "other" / "store.json", '{"codebatch": 1}')
    write(tmp_path / "other" / "CACHEDIR.TAG", "Signature: codebatch")
    write(tmp_path / "other" / "a", "name")
    write(tmp_path / "tree" / "a", "name")
    write(tmp_path / ".git" / "worktrees" / "tree" / "gitdir", f"{tmp_path}/tree/.git\n")
    write(tmp_path / ".git" / "worktrees" / "tree" / "commondir", "../..\n")
    write(tmp_path / "tree" / ".git", f"gitdir: {tmp_path}/.git/worktrees/tree\n")
    write(tmp_path / "nested" / "b", "name")
    assert search(tmp_path) == LeftOutFiles(matches=(LeftOutFile(b"nested/b", ""),), searched=1)


def test_links_are_not_followed_and_special_files_not_opened(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tmp_path / "outside" / "a", "name")
    write(tree / "b", "x")
    (tree / "directory").symlink_to(tmp_path / "outside")
    (tree / "file").symlink_to(tmp_path / "outside" / "a")
    (tree / "loop").symlink_to(".")
    os.mkfifo(tree / "fifo")
    write(tree / os.fsdecode(b"\xff\n"), "name")
    assert search(tree) == LeftOutFiles(matches=(LeftOutFile(b"\xff\n", ""),), searched=2)


def test_file_replaced_by_a_link_is_counted_as_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    write(tmp_path / "outside", "name")
    write(tree / "a", "name")
    scan = DirectoryDescriptors.scan_directory

    def scan_and_replace(directories: DirectoryDescriptors, directory: bytes) -> list[os.DirEntry[str]]:
        entries = [entry for entry in scan(directories, directory) if entry.is_file(follow_symlinks=False)]
        (tree / "a").unlink()
        (tree / "a").symlink_to(tmp_path / "outside")
        return entries

    monkeypatch.setattr(DirectoryDescriptors, "scan_directory", scan_and_replace)
    assert search(tree) == LeftOutFiles(unsearched=1)


def test_long_files_are_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "_CHUNK_BYTES", 7)
    write(tmp_path / "a", "x" * 20 + " name " + "y" * 20)
    write(tmp_path / "b", "x" * 20 + " names " + "y" * 20)
    assert search(tmp_path) == LeftOutFiles(matches=(LeftOutFile(b"a", ""),), searched=2)
