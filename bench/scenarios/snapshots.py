"""Snapshots: of a new tree, of a large unchanged tree, and their size on disk."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.measuring import BrokenSideError, Side, alternate
from bench.rows import Row, Target, figure_row, pair_row
from bench.setting import REPOSITORY, Setting, answer, without
from bench.trees import Corpus, bytes_below, copy_without_git, count_files, make_work_tree, many_files

_COLD = Target(limit=0.35)
_AGAIN = Target(limit=1.5)
_EDITED_S = Target(limit=0.4, source="issue 12")
_DISK = Target(limit=0.4, source="reference/store.md §8")
_SETTLING_TURNS_MAX = 3


class _Taken(msgspec.Struct, frozen=True):
    read_files: int


def cold(setting: Setting) -> Iterator[Row]:
    """Compare a snapshot of a new tree with `git add -A && git write-tree`, outside of git and in a git work tree."""
    for corpus in setting.corpora:
        tree = copy_without_git(corpus, setting.scratch / "tree")
        try:
            files = count_files(tree)
            for listed_by in ("walk", "git"):
                if listed_by == "git":
                    make_work_tree(tree)
                store, git_dir = setting.scratch / "store", setting.scratch / "fresh.git"
                ours = setting.codebatch("snapshot", "snapshot", tree, "--store", store, prepare=without(store))
                theirs = _git_add(tree, git_dir)
                usages = alternate([ours, theirs], setting.runs)
                what = f"snapshot of {files:,} files, listed by {listed_by}"
                yield pair_row(
                    "snapshot-cold",
                    what,
                    corpus.name,
                    ours=("codebatch snapshot", usages[0]),
                    theirs=("git add -A && git write-tree", usages[1]),
                    target=_COLD,
                )
                without(store)()
                without(git_dir)()
        finally:
            without(tree)()


def again(setting: Setting) -> Iterator[Row]:
    """Compare a snapshot of a large unchanged work tree with git's listing and an lstat of each path."""
    tree = setting.scratch / "tree"
    files = many_files(setting.corpora, tree)
    store = setting.scratch / "store"
    try:
        ours = setting.codebatch("snapshot again", "snapshot", tree, "--store", store)
        _settle(setting, tree, store)
        script = (REPOSITORY / "bench/probes/list_and_stat.py").read_text(encoding="utf-8")
        theirs = Side(name="git ls-files + lstat", command=[sys.executable, "-c", script], cwd=tree)
        usages = alternate([ours, theirs], setting.runs_of_short)
        yield pair_row(
            "snapshot-again",
            f"snapshot of {files:,} files, nothing changed, none read",
            " + ".join(corpus.name for corpus in setting.corpora),
            ours=("codebatch snapshot", usages[0]),
            theirs=("python -c: git ls-files, os.lstat of each", usages[1]),
            target=_AGAIN,
        )
        path = next(path for path in tree.glob("copy-*/**/[a-z]*") if path.is_file() and not path.is_symlink())
        edited = setting.codebatch("one edited", "snapshot", tree, "--store", store, prepare=lambda: _append_line(path))
        after_edit, unchanged = alternate([edited, ours], setting.runs_of_short)
        yield figure_row(
            "snapshot-again",
            f"snapshot of {files:,} files, one edited: CPU beyond that where nothing changed",
            " + ".join(corpus.name for corpus in setting.corpora),
            [one.cpu_s - other.cpu_s for one, other in zip(after_edit, unchanged, strict=True)],
            "s",
            target=_EDITED_S,
        )
    finally:
        without(tree)()
        without(store)()


def store_size(setting: Setting) -> Iterator[Row]:
    """Compare the size of a snapshot and of a whole run on disk with the tree itself and a fresh `.git`."""
    for corpus in setting.corpora:
        tree = copy_without_git(corpus, setting.scratch / "tree")
        store, git_dir = setting.scratch / "store", setting.scratch / "fresh.git"
        try:
            answer(_git_add(tree, git_dir))
            answer(setting.codebatch("snapshot", "snapshot", tree, "--store", store))
            theirs, whole = bytes_below(git_dir), bytes_below(tree)
            peer = f"tree {whole.apparent / 1e6:.1f} MB ({whole.on_disk / 1e6:.1f} on disk)"
            git_peer = f"fresh .git {theirs.apparent / 1e6:.1f} MB ({theirs.on_disk / 1e6:.1f} on disk)"
            yield from _sizes(corpus, "after a snapshot", store, tree, git_dir, peer, git_peer, target=_DISK)
            answer(setting.codebatch("run", "run", tree, "--store", store))
            yield from _sizes(corpus, "after `run`", store, tree, git_dir, peer, git_peer, target=None)
        finally:
            for path in (tree, store, git_dir):
                without(path)()


def _sizes(
    corpus: Corpus,
    when: str,
    store: Path,
    tree: Path,
    git_dir: Path,
    peer: str,
    git_peer: str,
    *,
    target: Target | None,
) -> Iterator[Row]:
    ours, theirs, whole = bytes_below(store), bytes_below(git_dir), bytes_below(tree)
    apparent = ours.apparent / 1e6
    yield figure_row("store-size", f"store {when}", corpus.name, [apparent], "MB", peer=peer)
    yield figure_row(
        "store-size", f"store {when}, to the tree", corpus.name, [ours.apparent / whole.apparent], "times", peer=peer
    )
    yield figure_row(
        "store-size",
        f"store {when}, to git, on disk",
        corpus.name,
        [ours.on_disk / theirs.on_disk],
        "times",
        target=target,
        peer=git_peer,
    )


def _git_add(tree: Path, git_dir: Path) -> Side:
    """Return a side that adds a tree to a new git directory next to it, so that the tree stays unchanged."""
    git = shlex.join(["git", f"--git-dir={git_dir}", f"--work-tree={tree}"])
    script = f"{git} init --quiet && {git} add --all && {git} write-tree"
    return Side(name="git add", command=["sh", "-c", script], cwd=tree, prepare=without(git_dir))


def _append_line(path: Path) -> None:
    with path.open("a") as file:
        file.write("\n")


def _settle(setting: Setting, tree: Path, store: Path) -> None:
    """Take snapshots until no file is read.

    Files written a moment ago are read again, because their times are not trusted.
    """
    for _ in range(_SETTLING_TURNS_MAX):
        side = setting.codebatch("snapshot", "snapshot", tree, "--store", store, "--json")
        if msgspec.json.decode(answer(side), type=_Taken).read_files == 0:
            return
    raise BrokenSideError("a snapshot of an unchanged tree keeps reading files")
