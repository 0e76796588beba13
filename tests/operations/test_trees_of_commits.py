"""Tests of the tree of a commit in a scratch directory: contents are original, and no configured program runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.git.ancestry import Repository
from codebatch.git.changed_lines import touched_lines
from codebatch.git.commit_tree import check_out_commit
from codebatch.git.repository import GitError, find_git
from tests.support.git_repositories import DAY, NOW, git, make_repository

_FILES = {b"sub/a.py": b"a\r\n\xff\n", b'sub/\xff "\\\n': b"x\n", b"sub/kept.log": b"l\n", b".gitignore": b"*.log\n"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository of two commits with settings that would run programs. `HEAD~1` is the first commit."""
    root = tmp_path / "tree"
    make_repository(root, [(NOW, _FILES), (NOW + DAY, {b"sub/a.py": b"new\n"})])
    for setting in (
        "core.hooksPath=hooks",
        "filter.evil.smudge=touch ran",
        "filter.evil.clean=touch ran",
        "core.fsmonitor=touch ran",
    ):
        git(root, "config", *setting.split("=", 1))
    (root / "hooks").mkdir()
    hook = root / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    git(root, "-c", "core.fsmonitor=", "reset", "-q", "--hard")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    program = find_git()
    assert program is not None
    return Repository(program, bytes(root))


def _before(repository: Repository) -> str:
    (parent,) = repository.parents(repository.find("HEAD") or "")
    return parent


@pytest.mark.parametrize("below", [b"", b"/sub"])
@pytest.mark.parametrize("has_memory", [True, False])
def test_tree_of_a_commit_has_its_original_content(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, below: bytes, has_memory: bool
) -> None:
    if not has_memory:
        monkeypatch.setattr("codebatch.git.commit_tree.try_memory_scratch", lambda **_: None)
    subdirectory = repository._replace(directory=repository.directory + below)
    with check_out_commit(subdirectory, _before(repository)) as directory:
        scratch = Path(directory.decode())
        contents = {
            bytes(file.relative_to(scratch)): file.read_bytes() for file in scratch.rglob("*") if file.is_file()
        }
    expected_all = {path.removeprefix(b"sub/") if below else path: content for path, content in _FILES.items()}
    expected = {path: content for path, content in expected_all.items() if not (below and path == b".gitignore")}
    assert {path: contents.get(path) for path in expected} == expected
    assert not scratch.exists()
    assert not [*Path(repository.directory.decode()).rglob("ran")]


def test_tree_with_filters_or_submodules_is_rejected(repository: Repository) -> None:
    root = Path(repository.directory.decode())
    for path, content in ((".gitattributes", "*.bin filter=lfs\n"), (".gitattributes", "")):
        (root / path).write_text(content)
        git(root, "-c", "filter.evil.clean=", "add", path)
        if not content:
            git(root, "update-index", "--add", "--cacheinfo", f"160000,{git(root, 'rev-parse', 'HEAD')},module")
        git(root, "-c", "user.name=n", "-c", "user.email=n@n", "-c", "filter.evil.clean=", "commit", "-qm", "m")
        message, commit = "files that need a git filter" if content else "submodules", git(root, "rev-parse", "HEAD")
        with pytest.raises(GitError, match=message), check_out_commit(repository, commit):
            pass


@pytest.mark.parametrize("name", ["", "HEAD", "-h", "--upload-pack=x", "0" * 39, "0" * 40])
def test_invalid_commit_name_is_rejected(repository: Repository, name: str) -> None:
    with pytest.raises(GitError), check_out_commit(repository, name):
        pass
    with pytest.raises(GitError):
        repository.parents(name)
    with pytest.raises(GitError):
        touched_lines(repository, name, None)


@pytest.mark.parametrize("name", ["", "-h", "--upload-pack=x", "a\0", "a\n", "\ud800", "\u202ea"])
def test_unsafe_revision_name_is_not_passed_to_git(name: str, tmp_path: Path) -> None:
    """A git that knows every name replaces the real one."""
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\necho {'0' * 40}\n")
    program.chmod(0o755)
    repository = Repository(str(program), bytes(tmp_path))
    assert repository.find("a") == "0" * 40
    assert repository.find(name) is None


@pytest.mark.parametrize("is_committed", [True, False])
def test_touched_lines_of_a_change_are_returned(repository: Repository, is_committed: bool) -> None:
    root = Path(repository.directory.decode())
    path = b'sub/\xff "\\\n'
    (root / "sub" / "a.py").write_bytes(b"new\n+++ b/other\n@@ -1 +1 @@\nlast")
    with open(bytes(root) + b"/" + path, "ab") as file:
        file.write(b"y\nz\n")
    (root / "sub" / "kept.log").unlink()
    before, new = git(root, "rev-parse", "HEAD"), None
    if is_committed:
        git(root, "-c", "core.fsmonitor=", "-c", "filter.evil.clean=", "add", "-A")
        git(
            root,
            "-c",
            "user.name=n",
            "-c",
            "user.email=n@n",
            "-c",
            "core.fsmonitor=",
            "-c",
            "filter.evil.clean=",
            "commit",
            "-qm",
            "m",
        )
        new = git(root, "rev-parse", "HEAD")
    touched = touched_lines(repository, before, new)
    assert touched[b"sub/a.py"] == [range(2, 5)]
    assert touched[path] == [range(2, 4)]
    assert not any(map(len, touched.get(b"sub/kept.log", [])))
    below = touched_lines(repository._replace(directory=bytes(root / "sub")), before, new)
    assert below[b"a.py"] == [range(2, 5)]
    assert not (root / "ran").exists()
