"""Tests of the commit that a batch records, and of whether its tree is clean: exactly the files of the commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import codebatch
from codebatch.git.checkout import CheckoutComparison
from codebatch.git.repository import GitError, GitTimedOut, find_git
from codebatch.store.batches.batch_directory import BatchFile
from tests.support.git_repositories import NOW, git, make_repository


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree of one commit; the current directory."""
    tree = tmp_path / "tree"
    make_repository(tree, [(NOW, {b"a.py": b"import os\n", b"sub/b.py": b"b = 1\n"})])
    git(tree, "reset", "-q", "--hard")
    monkeypatch.chdir(tree)
    return tree


def _run(*words: str) -> BatchFile:
    return codebatch.run(*words or ["."], pipeline="parse", jobs=1).batch.about


def test_clean_batch_represents_its_commit_and_a_dirty_batch_does_not(tree: Path) -> None:
    first = git(tree, "rev-parse", "HEAD")
    batch = _run()
    assert (batch.commit, batch.is_clean) == (first, True)
    (tree / "a.py").write_text("import sys\n")
    dirty = _run()
    assert (dirty.commit, dirty.is_clean) == (first, False)
    git(tree, "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-qam", "m")
    adopted = _run()
    assert (adopted.commit, adopted.is_clean) == (git(tree, "rev-parse", "HEAD"), True)
    assert (adopted.plan_digest, adopted.batch_id > dirty.batch_id) == (dirty.plan_digest, True)
    assert _run().batch_id == adopted.batch_id


def test_batch_outside_a_commit_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    monkeypatch.chdir(tmp_path)
    batch = _run()
    assert (batch.commit, batch.is_clean) == ("", False)
    git(tmp_path, "init", "-q")
    assert _run().batch_id == batch.batch_id


def _stage(tree: Path) -> None:
    (tree / "c.py").write_text("")
    git(tree, "add", "c.py")


def _exclude(tree: Path) -> None:
    (tree / ".git" / "info").mkdir(exist_ok=True)
    (tree / ".git" / "info" / "exclude").write_text("c.py\n")
    (tree / "c.py").write_text("")


def _filter(tree: Path) -> None:
    git(tree, "config", "filter.evil.clean", "touch ran; cat")
    git(tree, "config", "filter.evil.process", "touch ran")
    (tree / ".git" / "info").mkdir(exist_ok=True)
    (tree / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    (tree / "a.py").write_text("import re\n")


def _edit_unseen(mark: str) -> Callable[[Path], object]:
    def edit(tree: Path) -> None:
        git(tree, "update-index", mark, "a.py")
        (tree / "a.py").write_text("import re\n")

    return edit


_STATES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "as committed": (lambda tree: None, True),
    "touched": (lambda tree: (tree / "a.py").write_text("import os\n"), True),
    "changed": (lambda tree: (tree / "a.py").write_text("import re\n"), False),
    "removed": (lambda tree: (tree / "a.py").unlink(), False),
    "mode": (lambda tree: (tree / "a.py").chmod(0o755), False),
    "not tracked": (lambda tree: (tree / "c.py").write_text(""), False),
    "staged": (_stage, False),
    "left out by this machine alone": (_exclude, False),
    "filtered": (_filter, False),
    "sparse": (lambda tree: git(tree, "sparse-checkout", "set", "--no-cone", "sub"), False),
    "skipped": (_edit_unseen("--skip-worktree"), False),
    "assumed": (_edit_unseen("--assume-unchanged"), False),
}


@pytest.mark.parametrize("state", _STATES)
def test_tree_is_clean_only_if_its_commit_contains_every_file(tree: Path, state: str) -> None:
    change, is_clean = _STATES[state]
    change(tree)
    assert _is_clean(tree) is is_clean
    assert not (tree / "ran").exists()


def _name_fifo(tree: Path) -> None:
    os.mkfifo(tree.parent / "fifo")
    git(tree, "config", "core.attributesFile", str(tree.parent / "fifo"))


def test_attributes_files_that_settings_name_are_not_read(tree: Path) -> None:
    _name_fifo(tree)
    assert _is_clean(tree)


def test_fifo_as_attributes_file_times_out(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tree / "sub" / ".gitattributes")
    monkeypatch.setattr("codebatch.git.checkout._STATUS_SECONDS", 0.5)
    with pytest.raises(GitTimedOut):
        _is_clean(tree)


def test_git_memory_is_limited_for_endless_attributes(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / ".git" / "info").mkdir(exist_ok=True)
    (tree / ".git" / "info" / "attributes").symlink_to("/dev/zero")
    monkeypatch.setattr("codebatch.git.repository.GIT_MEMORY_BYTES_MAX", 64 << 20)
    monkeypatch.setattr("codebatch.git.checkout._STATUS_SECONDS", 60.0)
    with pytest.raises(GitError, match=r"(?i)memory"):
        _is_clean(tree)


def _is_clean(tree: Path) -> bool:
    program = find_git()
    assert program is not None
    paths = [str(path.relative_to(tree)).encode() for path in tree.rglob("*.py")]
    comparison = CheckoutComparison(program, bytes(tree), is_top=True)
    try:
        return comparison.is_clean(paths)
    finally:
        comparison.close()


def _commit(tree: Path, *arguments: str) -> None:
    git(tree, "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-q", *arguments, "-m", "m")


def _advance_submodule(tree: Path) -> None:
    (tree / "mod" / "m.py").write_text("import re\n")
    _commit(tree / "mod", "-a")


def _stage_advanced_submodule(tree: Path) -> None:
    _advance_submodule(tree)
    git(tree, "add", "mod")


def _move_git_directory_elsewhere(tree: Path) -> None:
    """The content of the submodule comes from a repository that is unrelated to the outer one."""
    (tree / ".git" / "modules" / "mod").rename(tree.parent / "elsewhere")
    (tree / "mod" / ".git").write_text(f"gitdir: {tree.parent / 'elsewhere'}\n")
    git(tree, "config", "-f", str(tree.parent / "elsewhere" / "config"), "--unset", "core.worktree")


def _move_git_directory_inside(tree: Path) -> None:
    (tree / "mod" / ".git").unlink()
    (tree / ".git" / "modules" / "mod").rename(tree / "mod" / ".git")
    git(tree, "config", "-f", str(tree / "mod" / ".git" / "config"), "--unset", "core.worktree")
    (tree / "mod" / "in" / ".git").write_text("gitdir: ../.git/modules/in\n")


def _fill_manually(tree: Path) -> None:
    git(tree, "submodule", "--quiet", "deinit", "-f", "mod")
    (tree / "mod" / "m.py").write_text("import os\n")


def _add_filter_to_submodule(tree: Path) -> None:
    git(tree / "mod", "config", "filter.evil.clean", f"touch {tree}/ran; cat")
    (tree / "mod" / ".gitattributes").write_text("* filter=evil\n")
    (tree / "mod" / "m.py").write_text("import re\n")


_SUBMODULES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "as committed": (lambda tree: None, True),
    "not checked out": (lambda tree: git(tree, "submodule", "--quiet", "deinit", "-f", "mod"), True),
    "its repository inside": (_move_git_directory_inside, True),
    "of another commit": (_advance_submodule, False),
    "of another commit, staged": (_stage_advanced_submodule, False),
    "changed": (lambda tree: (tree / "mod" / "m.py").write_text("import re\n"), False),
    "skipped": (lambda tree: git(tree / "mod", "update-index", "--skip-worktree", "m.py"), False),
    "not tracked": (lambda tree: (tree / "mod" / "n.py").write_text(""), False),
    "changed in the innermost": (lambda tree: (tree / "mod" / "in" / "m.py").write_text("import re\n"), False),
    "filtered": (_add_filter_to_submodule, False),
    "filled by hand": (_fill_manually, False),
    "elsewhere": (_move_git_directory_elsewhere, False),
}


@pytest.mark.parametrize("state", _SUBMODULES)
def test_tree_is_clean_only_if_its_submodules_are_clean(tree: Path, state: str) -> None:
    """Each submodule must be at the commit that the outer repository names, and clean itself.

    One submodule is nested.
    """
    change, is_clean = _SUBMODULES[state]
    make_repository(tree.parent / "in", [(NOW, {b"m.py": b"import os\n"})])
    make_repository(tree.parent / "mod", [(NOW, {b"m.py": b"import os\n"})])
    git(tree.parent / "mod", "reset", "-q", "--hard")
    for outer, name in ((tree.parent / "mod", "in"), (tree, "mod")):
        git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tree.parent / name), name)
        _commit(outer)
    git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
    change(tree)
    assert _is_clean(tree) is is_clean
    assert not (tree / "ran").exists()


def test_subdirectory_of_a_repository_is_clean_independently(tree: Path) -> None:
    (tree / "a.py").write_text("import re\n")
    program = find_git()
    assert program is not None
    comparison = CheckoutComparison(program, bytes(tree / "sub"), is_top=False)
    assert comparison.is_clean([b"b.py"])
