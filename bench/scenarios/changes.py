"""Changes of many files: written to the files, and as a branch, against git with the same patch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from bench.measuring import Side, alternate, environment
from bench.rows import Row, Target, pair_row
from bench.setting import Setting, answer, without

_FILES = 7_000
_CHANGED = 2_000
_LINES = 60
_RATIO_MAX = 3.0
_TASK = """\
def task(file):
    if file.path.endswith(b".txt") and b"old_name" in file.content:
        yield file.change(file.content.replace(b"old_name", b"new_name"))
"""
_SETTINGS = '[tasks.rename]\npython = "rename_task.py:task"\n[pipelines.rename]\ntasks = ["rename"]\n'
_IDENTITY = {
    f"GIT_{role}_{part}": "bench@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
}


def changes(setting: Setting) -> Iterator[Row]:
    """Rename a function in 2,000 of 7,000 files: apply the changes of the batch, and the same patch with git."""
    tree, store, patch = (setting.scratch / name for name in ("renamed", "store", "patch"))
    try:
        _make_tree(tree)
        run = setting.codebatch("run", "run", ".", "--store", store, "--pipeline", "rename", "--quiet")
        answer(replace(run, cwd=tree))
        show = setting.codebatch("changes", "changes", "--patch", "--store", store)
        patch.write_bytes(answer(replace(show, cwd=tree)))
        ours = _in_tree(setting.codebatch("apply", "apply", "--store", store, "--quiet"), tree)
        branch_words = ("apply", "--branch", "renamed", "--store", store, "--quiet")
        branch = _in_tree(setting.codebatch("apply --branch", *branch_words), tree)
        git = _in_tree(Side(name="git apply", command=["git", "apply", str(patch)]), tree)
        committing = f"git apply --index {patch} && git commit -qm x"
        commit = _in_tree(Side(name="git apply, git commit", command=["sh", "-c", committing]), tree)
        applied, by_git, branched, committed = alternate([ours, git, branch, commit], setting.runs)
        target = Target(limit=_RATIO_MAX, source="issue 44")
        what = f"{_CHANGED:,} of {_FILES:,} files"
        yield pair_row(
            "changes", "apply", what, ours=(ours.name, applied), theirs=(git.name, by_git), by="cpu", target=target,
            note="apply also makes all files durable",
        )  # fmt: skip
        yield pair_row(
            "changes", "a branch", what, ours=(branch.name, branched), theirs=(git.name, by_git), by="cpu",
            target=target,
        )  # fmt: skip
        yield pair_row(
            "changes", "a branch", what, ours=(branch.name, branched), theirs=(commit.name, committed), by="cpu"
        )
    finally:
        without(tree)()
        without(store)()
        patch.unlink(missing_ok=True)


def _in_tree(side: Side, tree: Path) -> Side:
    """Return a command that runs in the tree as it was committed, without the branch."""
    return replace(side, cwd=tree, prepare=_resetting(tree), environment=_IDENTITY)


def _resetting(tree: Path) -> Callable[[], None]:
    def reset() -> None:
        _git(tree, "checkout", "--quiet", "--force", "-B", "main", "start")
        subprocess.run(
            ["git", "branch", "-D", "renamed"], cwd=tree, env=environment(), check=False, capture_output=True
        )

    return reset


def _make_tree(tree: Path) -> None:
    """Write the files, and commit them with the tag `start`."""
    for number in range(_FILES):
        place = tree / f"d{number % 70:02}" / f"f{number:04}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        name = "old_name" if number * _CHANGED % _FILES < _CHANGED else "other"
        lines = (f"{line}: {name if line % 20 == 7 else 'text'} of file {number}\n" for line in range(_LINES))
        place.write_text("".join(lines), encoding="utf-8")
    (tree / "codebatch.toml").write_text(_SETTINGS, encoding="utf-8")
    (tree / "rename_task.py").write_text(_TASK, encoding="utf-8")
    _git(tree, "init", "--quiet", "-b", "main")
    _git(tree, "add", "--all")
    _git(tree, "commit", "--quiet", "--message", "start")
    _git(tree, "tag", "start")


def _git(tree: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=tree, env={**environment(), **_IDENTITY}, check=True, capture_output=True)
